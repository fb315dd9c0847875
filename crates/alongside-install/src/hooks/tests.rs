//! Hooks are installed, updated and removed without a trace.

use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, PROGRAM};

fn file(scene: &Fixture, agent: HookAgent) -> PathBuf {
    place(agent, &scene.context()).unwrap()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const WITH_HOOKS: &str = "{\n\t\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]},\n\t\"x\": 1 }";

#[test]
fn install_twice_is_one_entry_and_uninstall_leaves_the_same_bytes() {
    for agent in HookAgent::ALL {
        for before in [None, Some("{}"), Some("{\n  \"a\": [1]\n}\n"), Some(WITH_HOOKS)] {
            if agent == HookAgent::Opencode && before.is_some() {
                continue;
            }
            let scene = Fixture::on(Platform::Unix);
            let path = file(&scene, agent);
            if let Some(before) = before {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, before).unwrap();
            }
            let dry = install_hook(agent, Tools::Keep, &scene.context(), Mode::DryRun).0;
            assert_eq!(dry.outcome, InstallOutcome::Planned, "{dry:?}");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
            assert_eq!(hook_status(agent, &scene.context()).state, InstallState::Absent);

            let first = install_hook(agent, Tools::Keep, &scene.context(), Mode::Real).0;
            assert_eq!(first.outcome, InstallOutcome::Done, "{first:?}");
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(hook_status(agent, &scene.context()).state, InstallState::Installed);
            let second = install_hook(agent, Tools::Keep, &scene.context(), Mode::Real).0;
            assert_eq!(second.outcome, InstallOutcome::Unchanged, "{second:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            if before == Some(WITH_HOOKS) {
                assert!(text.contains("\"mine\""), "{text}");
                assert!(first.steps[0].backup.is_some() && first.steps[0].difference.is_some());
            }

            let removed = uninstall_hook(agent, &scene.context(), Mode::Real).0;
            assert_eq!(removed.outcome, InstallOutcome::Done, "{removed:?}");
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), before, "{agent:?}");
            assert_eq!(
                scene.count_files(),
                usize::from(before.is_some()),
                "{agent:?}: something is left"
            );
            if before.is_none() {
                assert_eq!(
                    fs::read_dir(scene.home()).unwrap().count(),
                    0,
                    "{agent:?}: a directory is left"
                );
            }
            let again = uninstall_hook(agent, &scene.context(), Mode::Real).0;
            assert_eq!(again.outcome, InstallOutcome::Unchanged, "{again:?}");
        }
    }
}

#[test]
fn uninstall_removes_only_our_entries_from_changed_settings() {
    let scene = Fixture::on(Platform::Unix);
    let agent = HookAgent::Claude;
    let path = file(&scene, agent);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, WITH_HOOKS).unwrap();
    install_hook(agent, Tools::Keep, &scene.context(), Mode::Real);
    let mut settings = read_json(&path);
    settings["later"] = json!(true);
    // The user adds a hook to our group.
    let groups = settings["hooks"]["PreToolUse"].as_array_mut().unwrap();
    let hooks = groups[1]["hooks"].as_array_mut().unwrap();
    hooks.push(json!({ "type": "command", "command": "also mine" }));
    fs::write(&path, settings.to_string()).unwrap();
    let report = uninstall_hook(agent, &scene.context(), Mode::Real).0;
    assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
    let mut expected: Value = serde_json::from_str(WITH_HOOKS).unwrap();
    expected["later"] = json!(true);
    expected["hooks"]["PreToolUse"].as_array_mut().unwrap().push(json!({
        "matcher": "Edit|Write|MultiEdit|NotebookEdit",
        "hooks": [{ "type": "command", "command": "also mine" }],
    }));
    assert_eq!(read_json(&path), expected);
}

#[test]
fn entry_of_another_version_is_replaced() {
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Codex);
    install_hook(HookAgent::Codex, Tools::Keep, &scene.context(), Mode::Real);
    let old = fs::read_to_string(&path).unwrap().replace("86400", "600");
    fs::write(&path, old.replace("/opt/alongside/bin", "/old/bin")).unwrap();
    let status = hook_status(HookAgent::Codex, &scene.context());
    assert_eq!(status.state, InstallState::Outdated);
    assert_eq!(status.program, Some("/old/bin/alongside".into()));
    let sentence = "Hook installed, but its program /old/bin/alongside no longer exists; run";
    assert!(status.sentence.starts_with(sentence), "{}", status.sentence);
    let report = install_hook(HookAgent::Codex, Tools::Keep, &scene.context(), Mode::Real).0;
    assert_eq!(report.outcome, InstallOutcome::Done);
    let settings = read_json(&path);
    assert_eq!(
        settings["hooks"]["PreToolUse"].as_array().unwrap().len(),
        1,
        "{settings}"
    );
    assert_eq!(settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"], 86_400);
}

#[test]
fn settings_that_do_not_parse_are_left_alone() {
    for (text, reason) in [
        ("{", "Unterminated object"),
        ("[]", "it is not an object"),
        ("{\"hooks\": 1}", "its `hooks` is not an object"),
        (
            "{\"hooks\": {\"PreToolUse\": {}}}",
            "its `hooks.PreToolUse` is not a list",
        ),
    ] {
        let scene = Fixture::on(Platform::Unix);
        let path = file(&scene, HookAgent::Claude);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let report = install_hook(HookAgent::Claude, Tools::Keep, &scene.context(), Mode::Real).0;
        assert_eq!(report.outcome, InstallOutcome::Refused);
        assert!(report.sentence.contains(reason), "{}", report.sentence);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn timeouts_are_in_each_agents_unit() {
    let timeout = |agent, pointer: &str| {
        let scene = Fixture::on(Platform::Unix);
        install_hook(agent, Tools::Keep, &scene.context(), Mode::Real);
        read_json(&file(&scene, agent)).pointer(pointer).cloned()
    };
    assert_eq!(
        timeout(HookAgent::Claude, "/hooks/PreToolUse/0/hooks/0/timeout"),
        Some(json!(86_400))
    );
    assert_eq!(
        timeout(HookAgent::Codex, "/hooks/PreToolUse/0/hooks/0/timeout"),
        Some(json!(86_400))
    );
    assert_eq!(
        timeout(HookAgent::Copilot, "/hooks/preToolUse/0/timeoutSec"),
        Some(json!(86_400))
    );
    for (agent, event) in [
        (HookAgent::Gemini, "BeforeTool"),
        (HookAgent::Qwen, "PreToolUse"),
        (HookAgent::Qwen, "PermissionRequest"),
    ] {
        let value = timeout(agent, &format!("/hooks/{event}/0/hooks/0/timeout"));
        assert_eq!(value, Some(json!(86_400_000)), "more than 2^31 would be no time at all");
    }
}

#[test]
fn setting_and_hook_of_one_agent_are_removed_together() {
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Gemini);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{ \"a\": 1 } // mine\n").unwrap();
    let (report, connected) = install_hook(HookAgent::Gemini, Tools::Keep, &scene.context(), Mode::Real);
    assert_eq!(report.outcome, InstallOutcome::Done);
    assert_eq!(connected.map(|report| report.outcome), Some(InstallOutcome::Done));
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\"enabled\": true") && text.contains("BeforeTool"),
        "{text}"
    );
    let (_, disconnected) = uninstall_hook(HookAgent::Gemini, &scene.context(), Mode::Real);
    assert_eq!(disconnected.map(|report| report.outcome), Some(InstallOutcome::Done));
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ \"a\": 1 } // mine\n");
    assert_eq!(scene.count_files(), 1);
}

#[test]
fn codex_forgets_that_it_trusted_the_hook() {
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Codex);
    let own = path.with_file_name("config.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&own, "model = \"x\"\n").unwrap();
    install_hook(HookAgent::Codex, Tools::Keep, &scene.context(), Mode::Real);
    let table = |event: &str| {
        format!(
            "\n[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"y\"\n",
            path.display()
        )
    };
    let trusted = format!(
        "model = \"x\"\n\n[hooks.state]\n{}{}",
        table("pre_tool_use"),
        table("user_prompt_submit")
    );
    fs::write(&own, trusted).unwrap();
    let report = uninstall_hook(HookAgent::Codex, &scene.context(), Mode::Real).0;
    assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
    assert_eq!(fs::read_to_string(&own).unwrap(), "model = \"x\"\n");
    assert_eq!(scene.count_files(), 1, "something is left");
}

#[test]
fn users_own_plugin_is_left_alone() {
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Opencode);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "// mine\n").unwrap();
    for report in [
        install_hook(HookAgent::Opencode, Tools::Keep, &scene.context(), Mode::Real).0,
        uninstall_hook(HookAgent::Opencode, &scene.context(), Mode::Real).0,
    ] {
        assert!(report.steps.is_empty(), "{report:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "// mine\n");
}

#[test]
fn disabled_hooks_are_mentioned() {
    for (agent, text) in [
        (HookAgent::Claude, "{\"disableAllHooks\": true}"),
        (HookAgent::Gemini, "{\"hooksConfig\": {\"enabled\": false}}"),
    ] {
        let scene = Fixture::on(Platform::Unix);
        let path = file(&scene, agent);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let remarks = install_hook(agent, Tools::Keep, &scene.context(), Mode::Real).0.remarks;
        assert!(remarks[0].contains("disable all hooks"), "{remarks:?}");
    }
}

#[test]
fn tools_are_registered_once_and_removed_without_a_trace() {
    for agent in [HookAgent::Gemini, HookAgent::Qwen] {
        let script = "if [ -x '/opt/alongside/bin/alongside' ]; then exec '/opt/alongside/bin/alongside' mcp-stdio --tools; \
                      else exec alongside mcp-stdio --tools; fi";
        let mut server = json!({ "command": "sh", "args": ["-c", script] });
        if agent == HookAgent::Qwen {
            server["alwaysLoadTools"] = json!(true);
        }
        for before in [
            None,
            Some("{}"),
            Some("{\n\t// mine\n\t\"mcpServers\": { \"other\": {\"command\": \"x\"} } }"),
            Some(WITH_HOOKS),
        ] {
            for is_hook_first in [false, true] {
                let scene = Fixture::on(Platform::Unix);
                let path = file(&scene, agent);
                if let Some(before) = before {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, before).unwrap();
                }
                let install = |tools, mode| install_hook(agent, tools, &scene.context(), mode).0;
                if is_hook_first {
                    let report = install(Tools::Keep, Mode::Real);
                    let remarks = report.remarks.join("\n");
                    assert!(
                        remarks.contains(&format!("install {} --tools", agent.id())),
                        "{remarks}"
                    );
                    assert_eq!(hook_status(agent, &scene.context()).tools, Some(false));
                }
                let unchanged = fs::read_to_string(&path).ok();
                let dry = install(Tools::Register, Mode::DryRun);
                assert_eq!(dry.outcome, InstallOutcome::Planned, "{dry:?}");
                assert_eq!(fs::read_to_string(&path).ok(), unchanged);

                let first = install(Tools::Register, Mode::Real);
                assert_eq!(first.outcome, InstallOutcome::Done, "{first:?}");
                assert!(!first.remarks.join("\n").contains("--tools"), "{first:?}");
                let text = fs::read_to_string(&path).unwrap();
                let settings: Value = serde_json::from_str(&text.replace("// mine", "")).unwrap();
                assert_eq!(settings["mcpServers"]["alongside"], server, "{text}");
                assert_eq!(settings["mcpServers"].get("other").is_some(), text.contains("// mine"));
                let status = hook_status(agent, &scene.context());
                assert_eq!((status.state, status.tools), (InstallState::Installed, Some(true)));
                for tools in [Tools::Register, Tools::Keep] {
                    assert_eq!(install(tools, Mode::Real).outcome, InstallOutcome::Unchanged);
                }
                assert_eq!(fs::read_to_string(&path).unwrap(), text);

                let removed = uninstall_hook(agent, &scene.context(), Mode::Real).0;
                assert_eq!(removed.outcome, InstallOutcome::Done, "{removed:?}");
                assert_eq!(fs::read_to_string(&path).ok().as_deref(), before, "{agent:?}");
                assert_eq!(
                    scene.count_files(),
                    usize::from(before.is_some()),
                    "{agent:?}: something is left"
                );
            }
        }
    }
}

#[test]
fn foreign_server_with_our_name_is_left_alone() {
    for (text, reason) in [
        (
            "{\"mcpServers\": {\"alongside\": {\"command\": \"/bin/other\"}}}",
            "another server named `alongside`",
        ),
        (
            "{\"mcpServers\": {\"alongside\": {\"command\": \"alongside\", \"args\": [\"mcp-stdio\", \"--tools\"]}}}",
            "another server named `alongside`",
        ),
        (
            "{\"mcpServers\": {\"alongside\": {\"command\": \"sh\", \"args\": [\"-c\", \"exec alongside mcp-stdio --tools\"]}}}",
            "another server named `alongside`",
        ),
        (
            "{\"mcpServers\": {\"alongside\": 1}}",
            "another server named `alongside`",
        ),
        ("{\"mcpServers\": []}", "its `mcpServers` is not an object"),
    ] {
        let text = text.replacen('{', "{\"ide\": {\"enabled\": true}, ", 1);
        let scene = Fixture::on(Platform::Unix);
        let path = file(&scene, HookAgent::Gemini);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        let report = install_hook(HookAgent::Gemini, Tools::Register, &scene.context(), Mode::Real).0;
        assert_eq!(report.outcome, InstallOutcome::Refused, "{report:?}");
        assert!(report.sentence.contains(reason), "{}", report.sentence);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);

        let entry = |path: &Path| read_json(path)["mcpServers"].clone();
        let before = entry(&path);
        let hook = install_hook(HookAgent::Gemini, Tools::Keep, &scene.context(), Mode::Real).0;
        assert_eq!(
            hook.outcome,
            InstallOutcome::Done,
            "the hook does not need it: {hook:?}"
        );
        assert_eq!(hook_status(HookAgent::Gemini, &scene.context()).tools, Some(false));
        assert_eq!(entry(&path), before);
        // Changed since, so that it is not simply restored.
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\n").unwrap();
        uninstall_hook(HookAgent::Gemini, &scene.context(), Mode::Real);
        assert_eq!(entry(&path), before);
    }
}

#[test]
fn moved_program_is_updated_in_registered_tools() {
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Qwen);
    install_hook(HookAgent::Qwen, Tools::Register, &scene.context(), Mode::Real);
    let mut settings = read_json(&path);
    let script = settings["mcpServers"]["alongside"]["args"][1]
        .as_str()
        .unwrap()
        .to_owned();
    settings["mcpServers"]["alongside"]["args"][1] = json!(script.replace("/opt/alongside/", "/it'\\''s old/"));
    settings["mcpServers"]["alongside"]["trust"] = json!(true);
    fs::write(&path, settings.to_string()).unwrap();
    assert_eq!(
        hook_status(HookAgent::Qwen, &scene.context()).state,
        InstallState::Outdated
    );
    let report = install_hook(HookAgent::Qwen, Tools::Keep, &scene.context(), Mode::Real).0;
    assert_eq!(report.outcome, InstallOutcome::Done);
    let server = &read_json(&path)["mcpServers"]["alongside"];
    assert_eq!(server["args"][1], script.as_str());
    assert_eq!(server["trust"], true, "the user's own choice stays");
    uninstall_hook(HookAgent::Qwen, &scene.context(), Mode::Real);
    assert_eq!(read_json(&path).get("mcpServers"), None);
}

#[test]
fn tools_are_refused_for_agents_that_do_not_need_them() {
    for (agent, advice) in [
        (HookAgent::Claude, "has the editor's tools when it is connected"),
        (HookAgent::Copilot, "has the editor's tools when it is connected"),
        (HookAgent::Codex, "add `alongside mcp-stdio --tools`"),
        (HookAgent::Opencode, "add `alongside mcp-stdio --tools`"),
    ] {
        let scene = Fixture::on(Platform::Unix);
        let report = install_hook(agent, Tools::Register, &scene.context(), Mode::Real).0;
        assert_eq!(report.outcome, InstallOutcome::Refused);
        assert!(report.sentence.contains(advice), "{}", report.sentence);
        assert_eq!(scene.count_files(), 0);
        assert_eq!(hook_status(agent, &scene.context()).tools, None);
    }
}

/// The installed command in a real shell, with a program that answers, fails, is killed, or is gone.
#[cfg(unix)]
#[test]
fn command_denies_unless_the_program_answers_or_is_gone() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("it's alongside");
    let run = || {
        let command = definition::review_command(HookAgent::Claude, &program);
        // No other program of that name may be on the PATH.
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &command])
            .env("PATH", scratch.path())
            .output()
            .unwrap()
    };
    let gone = run();
    assert_eq!((gone.status.code(), gone.stdout.as_slice()), (Some(0), &b""[..]));
    for (script, code, stdout) in [
        ("#!/bin/sh\necho \"$@\"\n", 0, "hook claude\n"),
        ("#!/bin/sh\nexit 1\n", 2, ""),
        ("#!/bin/sh\nexit 101\n", 2, ""),
        ("#!/bin/sh\nkill -9 $$\n", 2, ""),
    ] {
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let output = run();
        assert_eq!(output.status.code(), Some(code), "{script}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), stdout);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.contains("nothing was written"), code == 2, "{stderr}");
    }
}

#[test]
fn hook_of_an_earlier_version_is_replaced_and_removed() {
    let earlier = "[ -x '/old/alongside' ] || exit 0; '/old/alongside' hook claude";
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": earlier }] }] } });
    let scene = Fixture::on(Platform::Unix);
    let path = file(&scene, HookAgent::Claude);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, settings.to_string()).unwrap();
    assert_eq!(
        hook_status(HookAgent::Claude, &scene.context()).state,
        InstallState::Outdated
    );
    install_hook(HookAgent::Claude, Tools::Keep, &scene.context(), Mode::Real);
    let installed = read_json(&path);
    assert_eq!(installed["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    assert!(!installed.to_string().contains("/old/"), "{installed}");
    let status = hook_status(HookAgent::Claude, &scene.context());
    assert_eq!(status.program, Some(scene.context().program));
    uninstall_hook(HookAgent::Claude, &scene.context(), Mode::Real);
    assert!(!fs::read_to_string(&path).unwrap_or_default().contains("hook claude"));
}

#[test]
fn status_names_the_program_of_every_hook() {
    let scene = Fixture::on(Platform::Unix);
    for agent in HookAgent::ALL {
        assert_eq!(hook_status(agent, &scene.context()).program, None, "{agent:?}");
        install_hook(agent, Tools::Keep, &scene.context(), Mode::Real);
        let moved = InstallContext {
            program: "/elsewhere/alongside".into(),
            ..scene.context()
        };
        let status = hook_status(agent, &moved);
        assert_eq!(status.state, InstallState::Outdated, "{agent:?}");
        assert_eq!(status.program, Some(PROGRAM.into()), "{agent:?}");
    }
}
