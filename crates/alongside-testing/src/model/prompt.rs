//! The language of the prompts that the model obeys.

use std::time::Duration;

use serde_json::json;

use super::Turn;
use super::tools::{Call, Tools};

/// A prompt that the model obeys. `Display` writes what a user would type: one line, with escaped blanks.
pub enum Prompt<'a> {
    /// Read that file, which some agents require before a change.
    Read(&'a str),
    /// Write this text into that file.
    WriteFile(&'a str, &'a str),
    /// Replace the first text by the second in that file.
    Edit(&'a str, &'a str, &'a str),
    /// Ask the editor for that file's diagnostics.
    Diagnostics(&'a str),
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
    /// A question in plain words, for pictures.
    Explain,
}

const EXPLAIN: &str = "What does greeting() do?";
const EXPLANATION: &str = "`greeting` returns **Hello** and the name:\n\n```rust\ngreeting(\"Ada\") // \"Hello, Ada\"\n```\n\nIt allocates \
    twice; `format!` would do it in one line.";

impl std::fmt::Display for Prompt<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(path) => write!(formatter, "DO read {path}"),
            Self::WriteFile(path, text) => write!(formatter, "DO write_file {path} {}", escaped(text)),
            Self::Edit(path, old, new) => write!(formatter, "DO edit {path} {} {}", escaped(old), escaped(new)),
            Self::Diagnostics(path) => write!(formatter, "DO diagnostics {path}"),
            Self::Say(text) => write!(formatter, "DO say {}", escaped(text)),
            Self::Count(count) => write!(formatter, "DO count {count}"),
            Self::Slow => write!(formatter, "DO slow"),
            Self::Code(lines) => write!(formatter, "DO code {lines}"),
            Self::Ask => write!(formatter, "DO ask"),
            Self::Plan => write!(formatter, "DO plan"),
            Self::Explain => formatter.write_str(EXPLAIN),
        }
    }
}

/// The prompt in the last line of a text that is one.
pub(super) fn command_in(text: &str) -> Option<&str> {
    text.lines().rev().find_map(|line| match line.trim() {
        EXPLAIN => Some("explain"),
        line => line.strip_prefix("DO "),
    })
}

/// What the model does for a prompt. An agent without tools, such as one that asks for a title, gets only words.
pub(super) fn obey(command: &str, tools: Option<Tools>) -> Turn {
    let words: Vec<&str> = command.split_whitespace().collect();
    let call = |call: &dyn Fn(Tools) -> Call| tools.map_or_else(Turn::ok, |tools| Turn::Call(call(tools)));
    match words.as_slice() {
        ["read", path] => call(&|tools| tools.read(path)),
        ["write_file", path, text] => call(&|tools| tools.write(path, &plain(text))),
        ["edit", path, old, new] => call(&|tools| tools.edit(path, &plain(old), &plain(new))),
        ["diagnostics", path] => call(&|tools| tools.diagnostics(path)),
        ["say", text] => say(&plain(text)),
        ["explain"] => say(EXPLANATION),
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
            Turn::Call(Call::new("todo_write", json!({"todos": steps})))
        }
        ["ask"] => {
            let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}]);
            let question =
                json!({"question": "Which color?", "header": "Color", "options": options, "multiSelect": false});
            Turn::Call(Call::new("ask_user_question", json!({"questions": [question]})))
        }
        _ => Turn::Say("I do not know how.".to_owned()),
    }
}

/// Answers a few characters at a time.
fn say(text: &str) -> Turn {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(5).map(|piece| piece.iter().collect()).collect();
    Turn::Stream(Box::new(pieces.into_iter()), Duration::ZERO)
}

/// Blanks become `_`, line ends become `\n` and `\r`. The text must not contain `_` or a backslash.
fn escaped(text: &str) -> String {
    text.replace('\r', r"\r").replace('\n', r"\n").replace(' ', "_")
}

fn plain(word: &str) -> String {
    word.replace('_', " ").replace(r"\n", "\n").replace(r"\r", "\r")
}
