//! Rules outside the matrix: how the agents handle unusual files and locations.

use std::fs;

use alongside_core::dialect::McpAgent;
use serde_json::{Value, json};

use super::fixture::{BOTH, DEAD, FOREIGN, Fixture, failure, ports, put_at, shown, tokens, with, without};
use super::{CONTAINER_HOST, LookupFailure, LookupResult};
use crate::Environment;

#[test]
fn qwen_in_known_terminal_reports_companions_elsewhere() {
    let scene = Fixture::new().with("TERM_PROGRAM", "vscode");
    scene.put(McpAgent::Qwen, 4321, 500, &scene.file(4321, 500));
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert!(matches!(failure(&lookup), LookupFailure::NoWorkspace { .. }));
    let scene = scene.with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert!(shown(&lookup).starts_with("Found IDE companion extension, but its workspace does not match"));
    let scene = scene.with("QWEN_CODE_IDE_WORKSPACE_PATH", "/elsewhere");
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert!(shown(&lookup).starts_with("Directory mismatch. Qwen Code is running"));
}

/// Qwen Code's set of rejected ports distinguishes numbers from strings; the variable is a string, our files have
/// numbers.
#[test]
fn qwen_tries_rejected_port_given_as_number() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    scene.put(McpAgent::Qwen, 4321, 500, &scene.file(4321, 500));
    assert_eq!(ports(&scene.look_from(McpAgent::Qwen, "other")), [4321]);
    scene.put(McpAgent::Qwen, 4321, 500, &with(scene.file(4321, 500), "port", "4321"));
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert!(matches!(
        failure(&lookup),
        LookupFailure::EveryWorkspaceElsewhere { .. }
    ));
}

#[test]
fn gemini_reports_missing_folder_and_qwen_does_not() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &with(scene.file(4321, 500), "workspacePath", ""));
    }
    let lookup = scene.lookup(McpAgent::Gemini);
    assert_eq!(
        shown(&lookup),
        "To use this feature, please open a workspace folder in your IDE and try again."
    );
    assert!(matches!(
        failure(&scene.lookup(McpAgent::Qwen)),
        LookupFailure::FileWithoutFolder { .. }
    ));
}

#[test]
fn file_without_workspace_stops_gemini_and_is_skipped_by_qwen() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "workspacePath"));
    }
    let lookup = scene.lookup(McpAgent::Gemini);
    assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension. Please ensure"));
    assert!(matches!(
        failure(&scene.lookup(McpAgent::Qwen)),
        LookupFailure::FileWithoutWorkspace { .. }
    ));
    // As a last resort Qwen Code tries it after another one has failed.
    scene.put(McpAgent::Qwen, 1111, 500, &scene.file(1111, 500));
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)), [1111, 4321]);
}

/// Difference 23: Gemini CLI ignores another user's file; Qwen Code does not check.
#[cfg(unix)]
#[test]
fn gemini_ignores_another_users_file() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
    }
    let environment = Environment {
        uid: scene.environment.uid.map(|uid| uid + 1),
        ..scene.environment.clone()
    };
    let scene = Fixture { environment, ..scene };
    assert!(matches!(
        failure(&scene.lookup(McpAgent::Gemini)),
        LookupFailure::ForeignFile { .. }
    ));
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)), [4321]);
}

#[test]
fn legacy_file_always_wins() {
    let scene = Fixture::new();
    scene.put(McpAgent::Gemini, 2222, 500, &scene.file(2222, 500));
    put_at(
        &scene.path("tmp/gemini/ide/gemini-ide-server-30.json"),
        &scene.file(1111, 30),
    );
    assert_eq!(ports(&scene.lookup(McpAgent::Gemini)), [1111]);
    scene.put(McpAgent::Qwen, 2222, 500, &scene.file(2222, 500));
    put_at(&scene.path("tmp/qwen-code-ide-server-30.json"), &scene.file(1111, 30));
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)), [1111, 2222]);
}

/// Difference 1: Qwen Code never reads the location in the specification.
#[test]
fn qwen_ignores_location_in_specification() {
    let scene = Fixture::new();
    fs::create_dir_all(scene.path("tmp/qwen/ide")).unwrap();
    let path = scene.path("tmp/qwen/ide/qwen-code-ide-server-500-4321.json");
    put_at(&path, &scene.file(4321, 500));
    assert!(matches!(
        failure(&scene.lookup(McpAgent::Qwen)),
        LookupFailure::NoDiscoveryFile { .. }
    ));
}

#[test]
fn container_host_is_geminis_only_and_qwens_last_target() {
    for variable in [None, Some("SSH_CONNECTION"), Some("REMOTE_CONTAINERS")] {
        let scene = Fixture::new();
        let environment = Environment {
            in_container: true,
            ..scene.environment.clone()
        };
        let scene = Fixture { environment, ..scene };
        let scene = match variable {
            Some(variable) => scene.with(variable, "x"),
            None => scene,
        };
        let hosts = |agent| {
            scene.put(agent, 4321, 500, &scene.file(4321, 500));
            let lookup = scene.lookup(agent);
            lookup.targets().map(|target| target.host).collect::<Vec<_>>()
        };
        let local = if variable.is_some() {
            "127.0.0.1"
        } else {
            CONTAINER_HOST
        };
        assert_eq!(hosts(McpAgent::Gemini), [local]);
        assert_eq!(hosts(McpAgent::Qwen), ["127.0.0.1", CONTAINER_HOST]);
        let stopped = scene.lookup(McpAgent::Gemini).nobody_answered();
        assert_eq!(
            matches!(stopped, LookupFailure::ContainersHost { .. }),
            variable.is_none()
        );
    }
}

/// The trap of difference 7: a stale file's token is sent to the variable's port.
#[test]
fn gemini_uses_token_of_stale_file() {
    let scene = Fixture::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "2222")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "right");
    let path = scene.put(McpAgent::Gemini, 1111, DEAD, &scene.file(1111, DEAD));
    let lookup = scene.lookup(McpAgent::Gemini);
    assert_eq!(ports(&lookup), [1111, 2222]);
    assert_eq!(tokens(&lookup), [Some("token-1111"); 2]);
    let refused = lookup.token_refused(lookup.targets().last().unwrap());
    assert!(refused.hint().contains(&path.display().to_string()));
    assert!(
        refused
            .agent_message()
            .unwrap()
            .starts_with("Failed to connect to IDE companion extension in Neovim.")
    );
}

#[test]
fn non_json_file_is_ignored() {
    for agent in BOTH {
        let scene = Fixture::new();
        let path = scene.put(agent, 4321, 500, &scene.file(4321, 500));
        fs::write(&path, "{").unwrap();
        assert_eq!(
            *failure(&scene.lookup(agent)),
            LookupFailure::UnreadableFile { agent, path }
        );
    }
}

#[test]
fn non_string_workspace_aborts_lookup() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 1111, 500, &scene.file(1111, 500));
        let path = scene.put(agent, 2222, 700, &with(scene.file(2222, 700), "workspacePath", 5));
        let lookup = scene.lookup(agent);
        assert_eq!(*failure(&lookup), LookupFailure::SearchFails { agent, path });
        assert_eq!(failure(&lookup).agent_message(), None);
    }
}

#[test]
fn broken_file_stops_qwen_fallbacks() {
    let scene = Fixture::new();
    let path = scene.put(McpAgent::Qwen, 1111, 500, &Value::Null);
    scene.put(McpAgent::Qwen, 2222, 500, &scene.file(2222, 500));
    scene.put(McpAgent::Qwen, 3333, 500, &scene.file(3333, 500));
    assert_eq!(ports(&scene.lookup(McpAgent::Qwen)), [3333]);
    scene.put(McpAgent::Qwen, 3333, 500, &with(scene.file(3333, 500), "port", "odd"));
    let agent = McpAgent::Qwen;
    assert_eq!(
        *failure(&scene.lookup(agent)),
        LookupFailure::SearchFails { agent, path }
    );
}

/// Connecting repeats the lookup, and by then the first lookup has deleted the file that would have rejected the port.
#[test]
fn file_deleted_by_qwen_rejects_no_port() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let file = with(scene.file(4321, DEAD), "port", "4321");
    scene.put(McpAgent::Qwen, 4321, DEAD, &file);
    let lookup = scene.look_from(McpAgent::Qwen, "other");
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![None]));
    scene.put(
        McpAgent::Qwen,
        4321,
        0,
        &with(without(file, "ppid"), "workspacePath", 5),
    );
    assert_eq!(ports(&scene.look_from(McpAgent::Qwen, "other")), [4321]);
}

#[test]
fn every_failure_has_reason_and_hint() {
    for agent in BOTH {
        let scene = Fixture::new();
        let nothing = scene.lookup(agent);
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
        let elsewhere = scene.look_from(agent, "other");
        let connected = scene.lookup(agent);
        let target = connected.targets().next().unwrap();
        for failure in [
            failure(&nothing),
            failure(&elsewhere),
            &connected.nobody_answered(),
            &connected.token_refused(target),
        ] {
            assert!(
                !failure.to_string().is_empty() && !failure.to_string().ends_with('.'),
                "{failure}"
            );
            assert!(failure.hint().ends_with('.'), "{}", failure.hint());
            assert!(failure.agent_message().is_some());
        }
    }
}

#[test]
fn file_without_port_has_no_target() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "port"));
        let lookup = scene.lookup(agent);
        assert!(matches!(failure(&lookup), LookupFailure::NothingToDial { .. }));
        assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension in Neovim."));
    }
}

#[test]
fn stdio_command_follows_the_port() {
    for agent in BOTH {
        let scene = Fixture::new();
        let file = with(
            scene.file(4321, 500),
            "stdio",
            json!({ "command": "bridge", "args": ["-x"] }),
        );
        scene.put(agent, 4321, 500, &file);
        let LookupResult::Connects(dials) = scene.lookup(agent).outcome else {
            panic!()
        };
        let last = format!("{:?}", dials.last().unwrap());
        assert_eq!(last, r#"Stdio { command: "bridge", arguments: ["-x"] }"#);
    }
}

#[test]
fn serialized_lookup_has_no_token() {
    for agent in BOTH {
        let scene = Fixture::new().with("TERM_PROGRAM", "vscode");
        scene.put(agent, 1111, 500, &scene.file(1111, 500));
        scene.put(agent, 2222, 700, &scene.file(2222, 700));
        let lookup = scene.lookup(agent);
        let text = serde_json::to_string(&lookup).unwrap();
        assert!(text.contains("\"hasToken\":true"), "{text}");
        assert!(!text.contains("token-1111") && !text.contains("token-2222"), "{text}");
        assert!(!format!("{lookup:?}").contains("token-2222"));
        let elsewhere = scene.look_from(agent, "other");
        let text = serde_json::to_string(&elsewhere).unwrap();
        assert!(text.contains("\"rule\":"), "{text}");
    }
}

#[test]
fn lookup_changes_no_files() {
    let scene = Fixture::new();
    let dead = scene.put(McpAgent::Qwen, 1111, DEAD, &scene.file(1111, DEAD));
    let foreign = scene.put(McpAgent::Qwen, 2222, FOREIGN, &scene.file(2222, FOREIGN));
    scene.lookup(McpAgent::Qwen);
    assert!(dead.exists() && foreign.exists());
}
