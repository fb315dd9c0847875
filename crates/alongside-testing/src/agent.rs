//! An ACP agent that does what its prompt says. A test program starts itself again as the agent:
//!
//! ```text
//! #[test]
//! fn agent() {
//!     if std::env::var_os(alongside_testing::agent::VARIABLE).is_some() {
//!         alongside_testing::agent::run();
//!     }
//! }
//! ```

mod edits;

use std::io::{BufRead, Lines, StdinLock, Write};

use serde_json::{Value, json};

/// Makes a test program the agent. The value selects a variant of the agent, such as `login` or `config-options`.
pub const VARIABLE: &str = "ALONGSIDE_FAKE_AGENT";

struct Agent {
    how: String,
    lines: Lines<StdinLock<'static>>,
    session: String,
    logged_in: bool,
    cancelled: bool,
    /// What the client added to the last prompt.
    note: String,
    /// The process of its own child.
    child: u32,
    next: u64,
}

/// Handles ACP messages until stdin is closed. Does not return.
pub fn run() {
    let mut agent = Agent {
        how: std::env::var(VARIABLE).unwrap(),
        lines: std::io::stdin().lock().lines(),
        session: String::new(),
        logged_in: false,
        cancelled: false,
        note: String::new(),
        child: 0,
        next: 1000,
    };
    let stubborn = agent.how == "stubborn";
    let mut helper = stubborn.then(stubborn_child);
    agent.child = helper.as_ref().map_or(0, std::process::Child::id);
    if agent.how == "exit" {
        std::process::exit(1);
    }
    // The test harness has started a line.
    println!();
    while let Some(message) = agent.read() {
        agent.take(&message);
    }
    if let Some(helper) = &mut helper {
        // The end of stdin does not end it.
        helper.wait().unwrap();
    }
    std::process::exit(0);
}

/// A child that survives everything but a kill.
fn stubborn_child() -> std::process::Child {
    let script = "trap '' TERM HUP INT; while :; do sleep 1000; done";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).stdin(std::process::Stdio::null());
    command.spawn().unwrap()
}

fn send(message: &Value) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{message}").unwrap();
    output.flush().unwrap();
}

impl Agent {
    fn read(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Sends a request, and handles other messages until its response arrives.
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        params["sessionId"] = json!(self.session);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read().unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.take(&message);
        }
    }

    fn update(&self, update: &Value) {
        send(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self.session, "update": update}}),
        );
    }

    fn say(&self, text: &str) {
        self.chunk("agent_message_chunk", text);
    }

    fn chunk(&self, kind: &str, text: &str) {
        self.update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
    }

    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => reply(id, &self.introduction()),
            "authenticate" => {
                self.logged_in = true;
                reply(id, &json!({}));
            }
            "session/new" if self.how == "login" && !self.logged_in => {
                refuse(id, -32000, "Authentication required", &Value::Null);
            }
            "session/new" if self.how == "silent" => {}
            "session/new" => {
                "session-1".clone_into(&mut self.session);
                self.update(
                    &json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "help"}]}),
                );
                let mut state = self.state();
                state["sessionId"] = json!(self.session);
                reply(id, &state);
            }
            "session/load" if params["sessionId"] == "missing" => refuse(id, -32002, "Session not found", &Value::Null),
            "session/load" => {
                params["sessionId"].as_str().unwrap().clone_into(&mut self.session);
                let is_late = self.how == "late-history";
                if is_late {
                    reply(id, &self.state());
                    // Long enough for the client to read the response alone.
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                self.chunk("user_message_chunk", "hello");
                self.say("hi");
                if !is_late {
                    reply(id, &self.state());
                }
            }
            "session/list" if params["cursor"] == "2" => reply(
                id,
                &json!({"sessions": [{"sessionId": "older", "cwd": "/", "title": "Older one"}, {"no": "session"}]}),
            ),
            "session/list" => reply(
                id,
                &json!({"sessions": [{"sessionId": "old", "cwd": "/", "title": "Old one"}], "nextCursor": "2"}),
            ),
            "renameSession" if self.how == "qwen" => {
                let known = params["sessionId"] == self.session && params["title"] != "refused";
                reply(id, &json!({"success": known}));
            }
            "session/set_model" | "session/set_mode" if self.how == "config-options" => {
                refuse(id, -32601, "Method not found", &Value::Null);
            }
            "session/set_model" => switch(id, &params["modelId"]),
            "session/set_mode" => switch(id, &params["modeId"]),
            "session/set_config_option" => switch(id, &params["value"]),
            "session/cancel" => self.cancelled = true,
            "session/prompt" => {
                self.cancelled = false;
                let first = params["prompt"][0]["text"].as_str().unwrap();
                let has_note = first.starts_with("Note from the user's editor: ");
                first[..if has_note { first.len() } else { 0 }].clone_into(&mut self.note);
                let text = params["prompt"][usize::from(has_note)]["text"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                self.obey(id, &text);
            }
            other => refuse(id, -32601, other, &Value::Null),
        }
    }

    fn obey(&mut self, id: &Value, text: &str) {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match verb {
            "say" => self.say(rest),
            "count" => (0..rest.parse().unwrap()).for_each(|number: u32| self.say(&format!("word{number} "))),
            "answer" => {
                let (turn, count) = rest.split_once(' ').unwrap();
                for number in 0..count.parse().unwrap() {
                    let number: u32 = number;
                    self.say(&format!("t{turn}w{number} "));
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            }
            "edit-as" => self.edit_as(rest),
            "wait" => self.wait(),
            "fail" => {
                return refuse(
                    id,
                    -32603,
                    "Internal error",
                    &json!({"details": "400 upstream refused"}),
                );
            }
            "die" => {
                eprintln!("I die with {}", std::env::var("FAKE_API_KEY").unwrap());
                std::process::exit(3);
            }
            "read" => {
                let answer = self.ask("fs/read_text_file", json!({"path": rest}));
                let text = answer["result"]["content"].as_str();
                self.say(text.or(answer["error"]["message"].as_str()).unwrap());
            }
            "ask-often" => {
                let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
                let count: u64 = rest.parse().unwrap();
                for number in 0..count {
                    let call = json!({"toolCallId": format!("call-{number}"), "kind": "edit", "title": "Edit"});
                    let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
                    send(
                        &json!({"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}),
                    );
                }
                let response = self.read().unwrap();
                self.say(&format!(
                    "{} {}",
                    response["id"], response["result"]["outcome"]["outcome"]
                ));
            }
            "claim" => self.claim(rest),
            "write-often" => {
                let (count, path) = rest.split_once(' ').unwrap();
                let params = json!({"sessionId": self.session, "path": path, "content": "x"});
                for number in 0..count.parse().unwrap() {
                    let number: u64 = number;
                    send(&json!({"jsonrpc": "2.0", "id": number, "method": "fs/write_text_file", "params": params}));
                }
                let response = self.read().unwrap();
                self.say(&format!("{} {}", response["id"], response["error"]["message"]));
            }
            "flood" => {
                // More than the client may hold back, and not one response is read.
                for number in 0..5000 {
                    let params = json!({"sessionId": self.session, "path": rest});
                    send(&json!({"jsonrpc": "2.0", "id": number, "method": "fs/read_text_file", "params": params}));
                }
                loop {
                    std::thread::park();
                }
            }
            "write" => {
                let (path, content) = rest.split_once(' ').unwrap();
                self.chunk("agent_thought_chunk", "I write.");
                let answer = self.ask("fs/write_text_file", json!({"path": path, "content": content}));
                self.say(answer["error"]["message"].as_str().unwrap_or("written"));
            }
            "ask" => {
                let call = json!({"toolCallId": "call", "kind": "edit", "title": "Edit", "status": "pending"});
                self.permission(&call);
            }
            "edit" => {
                let diff = json!({"type": "diff", "path": rest, "oldText": "one\n", "newText": "two\n"});
                self.permission(&json!({"toolCallId": "call", "kind": "edit", "title": "Edit", "content": [diff]}));
            }
            "question" => {
                let input = json!({"questions": [{"question": "Which?", "options": [{"label": "Blue"}]}]});
                let meta = json!({"toolName": "ask_user_question"});
                self.permission(&json!({"toolCallId": "call", "kind": "think", "rawInput": input, "_meta": meta}));
            }
            _ => self.obey_about_itself(verb, rest),
        }
        let reason = if self.cancelled { "cancelled" } else { "end_turn" };
        reply(id, &json!({"stopReason": reason}));
    }

    /// Prompts about the agent and its process.
    fn obey_about_itself(&mut self, verb: &str, rest: &str) {
        match verb {
            "note" => self.say(&self.note),
            "until" => {
                self.say("waiting\n");
                // Nothing reports a new file to a program without a watcher.
                while !std::path::Path::new(rest).exists() {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                self.say("done");
            }
            "pids" => {
                self.say(&format!("{} {}\n", std::process::id(), self.child));
                if rest == "wait" {
                    self.wait();
                }
            }
            "messages" => {
                self.say("\n\nFirst");
                self.say(" message.");
                self.update(
                    &json!({"sessionUpdate": "tool_call", "toolCallId": "look", "title": "Look", "kind": "read"}),
                );
                self.say("Second message.");
            }
            "pid" => self.say(&std::process::id().to_string()),
            _ => self.say("I do not know how."),
        }
    }

    /// Waits for the end of the turn, or of stdin.
    fn wait(&mut self) {
        while !self.cancelled {
            let Some(message) = self.read() else { return };
            self.take(&message);
        }
    }

    /// Sends requests in the name of sessions that were never opened.
    fn claim(&mut self, path: &str) {
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let requests = [
            ("fs/read_text_file", json!({"path": path})),
            ("fs/write_text_file", json!({"path": path, "content": "x"})),
            (
                "session/request_permission",
                json!({"toolCall": {"toolCallId": "call", "kind": "edit", "title": "Edit"}, "options": options}),
            ),
        ];
        for (number, (method, mut params)) in requests.into_iter().enumerate() {
            params["sessionId"] = json!(format!("claimed-{number}"));
            send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
            let response = self.read().unwrap();
            let error = response["error"]["message"].as_str();
            self.say(&format!("{}\n", error.unwrap_or("granted")));
        }
    }

    fn permission(&mut self, call: &Value) {
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let answer = self.ask(
            "session/request_permission",
            json!({"toolCall": call, "options": options}),
        );
        let outcome = &answer["result"]["outcome"];
        let mut heard = outcome["outcome"].as_str().unwrap().to_owned();
        if let Some(option) = outcome["optionId"].as_str() {
            heard = format!("{heard} {option}");
        }
        if let Some(answers) = answer["result"].get("answers") {
            heard = format!("{heard} {answers}");
        }
        self.say(&heard);
    }

    fn introduction(&self) -> Value {
        let version = if self.how == "version" { 7 } else { 1 };
        let name = if self.how == "qwen" { "qwen-code" } else { "fake" };
        json!({"protocolVersion": version, "agentInfo": {"name": name, "title": "Fake Agent", "version": "1.2.3"},
            "authMethods": [{"id": "key", "name": "Fake Key"}],
            "agentCapabilities": {"loadSession": self.how != "forgetful", "sessionCapabilities": {"list": {}}, "promptCapabilities": {"image": true}}})
    }

    fn state(&self) -> Value {
        if self.how == "config-options" {
            let option = |id: &str, category: &str, values: &[&str]| {
                let options: Vec<Value> = values
                    .iter()
                    .map(|value| json!({"value": value, "name": value}))
                    .collect();
                json!({"id": id, "category": category, "currentValue": values[0], "options": options})
            };
            return json!({"configOptions": [option("m", "model", &["a", "b"]), option("o", "mode", &["auto", "default"])]});
        }
        json!({"models": {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]},
            "modes": {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}, {"id": "default", "name": "D"}]}})
    }
}

fn reply(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, message: &str, data: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}));
}

fn switch(id: &Value, value: &Value) {
    match value.as_str() {
        Some("a" | "b" | "auto" | "default") => reply(id, &json!({})),
        other => {
            let details = format!("Model '{}' not found", other.unwrap_or_default());
            refuse(id, -32603, "Internal error", &json!({"details": details}));
        }
    }
}
