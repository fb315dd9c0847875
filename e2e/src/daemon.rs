//! A real `qwen serve`, and a proxy in front of it that can cut every connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::Signal;
use serde_json::json;

use crate::cli::Cli;
use crate::fake_model::FakeModel;
use crate::sandbox::Sandbox;
use crate::{process, programs};

/// The daemon's model API key. Masking keeps the first and last characters of a key, so tests search for those too.
pub const MODEL_KEY: &str = "sk-e2e-9f3c51d07ab2";

/// A running `qwen serve`. Dropping it kills it and its agent.
pub struct QwenDaemon {
    child: Child,
    pub port: u16,
}

impl QwenDaemon {
    /// Starts it for the sandbox's workspace, requiring this token.
    pub fn start(sandbox: &Sandbox, model: &FakeModel, token: &str) -> Self {
        offer_two_models(sandbox, model);
        Self::start_at(sandbox, model, token, 0)
    }

    /// Kills it and its agent, and starts another one on the same port.
    pub fn restart(&mut self, sandbox: &Sandbox, model: &FakeModel, token: &str) {
        self.kill();
        *self = Self::start_at(sandbox, model, token, self.port);
    }

    fn start_at(sandbox: &Sandbox, model: &FakeModel, token: &str, port: u16) -> Self {
        let mut child = sandbox
            .command(programs::node())
            .arg(programs::npm_package("@qwen-code/qwen-code/cli-entry.js"))
            .args(["serve", "--port", &port.to_string(), "--workspace"])
            .arg(sandbox.workspace())
            .envs(Cli::Qwen.model_variables(model))
            .env("OPENAI_API_KEY", MODEL_KEY)
            .env("QWEN_SERVER_TOKEN", token)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start qwen serve");
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let port = loop {
            let line = lines.next().expect("the daemon ended").expect("read from the daemon");
            if let Some((_, rest)) = line.split_once("listening on http://127.0.0.1:") {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                break digits.parse().expect("a port is a number");
            }
        };
        // Keep reading to the end, so that the daemon never writes to a closed pipe.
        thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    /// Answers a permission request as another client would.
    pub fn vote(&self, token: &str, request: &str, option: &str) {
        let body = json!({"outcome": {"outcome": "selected", "optionId": option}}).to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect to the daemon");
        let sent = write!(
            stream,
            "POST /permission/{request} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        sent.expect("send the request to the daemon");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("hear from the daemon");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Kills the daemon's agent, but not the daemon.
    pub fn kill_agent(&self) {
        let agents = self.agents();
        assert!(!agents.is_empty(), "the daemon has no agent");
        for agent in agents {
            process::signal(agent, Signal::KILL);
        }
    }

    /// Kills it and its agent.
    pub fn kill(&mut self) {
        let agents = self.agents();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for agent in agents {
            process::signal(agent, Signal::KILL);
        }
    }

    fn agents(&self) -> Vec<u32> {
        let daemon = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).unwrap_or_default();
        let is_agent = |child: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            line.contains("--acp")
        };
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        children.filter(is_agent).collect()
    }
}

impl Drop for QwenDaemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Configures two models, so that there is one to switch to.
fn offer_two_models(sandbox: &Sandbox, model: &FakeModel) {
    let path = sandbox.path("home/.qwen/settings.json");
    let text = std::fs::read_to_string(&path).expect("read the settings");
    let mut settings: serde_json::Value = serde_json::from_str(&text).expect("the settings are JSON");
    let provider =
        |id: &str| json!({"id": id, "name": id, "baseUrl": format!("{}/v1", model.url()), "envKey": "OPENAI_API_KEY"});
    settings["model"] = json!({"name": "fake-a"});
    // Without this, Qwen Code makes no plans.
    settings["tools"] = json!({"todoWrite": {"enabled": true}});
    settings["modelProviders"] = json!({"openai": [provider("fake-a"), provider("fake-b")]});
    std::fs::write(path, settings.to_string()).expect("write the settings");
}

/// Sits between the companion and a daemon, records the companion's requests, and cuts every connection on demand.
pub struct CutProxy {
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    requests: Arc<Mutex<String>>,
}

impl CutProxy {
    /// Starts it in front of a daemon.
    pub fn start(daemon: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bind a loopback port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        let requests = Arc::<Mutex<String>>::default();
        let (open_streams, recorded) = (Arc::clone(&streams), Arc::clone(&requests));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Errors matter only to the client.
                let _ = carry(&client, port, daemon, &open_streams, &recorded);
            }
        });
        Self {
            port,
            streams,
            requests,
        }
    }

    /// The client IDs that the companion used with the daemon.
    pub fn client_ids(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = requests.lines().filter_map(|line| line.split_once(": "));
        let mut ids: Vec<String> = lines
            .filter(|(name, _)| name.eq_ignore_ascii_case("x-qwen-client-id"))
            .map(|(_, value)| value.trim().to_owned())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// Cuts every open connection.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn carry(
    client: &TcpStream,
    own: u16,
    daemon: u16,
    open_streams: &Mutex<Vec<TcpStream>>,
    requests: &Arc<Mutex<String>>,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", daemon))?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
        open_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(stream.try_clone()?);
    }
    // The daemon requires its own port in the `Host` header.
    let (from, to) = (format!("127.0.0.1:{own}"), format!("127.0.0.1:{daemon}"));
    let requests = Arc::clone(requests);
    copy(client.try_clone()?, server.try_clone()?, move |text| {
        let text = String::from_utf8_lossy(text).replace(&from, &to);
        requests.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        text.into_bytes()
    });
    copy(server, client.try_clone()?, <[u8]>::to_vec);
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if to.write_all(&change(&buffer[..read])).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
