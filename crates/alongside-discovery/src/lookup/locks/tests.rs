//! Tests of the lookups with lock files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::fixture::{ALIVE, DEAD, Fixture, put_at, with, without};
use super::*;

impl Fixture {
    fn lock(&self, pid: u32) -> Value {
        json!({"pid": pid, "workspaceFolders": [self.path("project")], "ideName": "Neovim", "transport": "ws", "authToken": "t"})
    }

    fn put_lock(&self, port: u16, content: &Value) -> PathBuf {
        let path = self.path(&format!("home/.claude/ide/{port}.lock"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        put_at(&path, content);
        path
    }

    fn write(&self, below: &str, content: &Value) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
    }

    fn claude(&self, below: &str) -> LockLookup {
        claude(&self.environment, &self.processes, &self.path(below))
    }

    fn opencode(&self, below: &str) -> LockLookup {
        opencode(&self.environment, &self.processes, &self.path(below))
    }

    fn copilot(&self, below: &str) -> LockLookup {
        copilot(&self.environment, &self.processes, &self.path(below))
    }
}

fn port(lookup: &LockLookup) -> Option<u16> {
    match lookup.endpoint() {
        Some(Endpoint::WebSocket { port, .. }) => Some(*port),
        _ => None,
    }
}

fn problem(lookup: &LockLookup) -> String {
    match &lookup.outcome {
        LockOutcome::Fails(advice) => format!("{} {}", advice.message, advice.hint),
        other => panic!("{other:?}"),
    }
}

#[test]
fn claude_needs_a_step_unless_it_connects_by_itself() {
    let fixture = Fixture::new();
    fixture.put_lock(4000, &fixture.lock(ALIVE[0]));
    let found = fixture.claude("project/src");
    assert!(
        matches!(&found.outcome, LockOutcome::AfterStep { step, .. } if step.contains("/ide")),
        "{found:?}"
    );
    fixture.write("home/.claude.json", &json!({"autoConnectIde": true}));
    assert!(matches!(fixture.claude("project").outcome, LockOutcome::Connects(_)));
    let off = fixture.with("CLAUDE_CODE_AUTO_CONNECT_IDE", "false");
    assert!(matches!(off.claude("project").outcome, LockOutcome::AfterStep { .. }));
    let forced = off.with("CLAUDE_CODE_SSE_PORT", "4000");
    assert!(matches!(forced.claude("other").outcome, LockOutcome::Connects(_)));
}

#[test]
fn claude_in_a_terminal_of_vscode_connects_by_itself_to_that_window_only() {
    let mut fixture = Fixture::new().with("TERM_PROGRAM", "vscode");
    fixture.put_lock(4000, &fixture.lock(ALIVE[0]));
    fixture.put_lock(4001, &fixture.lock(ALIVE[1]));
    let lookup = fixture.claude("project");
    assert!(problem(&lookup).contains("no lock file"), "{lookup:?}");
    assert_eq!(lookup.candidates[0].status, LockStatus::OtherEditor);
    // The shell is between them.
    let own = fixture.environment.pid;
    fixture.processes = fixture
        .processes
        .with(own, own + 1, "claude")
        .with(own + 1, ALIVE[1], "bash");
    let lookup = fixture.claude("project");
    assert!(matches!(lookup.outcome, LockOutcome::Connects(_)), "{lookup:?}");
    assert_eq!(port(&lookup), Some(4001));
    let forced = fixture.with("CLAUDE_CODE_SSE_PORT", "4000");
    assert_eq!(port(&forced.claude("project")), Some(4000));
}

#[test]
fn two_live_lock_files_stop_claude_but_not_opencode() {
    let fixture = Fixture::new();
    fixture.put_lock(4000, &fixture.lock(ALIVE[0]));
    fixture.put_lock(4001, &fixture.lock(ALIVE[1]));
    assert!(problem(&fixture.claude("project")).contains("connects to none"));
    assert_eq!(port(&fixture.opencode("project")), Some(4001), "the newer one");
    let forced = fixture.with("CLAUDE_CODE_SSE_PORT", "4001");
    assert_eq!(port(&forced.claude("project")), Some(4001));
    assert!(problem(&forced.opencode("project")).contains("sends no token"));
}

#[test]
fn dead_lock_file_is_skipped_by_claude_and_stops_opencode() {
    let fixture = Fixture::new();
    fixture.put_lock(4000, &fixture.lock(ALIVE[0]));
    fixture.put_lock(4001, &fixture.lock(DEAD));
    let found = fixture.claude("project");
    assert_eq!(port(&found), Some(4000));
    assert_eq!(found.display_name.as_deref(), Some("Neovim"));
    assert_eq!(found.candidates[1].status, LockStatus::DeadProcess(DEAD.into()));
    assert!(problem(&fixture.opencode("project")).contains("whose editor has exited"));
}

#[test]
fn lock_file_of_another_folder_or_transport_does_not_match() {
    let fixture = Fixture::new();
    fixture.put_lock(4000, &with(fixture.lock(ALIVE[0]), "transport", "sse"));
    assert!(matches!(
        fixture.claude("project").candidates[0].status,
        LockStatus::Invalid(_)
    ));
    fixture.put_lock(4000, &fixture.lock(ALIVE[0]));
    for below in ["other", ""] {
        assert!(problem(&fixture.claude(below)).contains("no lock file"));
        assert!(problem(&fixture.opencode(below)).contains("no lock file"));
    }
    let unnamed = without(fixture.lock(ALIVE[0]), "pid");
    fixture.put_lock(4000, &unnamed);
    assert_eq!(port(&fixture.claude("project")), Some(4000));
}

/// C13: the default permission mode shows changes to no editor.
#[test]
fn claude_that_shows_no_changes_is_reported_unless_a_hook_reviews_them() {
    let fixture = Fixture::new();
    let advice = |fixture: &Fixture| fixture.claude("project").advice;
    assert!(advice(&fixture)[0].hint.contains("alongside install claude"));
    let settings = "home/.claude/settings.json";
    fixture.write(settings, &json!({"permissions": {"defaultMode": "default"}}));
    assert_eq!(advice(&fixture), []);
    let hook = |program: &str| {
        let command = format!("[ -x '{program}' ] || exit 0; '{program}' hook claude");
        json!({"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": command}]}]}})
    };
    let program = fixture.path("home/alongside");
    fixture.write(settings, &hook(program.to_str().unwrap()));
    assert!(advice(&fixture)[0].message.contains("does not exist"));
    fs::write(&program, "").unwrap();
    assert_eq!(advice(&fixture), []);
    fixture.write(
        settings,
        &with(hook(program.to_str().unwrap()), "disableAllHooks", true),
    );
    assert!(advice(&fixture)[0].message.contains("disableAllHooks"));
}

#[test]
fn copilot_connects_only_in_the_very_folder() {
    let fixture = Fixture::new();
    let socket = fixture.path("home/c.sock");
    let lock = json!({"socketPath": socket, "scheme": "unix", "headers": {"Authorization": "Nonce t"}, "pid": ALIVE[0],
        "ideName": "Neovim", "timestamp": 1, "workspaceFolders": [fixture.path("project")]});
    fixture.write("home/.copilot/ide/b.lock", &lock);
    assert_eq!(fixture.copilot("project").candidates[0].status, LockStatus::Unreachable);
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(matches!(fixture.copilot("project").outcome, LockOutcome::Connects(_)));
    for below in ["project/src", ""] {
        let problem = problem(&fixture.copilot(below));
        assert!(problem.contains(fixture.path("project").to_str().unwrap()), "{problem}");
        assert!(problem.contains("alongside run copilot"), "{problem}");
    }
    fixture.write("home/.copilot/ide/a.lock", &without(lock.clone(), "timestamp"));
    fixture.write("home/.copilot/ide/c.lock", &with(lock, "pid", DEAD));
    let found = fixture.copilot("project");
    let statuses: Vec<&LockStatus> = found.candidates.iter().map(|candidate| &candidate.status).collect();
    assert!(
        matches!(
            statuses[..],
            [LockStatus::Invalid(_), LockStatus::Chosen, LockStatus::DeadProcess(_)]
        ),
        "{statuses:?}"
    );
}

#[test]
fn codex_asks_the_shared_socket_if_its_directory_is_private() {
    let mut fixture = Fixture::new();
    let home = fixture.path("home");
    fixture.environment.uid = Some(rustix::process::getuid().as_raw());
    let look = |fixture: &Fixture| codex(&fixture.environment, &home);
    assert!(problem(&look(&fixture)).contains("no companion listens"));
    let directory = fixture.path("home/.codex/ipc");
    fs::create_dir_all(&directory).unwrap();
    let _listener = UnixListener::bind(directory.join("ipc.sock")).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(look(&fixture).outcome, LockOutcome::AfterStep { .. }));
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(look(&fixture).candidates[0].status, LockStatus::Invalid(_)));
}
