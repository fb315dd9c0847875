//! The real programs, in directories of their own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use alongside_agent::acp::AgentProcess;
use alongside_agent::daemon::DaemonAddress;
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

const QWEN: &str = "@qwen-code/qwen-code/cli-entry.js";
const GEMINI: &str = "@google/gemini-cli/bundle/gemini.js";

/// Directories that nothing else uses, and the settings of the programs in them.
pub(crate) struct Place {
    directory: TempDir,
    model: u16,
}

impl Place {
    pub(crate) fn new(model: u16) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self { directory, model };
        for name in ["workspace", "home/.qwen", "home/.gemini"] {
            std::fs::create_dir_all(place.path(name)).unwrap();
        }
        let provider = |id: &str| json!({"id": id, "name": id, "baseUrl": format!("http://127.0.0.1:{model}/v1"), "envKey": "FAKE_KEY"});
        let qwen = json!({"security": {"auth": {"selectedType": "openai"}}, "model": {"name": "fake-a"},
            "modelProviders": {"openai": [provider("fake-a"), provider("fake-b")]},
            "general": {"enableAutoUpdate": false}, "telemetry": {"enabled": false}});
        std::fs::write(place.path("home/.qwen/settings.json"), qwen.to_string()).unwrap();
        let gemini =
            json!({"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": true}});
        std::fs::write(place.path("home/.gemini/settings.json"), gemini.to_string()).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        // The system's directory for temporary files may be a link; programs say where it leads.
        alongside_platform::path::real(self.directory.path())
            .unwrap()
            .join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    fn environment(&self) -> Vec<(String, String)> {
        let node = node();
        let path = std::env::var("PATH").unwrap_or_default();
        let model = format!("http://127.0.0.1:{}", self.model);
        [
            ("HOME", self.path("home").display().to_string()),
            ("PATH", format!("{}:{path}", node.parent().unwrap().display())),
            ("FAKE_KEY", "fake-key".to_owned()),
            ("GEMINI_API_KEY", "fake-key".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", model),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    pub(crate) fn qwen(&self) -> AgentProcess {
        self.process(QWEN, &["--acp"])
    }

    pub(crate) fn gemini(&self) -> AgentProcess {
        self.process(GEMINI, &["--acp", "-m", "gemini-2.5-flash"])
    }

    fn process(&self, script: &str, arguments: &[&str]) -> AgentProcess {
        let script = modules().join(script).display().to_string();
        let arguments: Vec<&str> = std::iter::once(script.as_str())
            .chain(arguments.iter().copied())
            .collect();
        let mut process = AgentProcess::new(node(), &arguments);
        process.environment = self.environment();
        process
    }
}

/// A `qwen serve` that runs.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) port: u16,
    scheme: &'static str,
}

impl Daemon {
    /// Starts it on a port, or on any for 0.
    pub(crate) async fn start(place: &Place, port: u16, token: Option<&str>) -> Self {
        Self::start_command(place, port, token, None).await
    }

    pub(crate) async fn start_with_tls(place: &Place, certificate: &Path, key: &Path) -> Self {
        Self::start_command(place, 0, None, Some((certificate, key))).await
    }

    async fn start_command(place: &Place, port: u16, token: Option<&str>, tls: Option<(&Path, &Path)>) -> Self {
        let mut command = Command::new(node());
        command
            .arg(modules().join(QWEN))
            .args(["serve", "--port", &port.to_string(), "--workspace"])
            .arg(place.workspace())
            .envs(place.environment())
            .current_dir(place.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(token) = token {
            command.env("QWEN_SERVER_TOKEN", token);
        }
        if let Some((certificate, key)) = tls {
            command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next_line().await.unwrap().expect("the daemon ended");
            if let Some((_, rest)) = line.split_once(&format!("listening on {scheme}://127.0.0.1:")) {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let port = digits.parse().unwrap();
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Self { child, port, scheme };
            }
        }
    }

    pub(crate) fn address(&self) -> DaemonAddress {
        DaemonAddress::parse(&format!("{}://127.0.0.1:{}", self.scheme, self.port)).unwrap()
    }

    /// Sends a signal to the daemon and to all that it started, and waits for its end.
    pub(crate) async fn end(mut self, signal: rustix::process::Signal) {
        self.signal(signal);
        self.child.wait().await.unwrap();
    }

    /// Kills the agent behind the daemon, and not the daemon.
    pub(crate) fn kill_agent(&self) {
        let daemon = self.child.id().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).unwrap();
        let mut killed = 0;
        for child in children.split_whitespace() {
            let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if line.contains("--acp") {
                let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                killed += 1;
            }
        }
        assert!(killed > 0, "the daemon has no agent among {children}");
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let group = self
            .child
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).unwrap()));
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
    }
}

/// Stands between us and a daemon, keeps the requests, and cuts every connection when told to.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    requests: Arc<Mutex<String>>,
    cut: tokio::sync::broadcast::Sender<()>,
}

impl Proxy {
    pub(crate) async fn start(daemon: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<String>>::default();
        let cut = tokio::sync::broadcast::channel(16).0;
        let (log, cutter) = (Arc::clone(&requests), cut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (log, mut cut) = (Arc::clone(&log), cutter.subscribe());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", daemon)).await else {
                        return;
                    };
                    tokio::select! {
                        _ = carry(client, server, daemon, &log) => {}
                        _ = cut.recv() => {}
                    }
                });
            }
        });
        Self { port, requests, cut }
    }

    pub(crate) fn cut(&self) {
        let _ = self.cut.send(());
    }

    /// The heads of the requests for events, in order.
    pub(crate) fn event_requests(&self) -> Vec<String> {
        let requests = self.requests.lock();
        let heads = requests.split("\r\n\r\n").filter(|head| head.contains("/events?"));
        heads.map(str::to_lowercase).collect()
    }
}

async fn carry(client: TcpStream, server: TcpStream, daemon: u16, log: &Mutex<String>) -> std::io::Result<()> {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let own = client.local_addr()?.port().to_string();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from_client.read(&mut buffer).await?;
            if read == 0 {
                return Ok::<(), std::io::Error>(());
            }
            // The daemon insists on its own port in the host.
            let text = String::from_utf8_lossy(&buffer[..read])
                .replace(&format!("127.0.0.1:{own}"), &format!("127.0.0.1:{daemon}"));
            log.lock().push_str(&text);
            to_server.write_all(text.as_bytes()).await?;
        }
    };
    tokio::select! {
        result = up => result,
        copied = tokio::io::copy(&mut from_server, &mut to_client) => copied.map(drop),
    }
}

fn node() -> PathBuf {
    PathBuf::from(std::env::var_os("ALONGSIDE_NODE").expect("ALONGSIDE_NODE names no Node 22"))
}

fn modules() -> PathBuf {
    let modules = std::env::var_os("ALONGSIDE_NODE_MODULES").expect("ALONGSIDE_NODE_MODULES names no directory");
    Path::new(&modules).to_owned()
}
