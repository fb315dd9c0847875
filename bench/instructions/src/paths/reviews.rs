//! A review from the proposal to its end, as the core sees it.

use alongside_core::{Base, Core, Now, Proposal, SessionKey};
use anyhow::{Context, Result};

use super::texts;
use crate::counted;

pub(super) fn open_close_1_kib() -> Result<()> {
    open_close(1 << 10, 0)
}

pub(super) fn open_close_100_kib() -> Result<()> {
    open_close(100 << 10, 0)
}

pub(super) fn open_close_among_99() -> Result<()> {
    open_close(1 << 10, 99)
}

fn open_close(bytes: usize, others: usize) -> Result<()> {
    let mut core = Core::new(Vec::new());
    let session = SessionKey::from("one");
    core.session_started(Now::default(), &session, None);
    let (base, text) = texts(bytes);
    for other in 0..others {
        let base = Base::Text(base.as_str().into());
        let proposal = Proposal::new(format!("/workspace/other-{other}.rs"), base, text.as_str(), None);
        core.open_review(Now::default(), &session, proposal)?;
    }
    core.take_changes();
    core.take_effects();
    counted(|| {
        let proposal = Proposal::new("/workspace/a.rs", Base::Text(base.into()), text, None);
        core.open_review(Now::default(), &session, proposal)?;
        let opened = (core.take_changes(), core.take_effects());
        let closed = core
            .close_review(&session, "/workspace/a.rs")
            .context("nothing is open")?;
        anyhow::Ok((opened, closed, core.take_changes(), core.take_effects()))
    })?;
    Ok(())
}
