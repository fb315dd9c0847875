//! A model that does what the prompt says.
//!
//! It implements the APIs that the agents use, one module each, and records every request, so that a test can check
//! what the model received.

mod anthropic;
mod gemini;
mod openai;
mod prompt;
mod responses;
mod tools;

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Request};
pub use prompt::Prompt;
use tools::{Call, Tools};

/// What the model suggests when Qwen Code asks for the user's next message.
pub const SUGGESTION: &str = "run the tests";

/// The server. The agents of a test may share one.
pub struct FakeModel {
    port: u16,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Value>>,
    grown: Condvar,
}

impl FakeModel {
    /// On a free port.
    pub fn start() -> Self {
        let log = Arc::new(Log::default());
        let writer = Arc::clone(&log);
        let port = http::serve(move |stream, request| answer(stream, &request, &writer));
        Self { port, log }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The number of requests so far.
    pub fn mark(&self) -> usize {
        self.log.lock().len()
    }

    /// All requests since `mark`, as JSON text.
    pub fn received_since(&self, mark: usize) -> String {
        let requests = self.log.lock();
        requests
            .iter()
            .skip(mark)
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Waits for a request since `mark` whose newest message contains `text`, and returns the whole request. A request
    /// without tools, such as one for a title, does not count.
    pub fn wait_for_message(&self, mark: usize, text: &str, limit: Duration) -> Option<Value> {
        let guard = self.log.lock();
        let wanted = |requests: &[Value]| {
            let mut requests = requests
                .iter()
                .skip(mark)
                .filter(|request| Tools::of(request).is_some());
            requests
                .find(|request| newest_message(request).is_some_and(|message| message.to_string().contains(text)))
                .cloned()
        };
        let waiting = self
            .log
            .grown
            .wait_timeout_while(guard, limit, |requests| wanted(requests).is_none());
        let (guard, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        wanted(&guard)
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the model does next.
enum Turn {
    Say(String),
    /// Piece by piece, with a pause between them.
    Stream(Box<dyn Iterator<Item = String>>, Duration),
    Call(Call),
}

impl Turn {
    fn ok() -> Self {
        Self::Say("OK.".to_owned())
    }

    fn done() -> Self {
        Self::Say("DONE.".to_owned())
    }

    /// The words of a turn that is not a call.
    fn into_pieces(self) -> (Box<dyn Iterator<Item = String>>, Duration) {
        match self {
            Self::Say(text) => (Box::new(std::iter::once(text)), Duration::ZERO),
            Self::Stream(pieces, pause) => (pieces, pause),
            Self::Call(_) => (Box::new(std::iter::empty()), Duration::ZERO),
        }
    }

    /// All words at once, for an agent that does not stream.
    fn into_text(self) -> String {
        self.into_pieces().0.take(1000).collect()
    }
}

fn answer(stream: &TcpStream, request: &Request, log: &Log) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let turn = next_turn(&body);
    let streaming = body["stream"] == true;
    log.lock().push(body);
    log.grown.notify_all();
    let path = request.target.split('?').next().unwrap_or_default();
    if path.contains(":countTokens") {
        http::respond(stream, "application/json", &json!({"totalTokens": 1}).to_string())
    } else if path.ends_with("/count_tokens") {
        http::respond(stream, "application/json", &json!({"input_tokens": 10}).to_string())
    } else if path.contains(":streamGenerateContent") {
        gemini::respond(stream, turn, true)
    } else if path.contains(":generateContent") {
        gemini::respond(stream, turn, false)
    } else if request.method != "POST" {
        http::respond(stream, "application/json", "{}")
    } else if path.ends_with("/chat/completions") {
        openai::respond(stream, turn, streaming)
    } else if path.ends_with("/messages") {
        anthropic::respond(stream, turn, streaming)
    } else if path.ends_with("/responses") {
        responses::respond(stream, turn)
    } else {
        http::respond(stream, "application/json", "{}")
    }
}

/// The newest message of the user or a tool. Gemini calls messages contents, and `OpenAI`'s newer API calls them input.
fn newest_message(request: &Value) -> Option<&Value> {
    let messages = ["contents", "messages", "input"]
        .iter()
        .find_map(|name| request.get(name)?.as_array())?;
    // Claude Code and Codex add instructions after the user's message, and Copilot CLI notifications.
    let is_instruction = |message: &&Value| {
        let text = message["content"].as_str().unwrap_or_default();
        message["role"] == "system" || message["role"] == "developer" || text.starts_with("<system_notification>")
    };
    messages.iter().rev().find(|message| !is_instruction(message))
}

fn next_turn(request: &Value) -> Turn {
    let Some(message) = newest_message(request) else {
        return Turn::ok();
    };
    let is_output = |part: &Value| part["type"].as_str().is_some_and(|name| name.ends_with("_call_output"));
    if message["role"] == "tool" || is_output(message) {
        return Turn::done();
    }
    // After a cancelled turn, one message can contain the old prompt, the tool's result and the new prompt: take the last.
    for part in parts_of(message).iter().rev() {
        if part.get("functionResponse").is_some() || part["type"] == "tool_result" {
            return Turn::done();
        }
        let text = part.as_str().or_else(|| part["text"].as_str()).unwrap_or_default();
        if text.starts_with("[SUGGESTION MODE") {
            return Turn::Say(SUGGESTION.to_owned());
        }
        if let Some(command) = prompt::command_in(text) {
            return prompt::obey(command, Tools::of(request));
        }
    }
    Turn::ok()
}

/// The parts of a message, or its only text.
fn parts_of(message: &Value) -> Vec<Value> {
    let parts = message.get("parts").or_else(|| message.get("content"));
    match parts {
        Some(Value::Array(parts)) => parts.clone(),
        Some(text) => vec![text.clone()],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(request: &Value) -> Call {
        match next_turn(request) {
            Turn::Call(call) => call,
            Turn::Say(text) => panic!("no call but {text:?}"),
            Turn::Stream(..) => panic!("no call but a stream"),
        }
    }

    fn said(request: &Value) -> String {
        next_turn(request).into_text()
    }

    #[test]
    fn prompt_becomes_a_call_in_every_api() {
        let text = "two words\r\nand a line";
        let prompt = Prompt::WriteFile("/w/a.txt", text).to_string();
        let snake = json!({"file_path": "/w/a.txt", "content": text});
        let chat = |tool: &str| json!({"messages": [{"role": "user", "content": prompt}], "tools": [{"function": {"name": tool}}]});
        let patch = "*** Begin Patch\n*** Add File: /w/a.txt\n+two words\n+and a line\n*** End Patch\n";
        for (request, name, input) in [
            (
                json!({"contents": [{"role": "user", "parts": [{"text": "context"}, {"text": prompt}]}]}),
                "write_file",
                snake.clone(),
            ),
            (chat("write_file"), "write_file", snake.clone()),
            (chat("write"), "write", json!({"filePath": "/w/a.txt", "content": text})),
            (chat("create"), "create", json!({"path": "/w/a.txt", "file_text": text})),
            (
                json!({
                    "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}, {"role": "system", "content": "be"}],
                    "tools": [{"name": "Write"}]
                }),
                "Write",
                snake,
            ),
            (
                json!({
                    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}],
                    "tools": [{"type": "custom", "name": "apply_patch"}]
                }),
                "apply_patch",
                json!(patch),
            ),
        ] {
            assert_eq!(call(&request), Call::new(name, input), "{request}");
        }
    }

    #[test]
    fn last_prompt_of_a_message_is_obeyed() {
        let (old, new) = (
            Prompt::Edit("/w/a", "x", "y").to_string(),
            Prompt::Edit("/w/b", "x", "y").to_string(),
        );
        let parts = json!([{"text": old}, {"functionResponse": {}}, {"text": new}]);
        let call = call(&json!({"contents": [{"role": "user", "parts": parts}]}));
        assert_eq!((call.name, &call.input["file_path"]), ("replace", &json!("/w/b")));
    }

    #[test]
    fn request_for_a_title_gets_words() {
        let prompt = format!("Generate a title for:\n{}", Prompt::WriteFile("/w/a", "x"));
        assert_eq!(said(&json!({"messages": [{"role": "user", "content": prompt}]})), "OK.");
        let input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}]);
        assert_eq!(said(&json!({"input": input, "tools": []})), "OK.");
    }

    #[test]
    fn result_of_a_tool_ends_the_turn() {
        let prompt = Prompt::WriteFile("/w/a", "x").to_string();
        let user = json!({"role": "user", "content": prompt});
        let result =
            json!({"role": "user", "content": [{"type": "tool_result"}, {"type": "text", "text": "a reminder"}]});
        assert_eq!(
            said(&json!({"messages": [user, result], "tools": [{"name": "Write"}]})),
            "DONE."
        );
        let output = json!({"type": "custom_tool_call_output", "call_id": "1", "output": "ok"});
        assert_eq!(said(&json!({"input": [user, output]})), "DONE.");
    }
}
