//! `OpenAI`'s responses: Codex. It always streams.

use std::io::{self, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Turn;
use super::tools::Call;
use crate::http;

pub(super) fn respond(stream: &TcpStream, turn: Turn) -> io::Result<()> {
    http::start_stream(stream)?;
    let id = Call::next_id().replace("call", "resp");
    let response = json!({"id": id, "object": "response", "status": "in_progress", "output": []});
    event(stream, &json!({"type": "response.created", "response": response}))?;
    let item = match turn {
        Turn::Call(call) => {
            let item = call_item(&call);
            item_event(stream, "response.output_item.added", &item)?;
            item
        }
        turn => {
            let mut item = message(&[]);
            item_event(stream, "response.output_item.added", &item)?;
            let (pieces, pause) = turn.into_pieces();
            let mut text = String::new();
            for piece in pieces {
                text += &piece;
                let delta = json!({"type": "response.output_text.delta", "item_id": item["id"], "delta": piece});
                event(stream, &delta)?;
                std::thread::sleep(pause);
            }
            item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
            item
        }
    };
    item_event(stream, "response.output_item.done", &item)?;
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null, "total_tokens": 2
    });
    let response = json!({"id": id, "object": "response", "status": "completed", "output": [item], "usage": usage});
    event(stream, &json!({"type": "response.completed", "response": response}))
}

fn message(content: &[Value]) -> Value {
    let id = Call::next_id().replace("call", "msg");
    json!({"type": "message", "id": id, "role": "assistant", "content": content})
}

/// A call with a text instead of arguments is one of a custom tool.
fn call_item(call: &Call) -> Value {
    let id = Call::next_id();
    match &call.input {
        Value::String(text) => {
            json!({"type": "custom_tool_call", "id": format!("item_{id}"), "call_id": id, "name": call.name, "input": text})
        }
        arguments => json!({
            "type": "function_call", "id": format!("item_{id}"), "call_id": id, "name": call.name,
            "arguments": arguments.to_string()
        }),
    }
}

fn item_event(stream: &TcpStream, name: &str, item: &Value) -> io::Result<()> {
    event(stream, &json!({"type": name, "output_index": 0, "item": item}))
}

/// The event's name is its type.
fn event(mut stream: &TcpStream, data: &Value) -> io::Result<()> {
    let name = data["type"].as_str().unwrap_or_default();
    stream.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes())
}
