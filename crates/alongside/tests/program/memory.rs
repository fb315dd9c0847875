//! Memory of the real program after large proposals.

use std::fs;

use alongside_core::ReviewId;
use alongside_protocol::requests;

use crate::sandbox::{Agent, Sandbox, Serving, wait_for};

/// What a companion may keep after a burst.
const ALLOWANCE_BYTES: u64 = 20 << 20;

fn resident_bytes(serving: &Serving) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serving.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kibibytes << 10
}

fn text(number: u64) -> String {
    let line = |line: u64| format!("line {line} of file {number}, long enough to be one of eight megabytes\n");
    (0..150_000).map(line).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn memory_of_large_proposals_is_released() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let mut front = serving.front_end(&sandbox).await;
    let before = resident_bytes(&serving);
    // At the same time, so that several threads allocate.
    for round in 0..3 {
        let numbers = [4 * round + 1, 4 * round + 2, 4 * round + 3, 4 * round + 4];
        let propose = |number| {
            let path = sandbox.workspace().join(format!("{number}.txt"));
            let agent = &agent;
            async move { agent.propose(path.to_str().unwrap(), &text(number)).await }
        };
        let [one, two, three, four] = numbers.map(propose);
        tokio::join!(one, two, three, four);
    }
    assert!(
        resident_bytes(&serving) > before + ALLOWANCE_BYTES,
        "the texts are kept"
    );
    for number in 1..=12 {
        let target = ReviewId(number).into();
        front.call::<requests::ReviewReject>(target).await.unwrap();
    }
    wait_for("the memory to be released", || {
        (resident_bytes(&serving) < before + ALLOWANCE_BYTES).then_some(())
    });
}
