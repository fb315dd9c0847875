//! Gemini's `generateContent`.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Turn;
use crate::http;

pub(super) fn respond(stream: &TcpStream, turn: Turn, streaming: bool) -> io::Result<()> {
    match turn {
        Turn::Stream(pieces, pause) if streaming => pieces_of(stream, pieces, pause),
        turn if streaming => http::respond(stream, "text/event-stream", &format!("data: {}\n\n", response(turn))),
        turn => http::respond(stream, "application/json", &response(turn).to_string()),
    }
}

fn response(turn: Turn) -> Value {
    envelope(&match turn {
        Turn::Call(call) => json!({"functionCall": {"name": call.name, "args": call.input}}),
        turn => json!({"text": turn.into_text()}),
    })
}

fn envelope(part: &Value) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    })
}

/// Streams the pieces, until the end or until the connection is closed.
fn pieces_of(mut stream: &TcpStream, pieces: impl Iterator<Item = String>, pause: Duration) -> io::Result<()> {
    http::start_stream(stream)?;
    for piece in pieces {
        stream.write_all(format!("data: {}\n\n", envelope(&json!({"text": piece}))).as_bytes())?;
        std::thread::sleep(pause);
    }
    Ok(())
}
