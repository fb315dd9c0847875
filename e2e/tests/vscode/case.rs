//! One test's folder and windows, on a server that the tests share.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use alongside_e2e::mcp_agent::{Agent, Announced, announced_for};
use alongside_e2e::{Capability, CodeServer, Sandbox, TIMEOUT, alongside, eventually, proves};
use serde_json::{Value, json};

use crate::browser::{Browser, artifacts};

/// code-server with the extension, and a browser. The order is that of ending.
pub(crate) struct Vehicle {
    browser: Browser,
    _server: CodeServer,
    pub(crate) sandbox: Sandbox,
}

/// A folder of its own.
pub(crate) struct Case {
    vehicle: Arc<Vehicle>,
    pub(crate) folder: PathBuf,
}

/// A window, closed on drop.
pub(crate) struct Window {
    vehicle: Arc<Vehicle>,
    id: u64,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl Vehicle {
    /// Installs the extension as a user does, and starts everything.
    pub(crate) fn start(sandbox: Sandbox, environment: &[(String, String)]) -> Arc<Self> {
        CodeServer::set_up(&sandbox);
        sandbox.install("code-server");
        let server = CodeServer::start(&sandbox, environment);
        let browser = Browser::start(&sandbox, &server);
        Arc::new(Self {
            browser,
            _server: server,
            sandbox,
        })
    }

    /// The running one, or a new one if no test uses it: then the last one has ended, and left nothing behind.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Vehicle>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let vehicle = Self::start(Sandbox::new(), &[]);
            *shared = Arc::downgrade(&vehicle);
            vehicle
        })
    }
}

impl Case {
    /// An empty folder, on the shared server.
    pub(crate) fn new() -> Self {
        Self::on(Vehicle::shared())
    }

    pub(crate) fn on(vehicle: Arc<Vehicle>) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = vehicle.sandbox.workspace().join(format!("folder-{number}"));
        fs::create_dir(&folder).expect("create the folder");
        Self { vehicle, folder }
    }

    /// The whole workspace of the sandbox, which is also the daemon's.
    pub(crate) fn whole(vehicle: Arc<Vehicle>) -> Self {
        let folder = vehicle.sandbox.workspace();
        Self { vehicle, folder }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.vehicle.sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("create its directory");
        fs::write(&path, text).expect("write a file");
        path
    }

    /// Settings of this folder.
    pub(crate) fn write_settings(&self, settings: &Value) {
        self.write(".vscode/settings.json", &settings.to_string());
    }

    /// Opens the folder in a window, and waits until the extension runs.
    pub(crate) fn open(&self) -> Window {
        let window = Window {
            vehicle: Arc::clone(&self.vehicle),
            id: NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        window.call("open", &json!({"folder": self.folder}));
        window
    }

    /// Opens a workspace file with these folders in a window, and waits until the extension runs.
    pub(crate) fn open_workspace(&self, folders: &[&Path]) -> Window {
        let window = Window {
            vehicle: Arc::clone(&self.vehicle),
            id: NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        let workspace = self.write_workspace(folders);
        window.call("open", &json!({"workspace": workspace}));
        window
    }

    /// Writes the workspace file; an open window notices.
    pub(crate) fn write_workspace(&self, folders: &[&Path]) -> PathBuf {
        let folders: Vec<Value> = folders.iter().map(|folder| json!({"path": folder})).collect();
        self.write("all.code-workspace", &json!({"folders": folders}).to_string())
    }

    /// The only window's companion.
    pub(crate) fn companion(&self) -> Announced {
        self.companions(1).remove(0)
    }

    /// The windows' companions.
    pub(crate) fn companions(&self, count: usize) -> Vec<Announced> {
        announced_for(self.sandbox(), &self.folder, count)
    }

    /// Connects an agent to the only window.
    pub(crate) async fn agent(&self) -> Agent {
        Agent::connect(&self.companion().port_and_token).await
    }

    /// Runs `alongside` in the folder, and parses its JSON output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut command = self.sandbox().command(alongside());
        let output = command.args(arguments).arg("--json").current_dir(&self.folder).output();
        let output = output.expect("start alongside");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    }

    /// The number of pending changes.
    pub(crate) fn pending(&self) -> usize {
        let list = self.json(&["diff", "list"]);
        list.as_array().expect("`diff list --json` prints an array").len()
    }
}

impl Window {
    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        // Not a closure: the panic has the test's line.
        match self.try_call(method, params) {
            Ok(answer) => answer,
            Err(error) => {
                let directory = artifacts();
                let _ = self.try_call("keep", &json!({"directory": directory}));
                let shown = ["tabs", "lenses"].map(|what| self.try_call(what, &json!({})));
                panic!("{error}\nshown: {shown:?}\nsee {}", directory.display())
            }
        }
    }

    pub(crate) fn try_call(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.vehicle.browser.call(self.id, method, params)
    }

    /// Calls a method without parameters.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str) -> Value {
        self.call(method, &json!({}))
    }

    /// Opens a file with the cursor at a line and a column, both from 1.
    #[track_caller]
    pub(crate) fn open_file(&self, path: &Path, line: u32, column: u32) {
        self.call("openFile", &json!({"path": path, "line": line, "column": column}));
    }

    /// Runs a command by its title in the palette.
    #[track_caller]
    pub(crate) fn command(&self, title: &str) {
        self.call("command", &json!({"title": title}));
    }

    #[track_caller]
    pub(crate) fn press(&self, key: &str) {
        self.call("press", &json!({"key": key}));
    }

    #[track_caller]
    pub(crate) fn type_text(&self, text: &str) {
        self.call("type", &json!({"text": text}));
    }

    /// Waits until a change is pending, and shows the only one in a diff.
    #[track_caller]
    pub(crate) fn show_review(&self) {
        self.call("statusWith", &json!({"text": "1 change"}));
        self.command("Alongside: Review Change…");
        self.ask("diff");
    }

    /// Waits until a visible line of the draft has exactly this text.
    #[track_caller]
    pub(crate) fn wait_for_draft_line(&self, text: &str) {
        self.call("draftLine", &json!({"text": text}));
    }

    /// Types at the end of the draft's line with this text.
    #[track_caller]
    pub(crate) fn type_after(&self, line: &str, text: &str) {
        self.call("clickDraft", &json!({"text": line}));
        self.type_text(text);
        self.wait_for_draft_line(&format!("{line}{text}"));
    }

    /// Clicks a lens; `index` counts those with this text, from the top.
    #[track_caller]
    pub(crate) fn click_lens(&self, text: &str, index: usize) {
        self.call("clickLens", &json!({"text": text, "index": index}));
    }

    /// The states of the hunks in the lenses, from the top.
    #[track_caller]
    pub(crate) fn hunk_states(&self) -> Vec<String> {
        let lenses = self.ask("lenses");
        let lenses = lenses.as_array().expect("lenses are a list").iter();
        let state = |lens: &Value| {
            let text = lens.as_str().expect("a lens has a text");
            let states = ["Accepted", "Rejected", "Edited", "Your edit", "Conflict"];
            states.into_iter().find(|state| text.contains(state)).map(str::to_owned)
        };
        lenses.filter_map(state).collect()
    }

    /// Waits until the hunks have these states.
    #[track_caller]
    pub(crate) fn wait_for_states(&self, wanted: &[&str]) {
        let reached = |limit| eventually(limit, || (self.hunk_states() == wanted).then_some(()));
        let reached = reached(Duration::from_secs(10)).or_else(|| {
            self.ask("focusAgain");
            reached(TIMEOUT)
        });
        assert!(reached.is_some(), "not {wanted:?} but {:?}", self.ask("lenses"));
    }

    /// Takes a picture for the extension's README, if asked for one.
    pub(crate) fn picture(&self, name: &str) {
        self.take_picture(name, &Value::Null);
    }

    /// The same, of the side bar only.
    pub(crate) fn picture_of_side_bar(&self, name: &str) {
        self.take_picture(name, &json!("sidebar"));
    }

    fn take_picture(&self, name: &str, part: &Value) {
        if let Some(directory) = env::var_os("ALONGSIDE_PICTURES") {
            let path = PathBuf::from(directory).join(format!("{name}.png"));
            self.call("screenshot", &json!({"path": path, "part": part}));
        }
    }

    /// Accepts the active review, and returns the accepted text.
    pub(crate) async fn accept(&self, agent: &mut Agent) -> String {
        let decision = decision_by(agent, || self.press("Control+Enter")).await;
        assert_eq!(decision["method"], "ide/diffAccepted", "{decision}");
        self.ask("noDiff");
        let content = decision["params"]["content"].as_str();
        content.expect("an accepted change has a content").to_owned()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.try_call("keep", &json!({"directory": artifacts()}));
        }
        let _ = self.try_call("close", &json!({}));
    }
}

/// Acts until there is a decision: one right after a change appeared is ignored.
pub(crate) async fn decision_by(agent: &mut Agent, mut act: impl FnMut()) -> Value {
    for _ in 0..5 {
        act();
        // Long enough for a busy machine: a second key would arrive in another editor.
        if let Some(decision) = agent.decision_within(Duration::from_secs(10)).await {
            return decision;
        }
    }
    panic!("no decision arrived")
}

/// Records what the running test has proven.
pub(crate) fn vscode_proves(capability: Capability) {
    proves("VS Code (code-server)", &CodeServer::version(), capability);
}
