//! Drafts of a file with 200,000 lines, of which 2,000 changed. Without deadlines: callgrind is slow enough to reach them.

use alongside_core::draft::{HunkDecision, HunkId};
use alongside_core::{Base, Core, Now, Proposal, Review, SessionKey, TextChange};
use anyhow::{Context, Result};

use super::{code, code_line};
use crate::counted;

const LINES: usize = 200_000;
const CHANGES: usize = 2_000;

fn proposed() -> String {
    let every = LINES / CHANGES;
    let line = |line| {
        if line % every == every / 2 {
            format!("    changed({line});\n")
        } else {
            code_line(line)
        }
    };
    (0..LINES).map(line).collect()
}

pub(super) fn compare() -> Result<()> {
    let (base, proposal) = (Base::Text(code(LINES).into()), proposed());
    let proposal = counted(|| Proposal::new("/workspace/large.rs", base, proposal, None));
    anyhow::ensure!(!proposal.draft().proposal().is_empty());
    Ok(())
}

/// A core with the review open, and a snapshot of it, as the companion takes one before each change.
fn open() -> Result<(Core, Review)> {
    let mut core = Core::new(Vec::new());
    let session = SessionKey::from("one");
    core.session_started(Now::default(), &session, None);
    let proposal = Proposal::new("/workspace/large.rs", Base::Text(code(LINES).into()), proposed(), None);
    let id = core.open_review(Now::default(), &session, proposal)?;
    let review = core.review(id)?.clone();
    review.text();
    core.take_changes();
    core.take_effects();
    Ok((core, review))
}

pub(super) fn decide_hunk() -> Result<()> {
    let (mut core, review) = open()?;
    let middle = HunkId(u32::try_from(CHANGES / 2)?);
    counted(|| {
        let update = review.decide_hunk(middle, HunkDecision::Rejected)?;
        core.update_draft(update)?;
        anyhow::Ok((core.take_changes(), core.take_effects()))
    })?;
    Ok(())
}

pub(super) fn type_character() -> Result<()> {
    let (mut core, review) = open()?;
    let place = review.text().find("value_100001 ").context("the line is missing")?;
    let change = TextChange {
        from: place,
        to: place,
        insert: "x".to_owned(),
    };
    counted(|| {
        let update = review.change(review.version, &[change], None)?;
        core.update_draft(update)?;
        anyhow::Ok((core.take_changes(), core.take_effects()))
    })?;
    Ok(())
}

/// What the companion's journal writes when a review opens, and in a snapshot.
pub(super) fn encode_outline() -> Result<()> {
    let (_, review) = open()?;
    let record = counted(|| serde_json::to_vec(&review.outline()))?;
    anyhow::ensure!(!record.is_empty());
    Ok(())
}
