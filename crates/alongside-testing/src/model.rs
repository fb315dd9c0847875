//! A model that does what the prompt says.
//!
//! It implements the two APIs that Gemini CLI and Qwen Code use, `OpenAI`'s chat completions and Gemini's `generateContent`, and records
//! every request, so that a test can check what the model received.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Request};

static CALLS: AtomicU64 = AtomicU64::new(1);

/// A prompt that the model obeys. `Display` writes what a user would type: one line, with escaped blanks.
pub enum Prompt<'a> {
    /// Write this text into that file.
    WriteFile(&'a str, &'a str),
    /// Replace the first text by the second in that file.
    Edit(&'a str, &'a str, &'a str),
    /// Answer with this text, a few characters at a time.
    Say(&'a str),
    /// Answer with this many different words, each in a chunk of its own.
    Count(usize),
    /// Answer with words until the connection is closed.
    Slow,
    /// Answer with a code block of this many lines, and a sentence after it.
    Code(usize),
    /// Ask the user which color.
    Ask,
    /// Make a plan of two steps, the first of them done.
    Plan,
}

/// What the model suggests when Qwen Code asks for the user's next message.
pub const SUGGESTION: &str = "run the tests";

impl std::fmt::Display for Prompt<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WriteFile(path, text) => write!(formatter, "DO write_file {path} {}", escaped(text)),
            Self::Edit(path, old, new) => write!(formatter, "DO edit {path} {} {}", escaped(old), escaped(new)),
            Self::Say(text) => write!(formatter, "DO say {}", escaped(text)),
            Self::Count(count) => write!(formatter, "DO count {count}"),
            Self::Slow => write!(formatter, "DO slow"),
            Self::Code(lines) => write!(formatter, "DO code {lines}"),
            Self::Ask => write!(formatter, "DO ask"),
            Self::Plan => write!(formatter, "DO plan"),
        }
    }
}

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

    /// Waits for a request since `mark` whose newest message contains `text`, and returns the whole request.
    pub fn wait_for_message(&self, mark: usize, text: &str, limit: Duration) -> Option<Value> {
        let guard = self.log.lock();
        let wanted = |requests: &[Value]| {
            let mut requests = requests.iter().skip(mark);
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
    Call(&'static str, Value),
}

fn answer(stream: &TcpStream, request: &Request, log: &Log) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let turn = next_turn(&body);
    log.lock().push(body);
    log.grown.notify_all();
    let target = request.target.as_str();
    if target.contains(":countTokens") {
        http::respond(stream, "application/json", &json!({"totalTokens": 1}).to_string())
    } else if target.contains(":streamGenerateContent") {
        match turn {
            Turn::Stream(pieces, pause) => gemini_pieces(stream, pieces, pause),
            turn => http::respond(stream, "text/event-stream", &format!("data: {}\n\n", gemini(turn))),
        }
    } else if target.contains(":generateContent") {
        http::respond(stream, "application/json", &gemini(turn).to_string())
    } else if request.method == "POST" && target.ends_with("/chat/completions") {
        let streaming = newest(log).get("stream") == Some(&Value::Bool(true));
        openai(stream, turn, streaming)
    } else {
        http::respond(stream, "application/json", "{}")
    }
}

fn newest(log: &Log) -> Value {
    log.lock().last().cloned().unwrap_or_default()
}

/// Gemini calls messages contents.
fn newest_message(request: &Value) -> Option<&Value> {
    let messages = request.get("contents").or_else(|| request.get("messages"))?;
    messages.as_array()?.last()
}

fn next_turn(request: &Value) -> Turn {
    let Some(message) = newest_message(request) else {
        return Turn::Say("OK.".to_owned());
    };
    if message["role"] == "tool" {
        return Turn::Say("DONE.".to_owned());
    }
    let is_gemini = message.get("parts").is_some();
    // After a cancelled turn, one message can contain the old prompt, the tool's result and the new prompt: take the last.
    for part in parts_of(message).iter().rev() {
        if part.get("functionResponse").is_some() {
            return Turn::Say("DONE.".to_owned());
        }
        let text = part.as_str().or_else(|| part["text"].as_str()).unwrap_or_default();
        if text.starts_with("[SUGGESTION MODE") {
            return Turn::Say(SUGGESTION.to_owned());
        }
        if let Some(command) = text.lines().rev().find_map(|line| line.trim().strip_prefix("DO ")) {
            return obey(command, is_gemini);
        }
    }
    Turn::Say("OK.".to_owned())
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

fn obey(command: &str, is_gemini: bool) -> Turn {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["write_file", path, text] => Turn::Call("write_file", json!({"file_path": path, "content": plain(text)})),
        ["edit", path, old, new] => {
            let (old, new) = (plain(old), plain(new));
            let name = if is_gemini { "replace" } else { "edit" };
            let arguments = json!({"file_path": path, "instruction": "Edit.", "old_string": old, "new_string": new});
            Turn::Call(name, arguments)
        }
        ["say", text] => {
            let letters: Vec<char> = plain(text).chars().collect();
            let pieces: Vec<String> = letters.chunks(5).map(|piece| piece.iter().collect()).collect();
            Turn::Stream(Box::new(pieces.into_iter()), Duration::ZERO)
        }
        ["count", count] => {
            let words = (0..count.parse().unwrap_or(0)).map(|number: usize| format!("word{number} "));
            Turn::Stream(Box::new(words), Duration::from_millis(2))
        }
        ["code", lines] => {
            let line = "    let number = compute(12); // and so on\n";
            let lines = std::iter::repeat_n(line.to_owned(), lines.parse().unwrap_or(0));
            let begin = std::iter::once("```rust\n".to_owned());
            let end = std::iter::once("```\n\nAfter the code.".to_owned());
            Turn::Stream(Box::new(begin.chain(lines).chain(end)), Duration::ZERO)
        }
        ["slow"] => Turn::Stream(
            Box::new((0..).map(|number: usize| format!("slow{number} "))),
            Duration::from_millis(30),
        ),
        ["plan"] => {
            let step = |id: &str, content: &str, status: &str| json!({"id": id, "content": content, "status": status});
            let steps = json!([
                step("1", "Read the code", "completed"),
                step("2", "Change it", "in_progress")
            ]);
            Turn::Call("todo_write", json!({"todos": steps}))
        }
        ["ask"] => {
            let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}]);
            let question =
                json!({"question": "Which color?", "header": "Color", "options": options, "multiSelect": false});
            Turn::Call("ask_user_question", json!({"questions": [question]}))
        }
        _ => Turn::Say("I do not know how.".to_owned()),
    }
}

fn gemini(turn: Turn) -> Value {
    gemini_envelope(&match turn {
        Turn::Say(text) => json!({"text": text}),
        Turn::Stream(pieces, _) => json!({"text": pieces.take(1000).collect::<String>()}),
        Turn::Call(name, arguments) => json!({"functionCall": {"name": name, "args": arguments}}),
    })
}

fn gemini_envelope(part: &Value) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    })
}

/// Streams the pieces, until the end or until the connection is closed.
fn gemini_pieces(mut stream: &TcpStream, pieces: impl Iterator<Item = String>, pause: Duration) -> io::Result<()> {
    start_stream(stream)?;
    for piece in pieces {
        stream.write_all(format!("data: {}\n\n", gemini_envelope(&json!({"text": piece}))).as_bytes())?;
        std::thread::sleep(pause);
    }
    Ok(())
}

/// The body ends with the connection.
fn start_stream(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

fn openai(stream: &TcpStream, turn: Turn, streaming: bool) -> io::Result<()> {
    let (mut message, finish_reason) = match turn {
        Turn::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Turn::Stream(pieces, pause) if streaming => return openai_pieces(stream, pieces, pause),
        Turn::Stream(pieces, _) => {
            let text: String = pieces.take(1000).collect();
            (json!({"role": "assistant", "content": text}), "stop")
        }
        Turn::Call(name, arguments) => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            // Qwen Code ignores a call with the id of an earlier one.
            let id = format!("call_{}", CALLS.fetch_add(1, Ordering::Relaxed));
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            (
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                "tool_calls",
            )
        }
    };
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    if !streaming {
        let choices = json!([{"index": 0, "message": message.take(), "finish_reason": finish_reason}]);
        let body = envelope("chat.completion", &choices, &usage).to_string();
        return http::respond(stream, "application/json", &body);
    }
    let chunk =
        |choices: &Value, usage: &Value| format!("data: {}\n\n", envelope("chat.completion.chunk", choices, usage));
    let body = [
        chunk(
            &json!([{"index": 0, "delta": message, "finish_reason": null}]),
            &Value::Null,
        ),
        chunk(
            &json!([{"index": 0, "delta": {}, "finish_reason": finish_reason}]),
            &Value::Null,
        ),
        chunk(&json!([]), &usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    http::respond(stream, "text/event-stream", &body.concat())
}

fn envelope(object: &str, choices: &Value, usage: &Value) -> Value {
    json!({"id": "chat", "object": object, "created": 1, "model": "fake-model", "choices": choices, "usage": usage})
}

/// Streams the pieces, until the end or until the connection is closed.
fn openai_pieces(mut stream: &TcpStream, pieces: impl Iterator<Item = String>, pause: Duration) -> io::Result<()> {
    start_stream(stream)?;
    let mut say = |choices: &Value, usage: &Value| {
        stream.write_all(format!("data: {}\n\n", envelope("chat.completion.chunk", choices, usage)).as_bytes())
    };
    for piece in pieces {
        let delta = json!({"role": "assistant", "content": piece});
        say(
            &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            &Value::Null,
        )?;
        std::thread::sleep(pause);
    }
    say(
        &json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
        &Value::Null,
    )?;
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    say(&json!([]), &usage)?;
    stream.write_all(b"data: [DONE]\n\n")
}

/// Blanks become `_`, line ends become `\n` and `\r`. The text must not contain `_` or a backslash.
fn escaped(text: &str) -> String {
    text.replace('\r', r"\r").replace('\n', r"\n").replace(' ', "_")
}

fn plain(word: &str) -> String {
    word.replace('_', " ").replace(r"\n", "\n").replace(r"\r", "\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(request: &Value) -> (&'static str, Value) {
        match next_turn(request) {
            Turn::Call(name, arguments) => (name, arguments),
            Turn::Say(text) => panic!("no call but {text:?}"),
            Turn::Stream(..) => panic!("no call but a stream"),
        }
    }

    #[test]
    fn prompt_becomes_a_call_in_both_apis() {
        let prompt = Prompt::WriteFile("/w/a.txt", "two words\r\nand a line").to_string();
        let expected = (
            "write_file",
            json!({"file_path": "/w/a.txt", "content": "two words\r\nand a line"}),
        );
        let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "context"}, {"text": prompt}]}]});
        assert_eq!(call(&gemini), expected);
        let openai = json!({"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": prompt}]});
        assert_eq!(call(&openai), expected);
    }

    #[test]
    fn last_prompt_of_a_message_is_obeyed() {
        let (old, new) = (
            Prompt::Edit("/w/a", "x", "y").to_string(),
            Prompt::Edit("/w/b", "x", "y").to_string(),
        );
        let parts = json!([{"text": old}, {"functionResponse": {}}, {"text": new}]);
        let (name, arguments) = call(&json!({"contents": [{"role": "user", "parts": parts}]}));
        assert_eq!((name, &arguments["file_path"]), ("replace", &json!("/w/b")));
    }
}
