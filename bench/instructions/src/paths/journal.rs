//! The journal, in a temporary directory: the kernel's work is not counted.

use std::sync::Arc;

use alongside_core::{Base, Core, Now, Proposal, SessionKey};
use alongside_journal::{Directory, Log};
use anyhow::Result;

use super::texts;
use crate::counted;

pub(super) fn append() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let directory = Directory::open(folder.path())?;
    let (mut log, _) = Log::open(&directory, "state")?;
    let record = [vec![b'x'; 300]];
    // The first one opens the file.
    log.append(&record)?;
    counted(|| log.append(&record))?;
    Ok(())
}

pub(super) fn append_review() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let directory = Directory::open(folder.path())?;
    let (mut log, _) = Log::open(&directory, "state")?;
    let mut core = Core::new(Vec::new());
    let session = SessionKey::from("one");
    core.session_started(Now::default(), &session, None);
    let (base, text) = texts(1 << 10);
    let proposal = Proposal::new("/workspace/a.rs", Base::Text(base.as_str().into()), text.as_str(), None);
    let id = core.open_review(Now::default(), &session, proposal)?;
    let review = core.review(id)?;
    let stored: [Arc<str>; 2] = [base.into(), text.into()];
    counted(|| {
        let names = stored.iter().map(|text| directory.texts().store(text));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        log.append(&[serde_json::to_vec(&(review.outline(), names))?])?;
        anyhow::Ok(())
    })
}
