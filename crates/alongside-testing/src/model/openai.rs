//! `OpenAI`'s chat completions: Qwen Code, opencode and Copilot CLI.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Turn;
use super::tools::Call;
use crate::http;

pub(super) fn respond(stream: &TcpStream, turn: Turn, streaming: bool) -> io::Result<()> {
    let (mut message, finish_reason) = match turn {
        Turn::Stream(pieces, pause) if streaming => return pieces_of(stream, pieces, pause),
        Turn::Call(call) => {
            let function = json!({"name": call.name, "arguments": call.input.to_string()});
            let call = json!({"index": 0, "id": Call::next_id(), "type": "function", "function": function});
            (
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                "tool_calls",
            )
        }
        turn => (json!({"role": "assistant", "content": turn.into_text()}), "stop"),
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
fn pieces_of(mut stream: &TcpStream, pieces: impl Iterator<Item = String>, pause: Duration) -> io::Result<()> {
    http::start_stream(stream)?;
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
