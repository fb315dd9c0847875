//! A model that does what the prompt says, for programs that speak `OpenAI`'s or Gemini's protocol.
//!
//! | prompt | the model |
//! |---|---|
//! | `COUNT 50` | says fifty different words, each in a piece of its own |
//! | `SLOW` | sends words until the connection is closed |
//! | `WRITE path text` | calls the tool that writes a file, and says `DONE.` afterwards |
//! | `QUESTION` | asks the user which color |
//! | anything else | `OK.` |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static CALLS: AtomicU64 = AtomicU64::new(1);

/// Starts the model, and gives its port.
pub(crate) async fn start() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

enum Turn {
    Say(Vec<String>),
    SayForever,
    Call(&'static str, Value),
}

async fn serve(mut stream: TcpStream) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        let length = length.unwrap_or_default();
        while buffer.len() < end + length {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
        let body: Value = serde_json::from_slice(&buffer[end..end + length]).unwrap_or_default();
        buffer.drain(..end + length);
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        answer(&mut stream, &target, &body).await?;
    }
}

async fn answer(stream: &mut TcpStream, target: &str, body: &Value) -> Option<()> {
    let turn = next_turn(body);
    if target.contains(":streamGenerateContent") {
        return stream_turn(stream, turn, gemini_piece, |_| None).await;
    }
    if target.contains("/chat/completions") && body["stream"] == true {
        return stream_turn(stream, turn, openai_piece, |reason| {
            let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
            let last = openai_envelope(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &usage);
            Some(format!("data: {last}\n\ndata: [DONE]\n\n"))
        })
        .await;
    }
    let text = match turn {
        Turn::Say(words) => words.concat(),
        _ => "OK.".to_owned(),
    };
    let plain = if target.contains(":generateContent") {
        gemini_envelope(&json!({"text": text}), true)
    } else if target.contains(":countTokens") {
        json!({"totalTokens": 1})
    } else {
        let message = json!({"role": "assistant", "content": text});
        json!({"id": "c", "object": "chat.completion", "created": 1, "model": "fake",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    };
    let text = plain.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).await.ok()
}

async fn stream_turn(
    stream: &mut TcpStream,
    turn: Turn,
    piece: fn(&Value) -> Value,
    last: impl Fn(&str) -> Option<String>,
) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut reason = "stop";
    match turn {
        Turn::Say(words) => {
            for word in words {
                write_chunk(stream, &format!("data: {}\n\n", piece(&json!({"text": word})))).await?;
            }
        }
        Turn::SayForever => {
            for number in 0.. {
                let word = format!("slow{number} ");
                write_chunk(stream, &format!("data: {}\n\n", piece(&json!({"text": word})))).await?;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
        Turn::Call(name, arguments) => {
            reason = "tool_calls";
            let call = json!({"call": name, "arguments": arguments});
            write_chunk(stream, &format!("data: {}\n\n", piece(&call))).await?;
        }
    }
    if let Some(last) = last(reason) {
        write_chunk(stream, &last).await?;
    }
    stream.write_all(b"0\r\n\r\n").await.ok()
}

async fn write_chunk(stream: &mut TcpStream, text: &str) -> Option<()> {
    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
    stream.write_all(chunk.as_bytes()).await.ok()
}

fn openai_envelope(choices: &Value, usage: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": choices, "usage": usage})
}

fn openai_piece(piece: &Value) -> Value {
    let delta = match piece["call"].as_str() {
        Some(name) => {
            let function = json!({"name": name, "arguments": piece["arguments"].to_string()});
            // Qwen Code does not run a call twice that has the id of an earlier one.
            let id = format!("call_{}", CALLS.fetch_add(1, Ordering::Relaxed));
            json!({"role": "assistant", "tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]})
        }
        None => json!({"role": "assistant", "content": piece["text"]}),
    };
    openai_envelope(
        &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
        &Value::Null,
    )
}

fn gemini_envelope(part: &Value, finished: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
    if finished {
        candidate["finishReason"] = json!("STOP");
    }
    json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}})
}

fn gemini_piece(piece: &Value) -> Value {
    match piece["call"].as_str() {
        Some(name) => gemini_envelope(
            &json!({"functionCall": {"name": name, "args": piece["arguments"]}}),
            true,
        ),
        None => gemini_envelope(&json!({"text": piece["text"]}), true),
    }
}

/// What the newest message asks for. Gemini calls messages contents.
fn next_turn(body: &Value) -> Turn {
    let messages = body
        .get("contents")
        .or_else(|| body.get("messages"))
        .and_then(Value::as_array);
    let Some(message) = messages.and_then(|messages| messages.last()) else {
        return Turn::Say(vec!["OK.".to_owned()]);
    };
    let parts = message
        .get("parts")
        .or_else(|| message.get("content"))
        .cloned()
        .unwrap_or_default();
    let parts = parts.as_array().cloned().unwrap_or_else(|| vec![parts]);
    for part in parts.iter().rev() {
        if message["role"] == "tool" || part.get("functionResponse").is_some() {
            return Turn::Say(vec!["DONE.".to_owned()]);
        }
        let text = part.as_str().or_else(|| part["text"].as_str()).unwrap_or_default();
        for line in text.lines().rev() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["COUNT", count] => {
                    let count: usize = count.parse().unwrap_or_default();
                    return Turn::Say((0..count).map(|number| format!("word{number} ")).collect());
                }
                ["SLOW"] => return Turn::SayForever,
                ["WRITE", path, text] => {
                    return Turn::Call("write_file", json!({"file_path": path, "content": text}));
                }
                ["QUESTION"] => {
                    let options =
                        json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}]);
                    let question = json!({"question": "Which color?", "header": "Color", "options": options, "multiSelect": false});
                    return Turn::Call("ask_user_question", json!({"questions": [question]}));
                }
                _ => {}
            }
        }
    }
    Turn::Say(vec!["OK.".to_owned()])
}
