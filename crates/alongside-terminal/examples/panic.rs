//! A reviewer that panics, for the test that the terminal is restored.

#![allow(clippy::panic, clippy::unwrap_used, reason = "that is what it is for")]

use std::path::PathBuf;

use alongside_protocol::Request;
use alongside_terminal::{Alert, CompanionIndex, LinkEvent, Links, Options, RunningCompanion, ShellOptions, Theme};

struct Panics;

impl Links for Panics {
    fn send(&mut self, _: CompanionIndex, _: Request) {
        panic!("the reviewer panics");
    }

    fn running(&mut self) -> Vec<RunningCompanion> {
        panic!("the reviewer panics");
    }

    fn attach(&mut self, _: RunningCompanion) {}

    async fn next(&mut self) -> (CompanionIndex, LinkEvent) {
        std::future::pending().await
    }

    fn try_next(&mut self) -> Option<(CompanionIndex, LinkEvent)> {
        None
    }
}

fn main() {
    let options = ShellOptions {
        model: Options {
            theme: Theme::from_environment(|name| std::env::var(name).ok()),
            owns_companion: false,
            starts_with_chat: false,
            id: String::new(),
        },
        mouse: true,
        alert: Alert::None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let shown = alongside_terminal::run(Panics, vec![PathBuf::from("/w")], options, std::future::pending());
    runtime.block_on(shown).unwrap();
}
