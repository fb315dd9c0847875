//! A pretend editor with a language client.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, TIMEOUT, wait_for};

/// A pretend editor.
pub(crate) struct Editor {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    messages: Receiver<Value>,
    kept: Vec<Value>,
    last_id: u64,
}

impl Editor {
    /// Starts the server, without a word.
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::start_in(&sandbox.workspace(), sandbox, arguments)
    }

    /// The same in any directory.
    pub(crate) fn start_in(directory: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["lsp"], arguments].concat());
        command
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (tell, messages) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(message) = next(&mut output) {
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            messages,
            kept: Vec::new(),
            last_id: 0,
        }
    }

    /// Starts the server and introduces itself, as Helix does.
    pub(crate) fn open(sandbox: &Sandbox) -> Self {
        Self::open_as(sandbox, &json!({}))
    }

    pub(crate) fn open_as(sandbox: &Sandbox, capabilities: &Value) -> Self {
        Self::open_named(sandbox, "helix", capabilities)
    }

    pub(crate) fn open_named(sandbox: &Sandbox, name: &str, capabilities: &Value) -> Self {
        Self::open_with(sandbox, &[], name, capabilities)
    }

    pub(crate) fn open_with(sandbox: &Sandbox, arguments: &[&str], name: &str, capabilities: &Value) -> Self {
        let mut editor = Self::start(sandbox, arguments);
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": name },
            "rootUri": address(&sandbox.workspace()),
            "capabilities": capabilities,
        });
        let answer = editor.ask("initialize", &params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "alongside", "{answer}");
        editor.tell("initialized", &json!({}));
        editor
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    pub(crate) fn send_raw(&mut self, body: &[u8]) {
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        input.write_all(body).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks and gives the whole answer, past whatever else comes.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a message; what comes before it is kept for later.
    pub(crate) fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.kept.iter().position(&is_wanted) {
            return self.kept.remove(position);
        }
        loop {
            let message = self.messages.recv_timeout(TIMEOUT);
            let message = message.unwrap_or_else(|_| panic!("not among {:#?}", self.kept));
            if is_wanted(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    pub(crate) fn wait_for_method(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method)
    }

    /// The hints of a file, once there are as many.
    pub(crate) fn wait_for_hints(&mut self, path: &str, count: usize) -> Vec<Value> {
        let uri = address(Path::new(path));
        let message = self.wait(|message| {
            let hints = message["params"]["diagnostics"].as_array();
            message["params"]["uri"] == uri && hints.is_some_and(|hints| hints.len() == count)
        });
        message["params"]["diagnostics"].as_array().unwrap().clone()
    }

    pub(crate) fn open_file(&mut self, path: &str, text: &str) {
        let document = json!({ "uri": address(Path::new(path)), "languageId": "x", "version": 1, "text": text });
        self.tell("textDocument/didOpen", &json!({ "textDocument": document }));
    }

    pub(crate) fn actions(&mut self, path: &str, range: &Value) -> Vec<Value> {
        let document = json!({ "uri": address(Path::new(path)) });
        let params = json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } });
        let answer = self.ask("textDocument/codeAction", &params);
        answer["result"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }

    /// Chooses the action whose title begins so.
    pub(crate) fn act(&mut self, path: &str, range: &Value, title: &str) {
        let actions = self.actions(path, range);
        self.choose(&actions, title);
    }

    pub(crate) fn choose(&mut self, actions: &[Value], title: &str) {
        let is_wanted = |action: &&Value| action["title"].as_str().unwrap().starts_with(title);
        let action = actions
            .iter()
            .find(is_wanted)
            .unwrap_or_else(|| panic!("{title}: {actions:?}"));
        let command = if action["command"].is_object() {
            &action["command"]
        } else {
            action
        };
        let params = json!({ "command": command["command"], "arguments": command["arguments"] });
        let answer = self.ask("workspace/executeCommand", &params);
        assert_eq!(answer["result"], Value::Null, "{answer}");
    }

    pub(crate) fn shut_down(mut self) -> Option<i32> {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        wait_for("its end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(output: &mut impl BufRead) -> Option<Value> {
    let mut header = String::new();
    output.read_line(&mut header).ok().filter(|count| *count > 0)?;
    let length = header.strip_prefix("Content-Length: ").unwrap();
    let mut body = vec![0; length.trim().parse::<usize>().unwrap() + 2];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body[2..]).unwrap())
}

pub(crate) fn address(path: &Path) -> String {
    format!("file://{}", path.display()).replace(' ', "%20")
}

pub(crate) fn at(line: usize, character: usize) -> Value {
    span((line, character), (line, character))
}

pub(crate) fn span(start: (usize, usize), end: (usize, usize)) -> Value {
    json!({
        "start": { "line": start.0, "character": start.1 },
        "end": { "line": end.0, "character": end.1 },
    })
}
