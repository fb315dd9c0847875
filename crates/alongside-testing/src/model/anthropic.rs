//! Anthropic's messages: Claude Code.

use std::io::{self, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Turn;
use super::tools::Call;
use crate::http;

pub(super) fn respond(stream: &TcpStream, turn: Turn, streaming: bool) -> io::Result<()> {
    if !streaming {
        let (block, stop_reason) = match turn {
            Turn::Call(call) => (tool_use(&call, &call.input), "tool_use"),
            turn => (json!({"type": "text", "text": turn.into_text()}), "end_turn"),
        };
        let mut message = message();
        message["content"] = json!([block]);
        message["stop_reason"] = json!(stop_reason);
        return http::respond(stream, "application/json", &message.to_string());
    }
    http::start_stream(stream)?;
    event(stream, &json!({"type": "message_start", "message": message()}))?;
    let stop_reason = match turn {
        Turn::Call(call) => {
            start_block(stream, &tool_use(&call, &json!({})))?;
            let json = call.input.to_string();
            delta(stream, &json!({"type": "input_json_delta", "partial_json": json}))?;
            "tool_use"
        }
        turn => {
            start_block(stream, &json!({"type": "text", "text": ""}))?;
            let (pieces, pause) = turn.into_pieces();
            for piece in pieces {
                delta(stream, &json!({"type": "text_delta", "text": piece}))?;
                std::thread::sleep(pause);
            }
            "end_turn"
        }
    };
    event(stream, &json!({"type": "content_block_stop", "index": 0}))?;
    let end = json!({"stop_reason": stop_reason, "stop_sequence": null});
    event(
        stream,
        &json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}),
    )?;
    event(stream, &json!({"type": "message_stop"}))
}

fn message() -> Value {
    json!({
        "id": Call::next_id().replace("call", "msg"), "type": "message", "role": "assistant", "model": "fake-model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}
    })
}

fn tool_use(call: &Call, input: &Value) -> Value {
    json!({"type": "tool_use", "id": Call::next_id().replace("call", "toolu"), "name": call.name, "input": input})
}

fn start_block(stream: &TcpStream, block: &Value) -> io::Result<()> {
    event(
        stream,
        &json!({"type": "content_block_start", "index": 0, "content_block": block}),
    )
}

fn delta(stream: &TcpStream, delta: &Value) -> io::Result<()> {
    event(
        stream,
        &json!({"type": "content_block_delta", "index": 0, "delta": delta}),
    )
}

/// The event's name is its type.
fn event(mut stream: &TcpStream, data: &Value) -> io::Result<()> {
    let name = data["type"].as_str().unwrap_or_default();
    stream.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes())
}
