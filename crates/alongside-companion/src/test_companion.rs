//! A companion for tests, without ports and background tasks.

use std::sync::Arc;

use alongside_discovery::Environment;
use tempfile::TempDir;

use crate::journal::Slot;
use crate::places::Places;
use crate::settings::Settings;
use crate::{Companion, Host, Identity, Parts, Shared};

pub(crate) fn places(scratch: &TempDir) -> Places {
    Places {
        configuration: scratch.path().join("config"),
        state: scratch.path().join("state"),
    }
}

/// The companion of an editor in `scratch`, with what its slot has kept.
pub(crate) fn start(scratch: &TempDir, slot: &Slot, host: Host) -> Shared {
    let (places, workspace) = (places(scratch), vec![scratch.path().to_owned()]);
    let parts = Parts::open(&places, &workspace, slot).unwrap();
    let settings = Settings::load(&places.settings(), &workspace).unwrap();
    let identity = Identity {
        name: "editor".into(),
        display_name: "Editor".into(),
        pid: std::process::id(),
    };
    let companion = Arc::new_cyclic(|me| {
        let environment = Environment::current();
        let mut companion = Companion::new(me.clone(), workspace, places, environment, settings, identity, parts);
        companion.host = Arc::new(host);
        companion
    });
    let ledger = companion.journal.ledger();
    companion.with_core(|core, now| core.restore(now, ledger));
    companion
}
