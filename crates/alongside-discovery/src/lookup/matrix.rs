//! The discovery matrix: what the real command lines were seen to do, case by case.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use alongside_core::dialect::AgentKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CONTAINER_HOST, Lookup, Outcome, Refusal, Verdict, gemini, qwen};
use crate::process::ProcessTable;
use crate::{Announcement, DiscoveryFiles, Environment, Platform};

/// Process ids that are alive in every scene.
const ALIVE: [u32; 3] = [500, 600, 700];
const FOREIGN: u32 = 800;
const DEAD: u32 = 424_242;
const BOTH: [AgentKind; 2] = [AgentKind::Gemini, AgentKind::Qwen];

/// A scratch machine: a home, a temporary directory, a project, some processes.
struct Scene {
    directory: TempDir,
    environment: Environment,
    processes: ProcessTable,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for name in ["project/src", "other", "tmp/gemini/ide", "home/.qwen/ide"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let environment = Environment {
            platform: Platform::Unix,
            pid: 100,
            ..Environment::new(root.join("home"), root.join("project"))
        };
        let environment = environment.with("TMPDIR", root.join("tmp").to_str().unwrap());
        let processes = ALIVE
            .iter()
            .fold(ProcessTable::default(), |table, pid| table.with(*pid, 1, "editor"));
        Self {
            directory,
            environment,
            processes: processes
                .with_foreign(FOREIGN)
                .with(100, 50, "node")
                .with(50, 40, "bash")
                .with(40, 30, "tmux"),
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.environment = self.environment.with(name, value);
        self
    }

    fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(below)
    }

    /// The JSON of an ordinary file.
    fn file(&self, port: u16, pid: u32) -> Value {
        json!({
            "port": port,
            "workspacePath": self.path("project"),
            "authToken": format!("token-{port}"),
            "ideInfo": { "name": "neovim", "displayName": "Neovim" },
            "ppid": pid,
        })
    }

    /// Puts a file where an agent looks.
    fn put(&self, agent: AgentKind, port: u16, pid: u32, contents: &Value) -> PathBuf {
        let path = match agent {
            AgentKind::Gemini => self.path(&format!("tmp/gemini/ide/gemini-ide-server-{pid}-{port}.json")),
            AgentKind::Qwen => self.path(&format!("home/.qwen/ide/{port}.lock")),
        };
        put_at(&path, contents);
        path
    }

    fn look(&self, agent: AgentKind) -> Lookup {
        self.look_from(agent, "project")
    }

    fn look_from(&self, agent: AgentKind, below: &str) -> Lookup {
        let here = self.path(below);
        match agent {
            AgentKind::Gemini => gemini(&self.environment, &self.processes, &here),
            AgentKind::Qwen => qwen(&self.environment, &self.processes, &here),
        }
    }
}

/// Puts a file somewhere, newer than all that were there before.
fn put_at(path: &Path, contents: &Value) {
    let count = fs::read_dir(path.parent().unwrap()).unwrap().count();
    fs::write(path, contents.to_string()).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + 10 * u64::try_from(count).unwrap());
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
}

fn without(mut file: Value, key: &str) -> Value {
    file.as_object_mut().unwrap().remove(key);
    file
}

fn with(mut file: Value, key: &str, value: impl Into<Value>) -> Value {
    file[key] = value.into();
    file
}

fn ports(lookup: &Lookup) -> Vec<u16> {
    lookup.targets().map(|target| target.port).collect()
}

fn tokens(lookup: &Lookup) -> Vec<Option<&str>> {
    lookup
        .targets()
        .map(|target| target.token.as_ref().map(super::Secret::reveal))
        .collect()
}

fn display_name(lookup: &Lookup) -> Option<&str> {
    lookup.identity.as_ref().map(|identity| identity.display_name.as_str())
}

fn refusal(lookup: &Lookup) -> &Refusal {
    lookup.refusal().unwrap_or_else(|| panic!("{:?}", lookup.outcome))
}

fn shown(lookup: &Lookup) -> String {
    refusal(lookup).shown().unwrap()
}

fn is_not_supported(lookup: &Lookup) -> bool {
    shown(lookup).starts_with("IDE integration is not supported in your current environment.")
}

/// Difference 8 and difference 24: no editor has to be known to the agents; `ideInfo` settles who it is.
#[test]
fn a_file_with_an_identity_connects_in_a_plain_terminal() {
    for agent in BOTH {
        let scene = Scene::new();
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
        let lookup = scene.look_from(agent, "project/src");
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(tokens(&lookup), [Some("token-4321")]);
        assert_eq!(display_name(&lookup), Some("Neovim"));
        let target = lookup.targets().next().unwrap();
        assert_eq!((target.host, target.pid), ("127.0.0.1", Some(500)));
    }
}

/// What we write is what they find: all rules of writing and of looking up meet here.
#[test]
fn both_agents_find_what_we_announce() {
    let scene = Scene::new();
    let announcement = Announcement {
        port: 4321,
        token: alongside_core::Token::from_bytes([7; 32]),
        workspace: vec![scene.path("other"), scene.path("project")],
        name: "neovim".to_owned(),
        display_name: "Neovim".to_owned(),
        pid: 500,
    };
    let files = DiscoveryFiles::write(&scene.environment, &announcement).unwrap();
    assert!(files.problems().is_empty());
    for agent in BOTH {
        let lookup = scene.look(agent);
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(tokens(&lookup), [Some(announcement.token.reveal())]);
        assert_eq!(lookup.candidates.len(), 1);
        let fields = lookup.candidates[0].fields.as_ref().unwrap();
        assert_eq!(fields.companion.as_deref(), Some("alongside"));
    }
}

#[test]
fn a_multi_root_lock_survives_qwens_cleaning() {
    let scene = Scene::new();
    let roots = format!("{}:{}", scene.path("project").display(), scene.path("other").display());
    let file = with(scene.file(4321, 500), "workspacePath", roots);
    scene.put(AgentKind::Qwen, 4321, 500, &file);
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [4321]);
    // Without `ppid`, which the specification does not ask for, it is deleted.
    let path = scene.put(AgentKind::Qwen, 4321, 500, &without(file, "ppid"));
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!(lookup.candidates[0].verdict, Verdict::DeletedWorkspaceGone);
    assert!(is_not_supported(&lookup));
    assert!(path.exists());
}

#[test]
fn a_port_may_be_a_number_or_a_text() {
    for agent in BOTH {
        let scene = Scene::new();
        scene.put(agent, 4321, 500, &with(scene.file(4321, 500), "port", "4321"));
        assert_eq!(ports(&scene.look(agent)), [4321]);
    }
}

#[test]
fn a_file_without_an_identity_is_not_supported_in_a_plain_terminal() {
    for agent in BOTH {
        let scene = Scene::new();
        let path = scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.look(agent);
        assert_eq!(*refusal(&lookup), Refusal::NoIdentity { agent, path });
        assert!(is_not_supported(&lookup));
    }
}

#[test]
fn a_file_without_an_identity_connects_in_vs_codes_terminal() {
    for agent in BOTH {
        let scene = Scene::new().with("TERM_PROGRAM", "vscode");
        let scene = Scene {
            processes: scene.processes.clone().with(30, 1, "/usr/share/code/code"),
            ..scene
        };
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.look(agent);
        assert_eq!(ports(&lookup), [4321]);
        assert_eq!(lookup.ide_process.pid, 30);
        assert_eq!(display_name(&lookup), Some("VS Code"));
    }
}

#[test]
fn a_file_without_an_identity_connects_in_zeds_terminal_for_gemini_only() {
    for agent in BOTH {
        let scene = Scene::new().with("ZED_SESSION_ID", "1");
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "ideInfo"));
        let lookup = scene.look(agent);
        match agent {
            AgentKind::Gemini => assert_eq!(display_name(&lookup), Some("Zed")),
            AgentKind::Qwen => assert!(is_not_supported(&lookup)),
        }
    }
}

/// Difference 3: the process id in Gemini's file name is only a sort key. Difference 22: Qwen Code sweeps hard.
#[test]
fn a_dead_process_id_is_a_sort_key_for_gemini_and_death_for_qwens_lock() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 4321, DEAD, &scene.file(4321, DEAD));
    }
    assert_eq!(ports(&scene.look(AgentKind::Gemini)), [4321]);
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!(lookup.candidates[0].verdict, Verdict::DeletedParentGone);
    assert!(matches!(refusal(&lookup), Refusal::FileDeleted { .. }));
    assert!(is_not_supported(&lookup));
    assert!(lookup.candidates[0].path.exists());
}

/// Difference 2: `ppid` must be a process of the same user; Qwen Code takes "not permitted" for dead.
#[test]
fn a_parent_of_another_user_is_death_for_qwens_lock() {
    let scene = Scene::new();
    scene.put(AgentKind::Qwen, 4321, FOREIGN, &scene.file(4321, FOREIGN));
    assert_eq!(
        scene.look(AgentKind::Qwen).candidates[0].verdict,
        Verdict::DeletedParentForeign
    );
    scene.put(AgentKind::Gemini, 4321, DEAD, &with(scene.file(4321, 0), "port", 1));
    scene.put(AgentKind::Gemini, 4321, FOREIGN, &scene.file(4321, 0));
    assert_eq!(ports(&scene.look(AgentKind::Gemini)), [4321]);
}

#[test]
fn variables_alone_are_not_supported_in_a_plain_terminal() {
    let scene = Scene::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "4321")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "secret")
        .with("GEMINI_CLI_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.look(AgentKind::Gemini);
    assert!(matches!(refusal(&lookup), Refusal::NoDiscoveryFile { .. }));
    assert!(is_not_supported(&lookup));
}

/// Difference 4, difference 6 and difference 7: in a known terminal Gemini CLI connects by its variables alone.
#[test]
fn variables_alone_connect_gemini_in_a_known_terminal() {
    let scene = Scene::new()
        .with("TERM_PROGRAM", "vscode")
        .with("GEMINI_CLI_IDE_SERVER_PORT", "4321")
        .with("GEMINI_CLI_IDE_AUTH_TOKEN", "secret")
        .with("GEMINI_CLI_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.look(AgentKind::Gemini);
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![Some("secret")]));
}

/// Difference 4: Qwen Code has a variable for the port and none for the token.
#[test]
fn variables_alone_bring_qwen_no_token() {
    let scene = Scene::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!((ports(&lookup), tokens(&lookup)), (vec![4321], vec![None]));
    let refused = lookup.token_refused(lookup.targets().next().unwrap());
    assert!(refused.to_string().contains("missing token"), "{refused}");
    assert!(refused.shown().unwrap().ends_with("Unauthorized"));
}

/// Difference 4: for Qwen Code the port variable is the first look-up.
#[test]
fn qwens_port_variable_names_its_file_without_any_cleaning() {
    let scene = Scene::new().with("QWEN_CODE_IDE_SERVER_PORT", "4321");
    scene.put(AgentKind::Qwen, 4321, DEAD, &scene.file(4321, DEAD));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)).first(), Some(&4321));
}

#[test]
fn naming_the_editors_process_does_not_replace_an_identity() {
    let scene = Scene::new().with("GEMINI_CLI_IDE_PID", "424242");
    scene.put(AgentKind::Gemini, 4321, DEAD, &without(scene.file(4321, 0), "ideInfo"));
    assert!(is_not_supported(&scene.look(AgentKind::Gemini)));
}

#[test]
fn of_two_companions_gemini_takes_the_larger_process_id_and_qwen_the_newer_file() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 1111, 700, &scene.file(1111, 700));
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert_eq!(ports(&lookup), [1111]);
    assert_eq!(lookup.candidates[1].verdict, Verdict::LostTie);
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!(ports(&lookup), [2222, 1111]);
    assert_eq!(tokens(&lookup), [Some("token-2222"), Some("token-1111")]);
    assert_eq!(lookup.candidates[1].verdict, Verdict::TriedLater);
}

#[test]
fn of_two_companions_the_port_variable_names_one() {
    let scene = Scene::new()
        .with("GEMINI_CLI_IDE_SERVER_PORT", "2222")
        .with("QWEN_CODE_IDE_SERVER_PORT", "1111");
    for agent in BOTH {
        scene.put(agent, 1111, 700, &scene.file(1111, 700));
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
    }
    assert_eq!(ports(&scene.look(AgentKind::Gemini))[0], 2222);
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!(ports(&lookup), [1111, 2222, 1111]);
}

#[test]
fn geminis_variable_for_the_process_breaks_the_tie() {
    let scene = Scene::new().with("GEMINI_CLI_IDE_PID", "500");
    scene.put(AgentKind::Gemini, 1111, 700, &scene.file(1111, 700));
    scene.put(AgentKind::Gemini, 2222, 500, &scene.file(2222, 500));
    assert_eq!(ports(&scene.look(AgentKind::Gemini)), [2222]);
}

#[test]
fn a_stale_file_of_a_living_process_hides_the_live_one_from_gemini_only() {
    let scene = Scene::new();
    let stale = with(
        scene.file(1111, 700),
        "ideInfo",
        json!({ "name": "stale", "displayName": "Stale" }),
    );
    for agent in BOTH {
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
        scene.put(agent, 1111, 700, &stale);
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert_eq!(ports(&lookup), [1111]);
    let stopped = lookup.nobody_answered();
    let path = lookup.chosen().unwrap().path.display().to_string();
    assert!(stopped.to_string().starts_with("a stale file of Stale"), "{stopped}");
    assert!(stopped.hint().contains(&path));
    assert!(
        stopped
            .shown()
            .unwrap()
            .starts_with("Failed to connect to IDE companion extension in Stale.")
    );
    let lookup = scene.look(AgentKind::Qwen);
    assert_eq!(ports(&lookup), [1111, 2222]);
    assert_eq!(lookup.targets().last().unwrap().display_name, "Stale");
}

#[test]
fn a_stale_file_of_a_dead_process_hides_nothing() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 2222, 500, &scene.file(2222, 500));
        scene.put(agent, 1111, DEAD, &scene.file(1111, DEAD));
        assert_eq!(ports(&scene.look(agent)), [2222]);
    }
}

#[test]
fn a_workspace_elsewhere_is_told_by_gemini_and_hidden_by_qwen() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
    }
    let project = scene.path("project");
    let lookup = scene.look_from(AgentKind::Gemini, "other");
    assert_eq!(lookup.candidates[0].verdict, Verdict::ChosenDespiteMismatch);
    assert_eq!(
        shown(&lookup),
        format!(
            "Directory mismatch. Gemini CLI is running in a different location than the open workspace in the IDE. Please \
             run the CLI from one of the following directories: {}",
            project.display()
        )
    );
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(matches!(refusal(&lookup), Refusal::WorkspaceElsewhere { roots, .. } if *roots == [project]));
    assert!(is_not_supported(&lookup));
}

#[test]
fn in_a_known_terminal_qwen_speaks_of_companions_elsewhere() {
    let scene = Scene::new().with("TERM_PROGRAM", "vscode");
    scene.put(AgentKind::Qwen, 4321, 500, &scene.file(4321, 500));
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(matches!(refusal(&lookup), Refusal::NoWorkspace { .. }));
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
    let scene = Scene::new()
        .with("TERM_PROGRAM", "vscode")
        .with("QWEN_CODE_IDE_SERVER_PORT", "4321")
        .with("QWEN_CODE_IDE_WORKSPACE_PATH", "/");
    scene.put(AgentKind::Qwen, 4321, 500, &scene.file(4321, 500));
    assert_eq!(ports(&scene.look_from(AgentKind::Qwen, "other")), [4321]);
    scene.put(AgentKind::Qwen, 4321, 500, &with(scene.file(4321, 500), "port", "4321"));
    let lookup = scene.look_from(AgentKind::Qwen, "other");
    assert!(matches!(refusal(&lookup), Refusal::EveryWorkspaceElsewhere { .. }));
}

#[test]
fn no_folder_is_told_by_gemini_and_hidden_by_qwen() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &with(scene.file(4321, 500), "workspacePath", ""));
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert_eq!(
        shown(&lookup),
        "To use this feature, please open a workspace folder in your IDE and try again."
    );
    assert!(matches!(
        refusal(&scene.look(AgentKind::Qwen)),
        Refusal::FileWithoutFolder { .. }
    ));
}

#[test]
fn a_file_without_a_workspace_leaves_gemini_without_one_and_is_passed_over_by_qwen() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "workspacePath"));
    }
    let lookup = scene.look(AgentKind::Gemini);
    assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension. Please ensure"));
    assert!(matches!(
        refusal(&scene.look(AgentKind::Qwen)),
        Refusal::FileWithoutWorkspace { .. }
    ));
    // As a last resort Qwen dials it after another one has failed.
    scene.put(AgentKind::Qwen, 1111, 500, &scene.file(1111, 500));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [1111, 4321]);
}

/// Difference 23: Gemini CLI ignores a file of another user; Qwen Code does not care.
#[cfg(unix)]
#[test]
fn gemini_ignores_another_users_file() {
    let scene = Scene::new();
    for agent in BOTH {
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
    }
    let environment = Environment {
        uid: scene.environment.uid.map(|uid| uid + 1),
        ..scene.environment.clone()
    };
    let scene = Scene { environment, ..scene };
    assert!(matches!(
        refusal(&scene.look(AgentKind::Gemini)),
        Refusal::ForeignFile { .. }
    ));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [4321]);
}

#[test]
fn a_file_of_the_old_name_wins_outright() {
    let scene = Scene::new();
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
    let scene = Scene::new();
    fs::create_dir_all(scene.path("tmp/qwen/ide")).unwrap();
    let path = scene.path("tmp/qwen/ide/qwen-code-ide-server-500-4321.json");
    put_at(&path, &scene.file(4321, 500));
    assert!(matches!(
        refusal(&scene.look(AgentKind::Qwen)),
        Refusal::NoDiscoveryFile { .. }
    ));
}

#[test]
fn in_a_container_gemini_dials_the_host_only_and_qwen_the_host_last() {
    for variable in [None, Some("SSH_CONNECTION"), Some("REMOTE_CONTAINERS")] {
        let scene = Scene::new();
        let environment = Environment {
            in_container: true,
            ..scene.environment.clone()
        };
        let scene = Scene { environment, ..scene };
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
        assert_eq!(matches!(stopped, Refusal::ContainersHost { .. }), variable.is_none());
    }
}

/// The trap of difference 7: the token of a stale file goes to the port of the variable.
#[test]
fn a_stale_file_lends_gemini_its_old_token() {
    let scene = Scene::new()
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
            .shown()
            .unwrap()
            .starts_with("Failed to connect to IDE companion extension in Neovim.")
    );
}

#[test]
fn a_file_that_is_no_json_is_ignored() {
    for agent in BOTH {
        let scene = Scene::new();
        let path = scene.put(agent, 4321, 500, &scene.file(4321, 500));
        fs::write(&path, "{").unwrap();
        assert_eq!(*refusal(&scene.look(agent)), Refusal::UnreadableFile { agent, path });
    }
}

#[test]
fn a_workspace_that_is_no_text_breaks_the_whole_search() {
    for agent in BOTH {
        let scene = Scene::new();
        scene.put(agent, 1111, 500, &scene.file(1111, 500));
        let path = scene.put(agent, 2222, 700, &with(scene.file(2222, 700), "workspacePath", 5));
        let lookup = scene.look(agent);
        assert_eq!(*refusal(&lookup), Refusal::SearchFails { agent, path });
        assert_eq!(refusal(&lookup).shown(), None);
    }
}

#[test]
fn a_broken_file_keeps_qwen_from_trying_others() {
    let scene = Scene::new();
    let path = scene.put(AgentKind::Qwen, 1111, 500, &Value::Null);
    scene.put(AgentKind::Qwen, 2222, 500, &scene.file(2222, 500));
    scene.put(AgentKind::Qwen, 3333, 500, &scene.file(3333, 500));
    assert_eq!(ports(&scene.look(AgentKind::Qwen)), [3333]);
    scene.put(AgentKind::Qwen, 3333, 500, &with(scene.file(3333, 500), "port", "odd"));
    let agent = AgentKind::Qwen;
    assert_eq!(*refusal(&scene.look(agent)), Refusal::SearchFails { agent, path });
}

/// Connecting searches anew, and by then the first search has deleted the file that would have been rejected.
#[test]
fn a_port_is_not_rejected_for_the_sake_of_a_file_that_qwen_deletes() {
    let scene = Scene::new()
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
        let scene = Scene::new();
        let nothing = scene.look(agent);
        scene.put(agent, 4321, 500, &scene.file(4321, 500));
        let elsewhere = scene.look_from(agent, "other");
        let connected = scene.look(agent);
        let target = connected.targets().next().unwrap();
        for refusal in [
            refusal(&nothing),
            refusal(&elsewhere),
            &connected.nobody_answered(),
            &connected.token_refused(target),
        ] {
            assert!(
                !refusal.to_string().is_empty() && !refusal.to_string().ends_with('.'),
                "{refusal}"
            );
            assert!(refusal.hint().ends_with('.'), "{}", refusal.hint());
            assert!(refusal.shown().is_some());
        }
    }
}

#[test]
fn a_file_without_a_port_leaves_nothing_to_dial() {
    for agent in BOTH {
        let scene = Scene::new();
        scene.put(agent, 4321, 500, &without(scene.file(4321, 500), "port"));
        let lookup = scene.look(agent);
        assert!(matches!(refusal(&lookup), Refusal::NothingToDial { .. }));
        assert!(shown(&lookup).starts_with("Failed to connect to IDE companion extension in Neovim."));
    }
}

#[test]
fn a_program_to_start_is_the_next_thing_after_the_port() {
    for agent in BOTH {
        let scene = Scene::new();
        let file = with(
            scene.file(4321, 500),
            "stdio",
            json!({ "command": "bridge", "args": ["-x"] }),
        );
        scene.put(agent, 4321, 500, &file);
        let Outcome::Dials(dials) = scene.look(agent).outcome else {
            panic!()
        };
        let last = format!("{:?}", dials.last().unwrap());
        assert_eq!(last, r#"Stdio { command: "bridge", arguments: ["-x"] }"#);
    }
}

#[test]
fn an_explanation_can_be_serialised_and_holds_no_token() {
    for agent in BOTH {
        let scene = Scene::new().with("TERM_PROGRAM", "vscode");
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
    let scene = Scene::new();
    let dead = scene.put(AgentKind::Qwen, 1111, DEAD, &scene.file(1111, DEAD));
    let foreign = scene.put(AgentKind::Qwen, 2222, FOREIGN, &scene.file(2222, FOREIGN));
    scene.look(AgentKind::Qwen);
    assert!(dead.exists() && foreign.exists());
}
