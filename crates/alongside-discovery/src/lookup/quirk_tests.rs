//! The rules beside the matrix: what the command lines' code does with less ordinary files and places.

use std::fs;

use alongside_core::dialect::AgentKind;
use serde_json::{Value, json};

use super::fixture::{BOTH, DEAD, FOREIGN, Fixture, failure, ports, put_at, shown, tokens, with, without};
use super::{CONTAINER_HOST, LookupFailure, LookupResult};
use crate::Environment;

#[test]
fn in_a_known_terminal_qwen_speaks_of_companions_elsewhere() {
    let scene = Fixture::new().with("TERM_PROGRAM", "vscode");
    scene.put(AgentKind::Qwen, 4321, 500, &scene.file(4321, 500));
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(matches!(failure(&lookup), LookupFailure::NoWorkspace { .. }));
    let scene = scene.with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(shown(&lookup).starts_with("Found IDE companion extension, but its workspace does not match"));
    let scene = scene.with("QWEN_CODE_IDE_WORKSPACE_PATH", "/elsewhere");
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(shown(&lookup).starts_with("Directory mismatch. Qwen Code is running"));
}

/// The set of rejected ports tells numbers from texts, the variable is a text, and our files hold numbers.
#[test]
fn qwen_dials_a_rejected_port_all_the_same_when_the_file_has_it_as_a_number() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    scene.put(AgentKind::Qwen, 4321, 500, &scene.file(4321, 500));
    assert_eq!(ports(&scene.look_from(AgentKind::Qwen, "other")), [4321]);
    scene.put(AgentKind::Qwen, 4321, 500, &with(scene.file(4321, 500), "port", "4321"));
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(matches!(
        failure(&lookup),
        LookupFailure::EveryWorkspaceElsewhere { .. }
    ));
}

#[test]
fn no_folder_is_told_by_gemini_and_hidden_by_qwen() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &with(scene.file(4321, 500), "workspacePath", ""));
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert_eq!(
        shown(&lookup),
        "To use this feature, please open a workspace folder in your IDE and try again."
    );
    assert!(matches!(
        failure(&scene.look(AgentKind::Qwen)),
        LookupFailure::FileWithoutFolder { .. }
    ));
}

#[test]
fn a_file_without_a_workspace_leaves_gemini_without_one_and_is_passed_over_by_qwen() {
    let scene = Fixture::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "workspacePath"));
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension. Please ensure"));
    assert!(matches!(
        failure(&scene.look(AgentKind::Qwen)),
        LookupFailure::FileWithoutWorkspace { .. }
    ));
    // As a last resort Qwen dials it after another one has failed.
    scene.put(AgentKind::Qwen, 1111, 500, &scene.file(1111, 500));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [1111, 4321]);
}

/// Difference 23: Gemini CLI ignores a file of another user; Qwen Code does not care.
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
        failure(&scene.look(AgentKind::Gemini)),
        LookupFailure::ForeignFile { .. }
    ));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [4321]);
}

#[test]
fn a_file_of_the_old_name_wins_outright() {
    let scene = Fixture::new();
    scene.put(AgentKind::Gemini, 2222, 500, &scene.file(2222, 500));
    put_at(
        &scene.path("tmp/gemini/ide/gemini-ide-server-30.json"),
        &scene.file(1111, 30),
    );
    assert_eq!(ports(&scene.look(AgentKind::Gemini)), [1111]);
    scene.put(AgentKind::Qwen, 2222, 500, &scene.file(2222, 500));
    put_at(&scene.path("tmp/qwen-code-ide-server-30.json"), &scene.file(1111, 30));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [1111, 2222]);
}

/// Difference 1: the place that the specification gives Qwen Code is never read.
#[test]
fn qwen_does_not_read_the_specifications_place() {
    let scene = Fixture::new();
    fs::create_dir_all(scene.path("tmp/qwen/ide")).unwrap();
    let path = scene.path("tmp/qwen/ide/qwen-code-ide-server-500-4321.json");
    put_at(&path, &scene.file(4321, 500));
    assert!(matches!(
        failure(&scene.look(AgentKind::Qwen)),
        LookupFailure::NoDiscoveryFile { .. }
    ));
}

#[test]
fn in_a_container_gemini_dials_the_host_only_and_qwen_the_host_last() {
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
            let lookup = scene.look(agent);
            lookup.targets().map(|target| target.host).collect::<Vec<_>>()
        };
        let local = if variable.is_some() {
            "127.0.0.1"
        } else {
            CONTAINER_HOST
        };
        assert_eq!(hosts(AgentKind::Gemini), [local]);
        assert_eq!(hosts(AgentKind::Qwen), ["127.0.0.1", CONTAINER_HOST]);
        let stopped = scene.look(AgentKind::Gemini).nobody_answered();
        assert_eq!(
            matches!(stopped, LookupFailure::ContainersHost { .. }),
            variable.is_none()
        );
    }
}

/// The trap of difference 7: the token of a stale file goes to the port of the variable.
#[test]
fn a_stale_file_lends_gemini_its_old_token() {
    let scene = Fixture::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "2222")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "right");
    let path = scene.put(AgentKind::Gemini, 1111, DEAD, &scene.file(1111, DEAD));
    let lookup = scene.look(AgentKind::Gemini);
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
fn a_file_that_is_no_json_is_ignored() {
    for agent in BOTH {
        let scene = Fixture::new();
        let path = scene.put(agent, 4321, 500, &scene.file(4321, 500));
        fs::write(&path, "{").unwrap();
        assert_eq!(
            *failure(&scene.look(agent)),
            LookupFailure::UnreadableFile { agent, path }
        );
    }
}

#[test]
fn a_workspace_that_is_no_text_breaks_the_whole_search() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 1111, 500, &scene.file(1111, 500));
        let path = scene.put(agent, 2222, 700, &with(scene.file(2222, 700), "workspacePath", 5));
        let lookup = scene.look(agent);
        assert_eq!(*failure(&lookup), LookupFailure::SearchFails { agent, path });
        assert_eq!(failure(&lookup).agent_message(), None);
    }
}

#[test]
fn a_broken_file_keeps_qwen_from_trying_others() {
    let scene = Fixture::new();
    let path = scene.put(AgentKind::Qwen, 1111, 500, &Value::Null);
    scene.put(AgentKind::Qwen, 2222, 500, &scene.file(2222, 500));
    scene.put(AgentKind::Qwen, 3333, 500, &scene.file(3333, 500));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [3333]);
    scene.put(AgentKind::Qwen, 3333, 500, &with(scene.file(3333, 500), "port", "odd"));
    let agent = AgentKind::Qwen;
    assert_eq!(*failure(&scene.look(agent)), LookupFailure::SearchFails { agent, path });
}

/// Connecting searches anew, and by then the first search has deleted the file that would have been rejected.
#[test]
fn a_port_is_not_rejected_for_the_sake_of_a_file_that_qwen_deletes() {
    let scene = Fixture::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let file = with(scene.file(4321, DEAD), "port", "4321");
    scene.put(AgentKind::Qwen, 4321, DEAD, &file);
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![None]));
    scene.put(
        AgentKind::Qwen,
        4321,
        0,
        &with(without(file, "ppid"), "workspacePath", 5),
    );
    assert_eq!(ports(&scene.look_from(AgentKind::Qwen, "other")), [4321]);
}

#[test]
fn every_refusal_says_what_stops_the_agent_and_what_to_do() {
    for agent in BOTH {
        let scene = Fixture::new();
        let nothing = scene.look(agent);
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
        let elsewhere = scene.look_from(agent, "other");
        let connected = scene.look(agent);
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
fn a_file_without_a_port_leaves_nothing_to_dial() {
    for agent in BOTH {
        let scene = Fixture::new();
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "port"));
        let lookup = scene.look(agent);
        assert!(matches!(failure(&lookup), LookupFailure::NothingToDial { .. }));
        assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension in Neovim."));
    }
}

#[test]
fn a_program_to_start_is_the_next_thing_after_the_port() {
    for agent in BOTH {
        let scene = Fixture::new();
        let file = with(
            scene.file(4321, 500),
            "stdio",
            json!({ "command": "bridge", "args": ["-x"] }),
        );
        scene.put(agent, 4321, 500, &file);
        let LookupResult::Connects(dials) = scene.look(agent).outcome else {
            panic!()
        };
        let last = format!("{:?}", dials.last().unwrap());
        assert_eq!(last, r#"Stdio { command: "bridge", arguments: ["-x"] }"#);
    }
}

#[test]
fn an_explanation_can_be_serialised_and_holds_no_token() {
    for agent in BOTH {
        let scene = Fixture::new().with("TERM_PROGRAM", "vscode");
        scene.put(agent, 1111, 500, &scene.file(1111, 500));
        scene.put(agent, 2222, 700, &scene.file(2222, 700));
        let lookup = scene.look(agent);
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
fn looking_changes_nothing() {
    let scene = Fixture::new();
    let dead = scene.put(AgentKind::Qwen, 1111, DEAD, &scene.file(1111, DEAD));
    let foreign = scene.put(AgentKind::Qwen, 2222, FOREIGN, &scene.file(2222, FOREIGN));
    scene.look(AgentKind::Qwen);
    assert!(dead.exists() && foreign.exists());
}
