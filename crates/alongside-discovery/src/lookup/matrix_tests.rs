//! The discovery matrix: observed behavior of the real agents, case by case.

use alongside_core::dialect::McpAgent;
use serde_json::json;

use super::fixture::{
    BOTH, DEAD, FOREIGN, Fixture, display_name, failure, is_not_supported, ports, shown, tokens, with, without,
};
use super::{CandidateStatus, LookupFailure};
use crate::{Announcement, DiscoveryFiles, LastUse};

/// Difference 8 and difference 24: agents need not know the editor; `ideInfo` identifies it.
#[test]
fn file_with_ide_info_connects_in_plain_terminal() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
        let lookup = scene.look_from(agent, "project/src");
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(tokens(&lookup), [Some("token-4321")]);
        assert_eq!(display_name(&lookup), Some("Neovim"));
        let target = lookup.targets().next().unwrap();
        assert_eq!((target.host, target.pid), ("127.0.0.1", Some(500)));
    }
}

/// End to end: the lookup finds exactly the files we write.
#[test]
fn both_agents_find_our_files() {
    let scene = Fixture::new();
    let announcement = Announcement {
        port: 4321,
        token: alongside_core::Secret::from_bytes([7; 32]),
        workspace: vec![scene.path("other"), scene.path("project")],
        aliases: Vec::new(),
        socket: None,
        directories: Vec::new(),
        name: "neovim".to_owned(),
        display_name: "Neovim".to_owned(),
        pid: 500,
        last_use: LastUse::default(),
        sorts_by_pid: true,
        is_first: true,
    };
    let files = DiscoveryFiles::write(&scene.environment, &announcement).unwrap();
    assert!(files.problems().is_empty());
    for agent in BOTH {
        let lookup = scene.lookup(agent);
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(tokens(&lookup), [Some(announcement.token.reveal())]);
        assert_eq!(lookup.candidates.len(), 1);
        let fields = lookup.candidates[0].fields.as_ref().unwrap();
        assert_eq!(fields.companion.as_deref(), Some("alongside"));
    }
}

#[test]
fn multi_root_lock_survives_qwen_cleanup() {
    let scene = Fixture::new();
    let roots = format!("{}:{}", scene.path("project").display(), scene.path("other").display());
    let file = with(scene.file(4321, 500), "workspacePath", roots);
    scene.put(McpAgent::Qwen, 4321, 500, &file);
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)), [4321]);
    // Without `ppid`, which the specification does not require, it is deleted.
    let path = scene.put(McpAgent::Qwen, 4321, 500, &without(file, "ppid"));
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!(lookup.candidates[0].verdict, CandidateStatus::DeletedWorkspaceGone);
    assert!(is_not_supported(&lookup));
    assert!(path.exists());
}

#[test]
fn port_may_be_number_or_string() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 4321, 500, &with(scene.file(4321, 500), "port", "4321"));
        assert_eq!(ports(&scene.lookup(agent)), [4321]);
    }
}

#[test]
fn file_without_ide_info_fails_in_plain_terminal() {
    for agent in BOTH {
        let scene = Fixture::new();
        let path = scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.lookup(agent);
        assert_eq!(*failure(&lookup), LookupFailure::NoIdentity { agent, path });
        assert!(is_not_supported(&lookup));
    }
}

#[test]
fn file_without_ide_info_connects_in_vscode_terminal() {
    for agent in BOTH {
        let scene = Fixture::new().with("TERM_PROGRAM", "vscode");
        let scene = Fixture {
            processes: scene.processes.clone().with(30, 1, "/usr/share/code/code"),
            ..scene
        };
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.lookup(agent);
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(lookup.ide_process.pid, 30);
        assert_eq!(display_name(&lookup), Some("VS Code"));
    }
}

#[test]
fn file_without_ide_info_connects_only_gemini_in_zed_terminal() {
    for agent in BOTH {
        let scene = Fixture::new().with("ZED_SESSION_ID", "1");
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.lookup(agent);
        match agent {
            McpAgent::Gemini => assert_eq!(display_name(&lookup), Some("Zed")),
            McpAgent::Qwen => assert!(is_not_supported(&lookup)),
        }
    }
}

/// Difference 3: the PID in Gemini's file name is only a sort key. Difference 22: Qwen Code deletes aggressively.
#[test]
fn dead_pid_sorts_for_gemini_and_deletes_for_qwen() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, DEAD, &scene.file(4321, DEAD));
    }
    assert_eq!(ports(&scene.lookup(McpAgent::Gemini)), [4321]);
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!(lookup.candidates[0].verdict, CandidateStatus::DeletedParentGone);
    assert!(matches!(failure(&lookup), LookupFailure::FileDeleted { .. }));
    assert!(is_not_supported(&lookup));
    assert!(lookup.candidates[0].path.exists());
}

/// Difference 2: `ppid` must be a process of the same user; Qwen Code treats "not permitted" as dead.
#[test]
fn qwen_deletes_lock_with_foreign_ppid() {
    let scene = Fixture::new();
    scene.put(McpAgent::Qwen, 4321, FOREIGN, &scene.file(4321, FOREIGN));
    assert_eq!(
        scene.lookup(McpAgent::Qwen).candidates[0].verdict,
        CandidateStatus::DeletedParentForeign
    );
    scene.put(McpAgent::Gemini, 4321, DEAD, &with(scene.file(4321, 0), "port", 1));
    scene.put(McpAgent::Gemini, 4321, FOREIGN, &scene.file(4321, 0));
    assert_eq!(ports(&scene.lookup(McpAgent::Gemini)), [4321]);
}

#[test]
fn variables_alone_fail_in_plain_terminal() {
    let scene = Fixture::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "4321")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "secret")
        .with("GEMINI_CLI_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.lookup(McpAgent::Gemini);
    assert!(matches!(failure(&lookup), LookupFailure::NoDiscoveryFile { .. }));
    assert!(is_not_supported(&lookup));
}

/// Difference 4, difference 6 and difference 7: in a known terminal Gemini CLI connects with its variables alone.
#[test]
fn variables_alone_connect_gemini_in_known_terminal() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("GEMINI_CLI_IDE_SERVER_PORT", "4321")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "secret")
        .with("GEMINI_CLI_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.lookup(McpAgent::Gemini);
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![Some("secret")]));
}

/// Difference 4: Qwen Code has a variable for the port and none for the token.
#[test]
fn variables_alone_leave_qwen_without_token() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![None]));
    let refused = lookup.token_refused(lookup.targets().next().unwrap());
    assert!(refused.to_string().contains("without a token"), "{refused}");
    assert!(refused.agent_message().unwrap().ends_with("Unauthorized"));
}

/// Difference 4: Qwen Code checks the port variable first.
#[test]
fn qwen_port_variable_selects_file_without_cleanup() {
    let scene = Fixture::new().with("QWEN_CODE_IDE_SERVER_PORT", "4321");
    scene.put(McpAgent::Qwen, 4321, DEAD, &scene.file(4321, DEAD));
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)).first(), Some(&4321));
}

#[test]
fn pid_variable_does_not_replace_ide_info() {
    let scene = Fixture::new().with("GEMINI_CLI_IDE_PID", "424242");
    scene.put(McpAgent::Gemini, 4321, DEAD, &without(scene.file(4321, 0), "ideInfo"));
    assert!(is_not_supported(&scene.lookup(McpAgent::Gemini)));
}

#[test]
fn gemini_prefers_larger_pid_and_qwen_newer_file() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 1111, 700, &scene.file(1111, 700));
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
    }
    let lookup = scene.lookup(McpAgent::Gemini);
    assert_eq!(ports(&lookup), [1111]);
    assert_eq!(lookup.candidates[1].verdict, CandidateStatus::LostTie);
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!(ports(&lookup), [2222, 1111]);
    assert_eq!(tokens(&lookup), [Some("token-2222"), Some("token-1111")]);
    assert_eq!(lookup.candidates[1].verdict, CandidateStatus::TriedLater);
}

#[test]
fn port_variable_selects_one_of_two_companions() {
    let scene = Fixture::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "2222")
        .with("QWEN_CODE_IDE_SERVER_PORT", "1111");
    for agent in BOTH {
        scene.put(agent, 1111, 700, &scene.file(1111, 700));
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
    }
    assert_eq!(ports(&scene.lookup(McpAgent::Gemini))[0], 2222);
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!(ports(&lookup), [1111, 2222, 1111]);
}

#[test]
fn gemini_pid_variable_breaks_the_tie() {
    let scene = Fixture::new().with("GEMINI_CLI_IDE_PID", "500");
    scene.put(McpAgent::Gemini, 1111, 700, &scene.file(1111, 700));
    scene.put(McpAgent::Gemini, 2222, 500, &scene.file(2222, 500));
    assert_eq!(ports(&scene.lookup(McpAgent::Gemini)), [2222]);
}

#[test]
fn stale_file_with_live_pid_hides_companion_from_gemini_only() {
    let scene = Fixture::new();
    let stale = with(
        scene.file(1111, 700),
        "ideInfo",
        json!({ "name": "stale", "displayName": "Stale" }),
    );
    for agent in BOTH {
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
        scene.put(agent, 1111, 700, &stale);
    }
    let lookup = scene.lookup(McpAgent::Gemini);
    assert_eq!(ports(&lookup), [1111]);
    let stopped = lookup.nobody_answered();
    let path = lookup.chosen().unwrap().path.display().to_string();
    assert!(
        stopped.to_string().starts_with("a stale discovery file from Stale"),
        "{stopped}"
    );
    assert!(stopped.hint().contains(&path));
    assert!(
        stopped
            .agent_message()
            .unwrap()
            .starts_with("Failed to connect to IDE companion extension in Stale.")
    );
    let lookup = scene.lookup(McpAgent::Qwen);
    assert_eq!(ports(&lookup), [1111, 2222]);
    assert_eq!(lookup.targets().last().unwrap().display_name, "Stale");
}

#[test]
fn stale_file_with_dead_pid_hides_nothing() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
        scene.put(agent, 1111, DEAD, &scene.file(1111, DEAD));
        assert_eq!(ports(&scene.lookup(agent)), [2222]);
    }
}

#[test]
fn gemini_reports_other_workspace_and_qwen_does_not() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
    }
    let project = scene.path("project");
    let lookup = scene.look_from(McpAgent::Gemini, "other");
    assert_eq!(lookup.candidates[0].verdict, CandidateStatus::ChosenDespiteMismatch);
    assert_eq!(
        shown(&lookup),
        format!(
            "Directory mismatch. Gemini CLI is running in a different location than the open workspace in the IDE. Please \
             run the CLI from one of the following directories: {}",
            project.display()
        )
    );
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert!(matches!(failure(&lookup), LookupFailure::WorkspaceElsewhere { roots, .. } if *roots == [project]));
    assert!(is_not_supported(&lookup));
}
