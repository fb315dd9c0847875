//! The core is tested by calling it and looking at the effects.

mod context;
mod decisions;
mod diagnostics;
mod drafts;
mod orphans;
mod restarts;

use super::*;
use crate::draft::{HunkDecision, HunkId};
use crate::review::{Base, Proposal};
use crate::text_change::TextChange;

fn at(milliseconds: u64) -> Now {
    Now {
        unix_milliseconds: 1_700_000_000_000 + milliseconds,
        monotonic: Duration::from_millis(milliseconds),
    }
}

fn gemini() -> ClientInfo {
    ClientInfo {
        name: "streamable-http-client".into(),
        version: "0.61.0".into(),
    }
}

fn core() -> Core {
    Core::new(Vec::new())
}

fn connect(core: &mut Core, session: &str, client: ClientInfo) -> SessionKey {
    let session = SessionKey::from(session);
    core.session_started(at(0), &session, Some(client));
    core.stream_opened(at(0), &session);
    core.take_effects();
    session
}

fn propose(core: &mut Core, session: &SessionKey, path: &str, text: &str) -> ReviewId {
    core.open_review(at(0), session, Proposal::new(path, Base::Missing, text, None))
        .unwrap()
}

fn decisions(core: &mut Core) -> Vec<(String, Decision)> {
    core.take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::SendDecision { session, decision, .. } => Some((session.to_string(), decision)),
            _ => None,
        })
        .collect()
}

fn accepted(path: &str, content: &str) -> Decision {
    Decision::Accepted {
        path: path.into(),
        content: content.into(),
    }
}

fn rejected(path: &str) -> Decision {
    Decision::rejected(path)
}

fn edit(core: &mut Core, id: ReviewId, text: &str) -> Result<u64, DecideError> {
    let update = core.review(id)?.edit(text, None);
    core.update_draft(update)
}

fn change(core: &mut Core, id: ReviewId, version: u64, changes: &[TextChange]) -> Result<u64, DecideError> {
    let update = core.review(id)?.change(version, changes, None)?;
    core.update_draft(update)
}

fn decide_hunk(core: &mut Core, id: ReviewId, hunk: HunkId, decision: HunkDecision) -> Result<u64, DecideError> {
    let update = core.review(id)?.decide_hunk(hunk, decision)?;
    core.update_draft(update)
}

fn base_changed(core: &mut Core, id: ReviewId, base: &str) {
    if let Some(update) = core.review(id).unwrap().rebase(Base::Text(base.into()), None) {
        core.update_draft(update).unwrap();
    }
}
