//! Files and proposals: each proposal is unique, and differs from its file in several places.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use alongside_testing::Sandbox;

/// Files of each agent; the last one does not exist until an agent writes it.
const FILES: u64 = 4;
const LINES: usize = 30;

/// The files that agents propose changes to.
pub(super) fn write_files(sandbox: &Sandbox, agents: usize) {
    for agent in 0..agents {
        for file in 0..FILES - 1 {
            let text: Vec<String> = (0..LINES).map(|line| format!("line {line} of the file\n")).collect();
            sandbox.write(&format!("agent{agent}/file{file}.txt"), &text.concat());
        }
    }
}

/// One of an agent's files.
pub(super) fn path(sandbox: &Sandbox, agent: usize, pick: u64) -> PathBuf {
    sandbox.file(&format!("agent{agent}/file{}.txt", pick % FILES))
}

/// A text of about `bytes` bytes that no other proposal has.
pub(super) fn proposal(agent: usize, number: u64, bytes: usize) -> Arc<str> {
    let mut text = String::with_capacity(bytes + 64);
    for line in 0..LINES {
        if line % 10 == 3 {
            let _ = writeln!(text, "line {line}, changed by proposal {number} of agent {agent}");
        } else {
            let _ = writeln!(text, "line {line} of the file");
        }
    }
    while text.len() < bytes {
        let length = text.len();
        let _ = writeln!(
            text,
            "{length:>9} more text of proposal {number} of agent {agent}, which is that long"
        );
    }
    text.into()
}
