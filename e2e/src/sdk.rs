//! Clients using the official TypeScript SDK, at the versions pinned by the agents.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs;
use crate::waiting::TIMEOUT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// Used by Gemini CLI.
    V1_23,
    /// Used by Qwen Code.
    V1_30,
}

impl Sdk {
    fn package(self) -> &'static str {
        match self {
            Self::V1_23 => "sdk-1-23",
            Self::V1_30 => "sdk-1-30",
        }
    }

    /// The newest protocol version it supports.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::V1_23 => "2025-06-18",
            Self::V1_30 => "2025-11-25",
        }
    }
}

/// A connected client, killed on drop.
pub struct SdkClient {
    child: Child,
    input: ChildStdin,
    events: Receiver<Value>,
    /// Events read while waiting for another one.
    buffered: VecDeque<Value>,
    /// What the client knows about the server.
    pub connected: Value,
}

impl SdkClient {
    /// Connects with a token, using `name` as the client name. The error is the SDK's message.
    pub fn connect(sdk: Sdk, port: u16, token: &str, name: &str) -> Result<Self, String> {
        let mut command = Command::new(programs::node());
        command.arg(programs::typescript("client.mjs"));
        command.args([
            sdk.package(),
            &format!("http://127.0.0.1:{port}/mcp"),
            token,
            name,
            "1.0.0",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start node");
        let input = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("the client prints JSON lines");
                let _ = sender.send(event);
            }
        });
        let mut client = Self {
            child,
            input,
            events,
            buffered: VecDeque::new(),
            connected: Value::Null,
        };
        let first = client.wait_for("the connection", |event| {
            event["event"] == "connected" || event["event"] == "error"
        });
        if first["event"] == "error" {
            return Err(first["message"].as_str().unwrap_or_default().to_owned());
        }
        client.connected = first;
        Ok(client)
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({"method": method, "params": params});
        writeln!(self.input, "{line}").expect("write to the client");
        let answer = self.wait_for(method, |event| event["event"] == "result" || event["event"] == "error");
        assert_eq!(answer["event"], "result", "{method} failed: {answer}");
        answer["result"].clone()
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Waits for a notification whose parameters satisfy `wanted`, and returns the parameters.
    pub fn wait_for_notification(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let event = self.wait_for(method, |event| {
            event["event"] == "notification" && event["method"] == method && wanted(&event["params"])
        });
        event["params"].clone()
    }

    /// Transport errors so far; each of these makes an agent show "Disconnected".
    pub fn transport_errors(&mut self) -> Vec<Value> {
        self.buffered.extend(self.events.try_iter());
        let transport_errors = self.buffered.iter().filter(|event| event["event"] == "transport-error");
        transport_errors.cloned().collect()
    }

    /// Notifications of this method that were received but not waited for.
    pub fn unread_notifications(&mut self, method: &str) -> Vec<Value> {
        self.buffered.extend(self.events.try_iter());
        let matching = self.buffered.iter().filter(|event| event["method"] == method);
        matching.cloned().collect()
    }

    fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.buffered.iter().position(&wanted) {
            return self.buffered.remove(position).unwrap_or_default();
        }
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            match self.events.recv_timeout(left) {
                Ok(event) if wanted(&event) => return event,
                Ok(event) => self.buffered.push_back(event),
                Err(error) => panic!("no {what}: {error}; there was {:#?}", self.buffered),
            }
        }
    }
}

impl Drop for SdkClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
