//! Which of several `alongside` companions each agent finds.

use std::time::{Duration, SystemTime};

use alongside_core::Secret;
use alongside_core::dialect::{Dialect, McpAgent};

use super::fixture::{ALIVE, BOTH, Fixture, ports};
use crate::process::ProcessTable;
use crate::{Announcement, Contender, DiscoveryFiles, LastUse, Platform};

/// Of the oldest, the latest and the one in between.
const PID_ORDERS: [[u32; 3]; 6] = [
    [500, 600, 700],
    [500, 700, 600],
    [600, 500, 700],
    [600, 700, 500],
    [700, 500, 600],
    [700, 600, 500],
];

const OLDEST: At = At(1_700_000_000);
const OLDER: At = At(1_700_000_500);
const LATEST: At = At(1_700_000_900);

#[derive(Clone, Copy)]
struct At(u64);

impl At {
    fn moment(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0)
    }
}

fn companion(scene: &Fixture, port: u16, pid: u32, folder: &str, last_use: LastUse) -> Announcement {
    Announcement {
        port,
        token: Secret::from_bytes([7; 32]),
        workspace: vec![scene.path(folder)],
        aliases: Vec::new(),
        socket: None,
        directories: Vec::new(),
        name: "neovim".to_owned(),
        display_name: "Neovim".to_owned(),
        pid,
        last_use,
        sorts_by_pid: false,
        is_first: false,
    }
}

/// Announces companions, each with the number that its place in the order allows.
fn announce(scene: &Fixture, mut companions: Vec<Announcement>) -> Vec<DiscoveryFiles> {
    number(&mut companions);
    let write = |companion: &Announcement| DiscoveryFiles::write(&scene.environment, companion).unwrap();
    companions.iter().map(write).collect()
}

fn number(companions: &mut [Announcement]) {
    let all = companions.to_vec();
    let contender = |companion: &Announcement| Contender {
        last_use: companion.last_use,
        pid: companion.pid,
        editor: companion.pid,
        workspace: &all.iter().find(|other| other.pid == companion.pid).unwrap().workspace,
    };
    let contenders: Vec<Contender<'_>> = all.iter().map(contender).collect();
    for (companion, contender) in companions.iter_mut().zip(&contenders) {
        companion.sorts_by_pid = contender.sorts_by_pid(&contenders);
    }
}

/// Three editors on one directory, with the given PIDs.
fn three(scene: &Fixture, pids: [u32; 3]) -> Vec<Announcement> {
    let editor = |port, pid, at: At| companion(scene, port, pid, "project", LastUse::of_editor(at.moment()));
    vec![
        editor(4001, pids[0], OLDEST),
        editor(4002, pids[1], LATEST),
        editor(4003, pids[2], OLDER),
    ]
}

#[test]
fn most_recently_used_editor_wins_for_any_pid_order() {
    for pids in PID_ORDERS {
        for agent in BOTH {
            let scene = Fixture::new();
            let _files = announce(&scene, three(&scene, pids));
            assert_eq!(ports(&scene.lookup(agent))[0], 4002, "{agent:?} {pids:?}");
            assert_eq!(ports(&scene.look_from(agent, "project/src"))[0], 4002);
        }
    }
}

#[test]
fn killed_editor_falls_back_to_previous_one() {
    for (agent, pids) in BOTH.into_iter().flat_map(|agent| PID_ORDERS.map(|pids| (agent, pids))) {
        let mut scene = Fixture::new();
        let _files = announce(&scene, three(&scene, pids));
        let [_, latest, older] = pids;
        for (dead, found) in [(latest, 4003), (older, 4002)] {
            let survivors = ALIVE.iter().filter(|pid| **pid != dead);
            scene.processes = survivors.fold(ProcessTable::default(), |table, pid| table.with(*pid, 1, "editor"));
            assert_eq!(ports(&scene.lookup(agent))[0], found, "{agent:?} {pids:?}");
        }
    }
}

#[test]
fn agent_in_editor_terminal_finds_that_editor() {
    for (agent, variable) in BOTH
        .into_iter()
        .zip(["GEMINI_CLI_IDE_SERVER_PORT", "QWEN_CODE_IDE_SERVER_PORT"])
    {
        let scene = Fixture::new().with(variable, "4001");
        let _files = announce(&scene, three(&scene, [500, 600, 700]));
        assert_eq!(ports(&scene.lookup(agent))[0], 4001, "{agent:?}");
    }
}

#[test]
fn standalone_companion_yields_to_editor() {
    for agent in BOTH {
        let scene = Fixture::new();
        let editor = companion(&scene, 4001, 500, "project", LastUse::of_editor(OLDEST.moment()));
        let alone = companion(&scene, 4002, 700, "project", LastUse::without_editor(LATEST.moment()));
        let mut files = announce(&scene, vec![alone, editor]);
        assert_eq!(ports(&scene.lookup(agent))[0], 4001, "{agent:?}");
        files.pop();
        assert_eq!(ports(&scene.lookup(agent)), [4002], "{agent:?}");
    }
}

/// The inner one is found in the inner folder only, the outer one everywhere else even though it was used earlier.
#[test]
fn nested_workspaces_prefer_most_recently_used() {
    for agent in BOTH {
        for (inner_use, outer_use, inside) in [(LATEST, OLDEST, 4002), (OLDEST, LATEST, 4001)] {
            let scene = Fixture::new();
            let outer = companion(&scene, 4001, 700, "project", LastUse::of_editor(outer_use.moment()));
            let inner = companion(&scene, 4002, 500, "project/src", LastUse::of_editor(inner_use.moment()));
            let _files = announce(&scene, vec![outer, inner]);
            assert_eq!(ports(&scene.look_from(agent, "project/src"))[0], inside, "{agent:?}");
            assert_eq!(ports(&scene.lookup(agent))[0], 4001, "{agent:?}");
        }
    }
}

#[test]
fn most_recently_used_has_largest_number_on_windows() {
    let scene = Fixture::new();
    let mut companions = three(&scene, [500, 600, 700]);
    number(&mut companions);
    let rule = &Dialect::of(McpAgent::Gemini.into()).files[0];
    let number = |companion: &Announcement| companion.number(rule, Platform::Windows);
    assert_eq!(companions.iter().map(number).collect::<Vec<_>>(), [1, 600, 1]);
}
