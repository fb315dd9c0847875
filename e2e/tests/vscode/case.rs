//! One test's folder and windows, on a server that the tests share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use alongside_e2e::mcp_agent::{Agent, announced_for};
use alongside_e2e::{Capability, CodeServer, Sandbox, proves};
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
    pub(crate) fn start(environment: impl FnOnce(&Sandbox) -> Vec<(String, String)>) -> Arc<Self> {
        let sandbox = Sandbox::new();
        CodeServer::set_up(&sandbox);
        if let Some(stub) = std::env::var_os("STUB") {
            let to = sandbox.path("home/.local/share/code-server/extensions");
            std::fs::create_dir_all(&to).expect("x");
            std::os::unix::fs::symlink(stub, to.join("alongside.alongside-0.0.1")).expect("x");
        } else {
            sandbox.install("code-server");
        }
        let server = CodeServer::start(&sandbox, &environment(&sandbox));
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
            let vehicle = Self::start(|_| Vec::new());
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

    /// The port and the token of the only window's companion.
    pub(crate) fn announced(&self) -> (u16, String) {
        announced_for(self.sandbox(), &self.folder, 1).remove(0)
    }

    /// Connects an agent to the only window.
    pub(crate) async fn agent(&self) -> Agent {
        Agent::connect(&self.announced()).await
    }
}

impl Window {
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| {
            let directory = artifacts();
            let _ = self.try_call("keep", &json!({"directory": directory}));
            panic!("{error}\nsee {}", directory.display())
        })
    }

    pub(crate) fn try_call(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.vehicle.browser.call(self.id, method, params)
    }

    /// Calls a method without parameters.
    pub(crate) fn ask(&self, method: &str) -> Value {
        self.call(method, &json!({}))
    }

    /// Opens a file with the cursor at a line and a column, both from 1.
    pub(crate) fn open_file(&self, path: &Path, line: u32, column: u32) {
        self.call("openFile", &json!({"path": path, "line": line, "column": column}));
    }

    /// Runs a command by its title in the palette.
    pub(crate) fn command(&self, title: &str) {
        self.call("command", &json!({"title": title}));
    }

    pub(crate) fn press(&self, key: &str) {
        self.call("press", &json!({"key": key}));
    }

    pub(crate) fn type_text(&self, text: &str) {
        self.call("type", &json!({"text": text}));
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

/// Records what the running test has proven.
pub(crate) fn vscode_proves(capability: Capability) {
    proves("VS Code (code-server)", &CodeServer::version(), capability);
}
