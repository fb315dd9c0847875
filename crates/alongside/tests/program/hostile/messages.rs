//! Bodies of agents that have the token, and are not JSON-RPC.

use super::Expect::{self, Rpc, Status};
use super::Port::Agents;
use super::Row;

/// A `POST /mcp` with everything right but the body.
pub(super) fn body(name: &'static str, body: impl Into<Vec<u8>>, expect: Expect) -> Row {
    let body = body.into();
    let length = body.len();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {{host}}\r\nAuthorization: Bearer {{token}}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: hostile\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    Row {
        name,
        port: Agents,
        request: [head.into_bytes(), body].concat(),
        ends: false,
        expect,
    }
}

const PARSE_ERROR: Expect = Rpc(-32700);
const INVALID_REQUEST: Expect = Rpc(-32600);

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Row> {
    let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    vec![
        body("an empty body", "", PARSE_ERROR),
        body("no JSON", "hello", PARSE_ERROR),
        body("half of JSON", r#"{"jsonrpc":"2.0","id":1"#, PARSE_ERROR),
        body("two values", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#, PARSE_ERROR),
        body("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec(), PARSE_ERROR),
        body("UTF-16", "\u{feff}{\"jsonrpc\":\"2.0\"}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(), PARSE_ERROR),
        body("NULs", "\0\0\0\0", PARSE_ERROR),
        body("a comment", "{/* */}", PARSE_ERROR),
        body("100,000 open brackets", "[".repeat(100_000), PARSE_ERROR),
        body("100,000 nested parameters", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}}"#, deep(100_000)), Status(&[200, 400])),
        body("null", "null", INVALID_REQUEST),
        body("a number", "1", INVALID_REQUEST),
        body("a string", "\"ping\"", INVALID_REQUEST),
        body("an empty object", "{}", INVALID_REQUEST),
        body("an empty batch", "[]", INVALID_REQUEST),
        body("a batch of 101", format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"x"}"#; 101].join(",")), INVALID_REQUEST),
        body("no version", r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
        body("JSON-RPC 1.0", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
        body("a numeric version", r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, INVALID_REQUEST),
        body("a numeric method", r#"{"jsonrpc":"2.0","id":1,"method":1}"#, INVALID_REQUEST),
        body("an object as id", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST),
        body("an array as id", r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, INVALID_REQUEST),
        body("a boolean as id", r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID_REQUEST),
        body("a string as parameters", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#, Rpc(-32602)),
        body("a method twice", r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, INVALID_REQUEST),
        body("an unknown method", r#"{"jsonrpc":"2.0","id":1,"method":"system/exec"}"#, Rpc(-32601)),
        body("a method of the front ends", r#"{"jsonrpc":"2.0","id":1,"method":"review/accept","params":{"review":1}}"#, Rpc(-32601)),
        body("the companion's stop", r#"{"jsonrpc":"2.0","id":1,"method":"stop"}"#, Rpc(-32601)),
        body("a method with a NUL", r#"{"jsonrpc":"2.0","id":1,"method":"ping\u0000"}"#, Rpc(-32601)),
        body("initialize without parameters", r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, Rpc(-32602)),
        body("initialize with a number as client", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":1}}"#, Rpc(-32602)),
    ]
}
