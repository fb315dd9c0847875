//! Tool calls of agents that have the token: wrong arguments, and paths that lead elsewhere.

use serde_json::{Value, json};

use super::Expect::{self, Rpc, ToolError};
use super::Row;
use super::messages::body;

fn call(name: &'static str, params: &Value, expect: Expect) -> Row {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    body(name, message.to_string(), expect)
}

fn open(name: &'static str, path: &Value) -> Row {
    let arguments = json!({"filePath": path, "newContent": "hostile"});
    call(name, &json!({"name": "openDiff", "arguments": arguments}), ToolError)
}

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Row> {
    vec![
        call("no parameters", &Value::Null, Rpc(-32602)),
        call("a list of parameters", &json!([1, 2]), Rpc(-32602)),
        call("a numeric name", &json!({"name": 1}), Rpc(-32602)),
        call("an unknown tool", &json!({"name": "exec", "arguments": {}}), Rpc(-32602)),
        call("no arguments", &json!({"name": "openDiff"}), ToolError),
        call("a string as arguments", &json!({"name": "openDiff", "arguments": "x"}), ToolError),
        call("a list of arguments", &json!({"name": "openDiff", "arguments": ["/a", "b"]}), ToolError),
        call("no content", &json!({"name": "openDiff", "arguments": {"filePath": "/a.txt"}}), ToolError),
        call("a number as content", &json!({"name": "openDiff", "arguments": {"filePath": "/a.txt", "newContent": 1}}), ToolError),
        call("null as content", &json!({"name": "openDiff", "arguments": {"filePath": "/a.txt", "newContent": null}}), ToolError),
        call("closeDiff without a path", &json!({"name": "closeDiff", "arguments": {}}), ToolError),
        call("closeDiff with a number", &json!({"name": "closeDiff", "arguments": {"filePath": 1}}), ToolError),
        open("a number as path", &json!(1)),
        open("null as path", &Value::Null),
        open("an empty path", &json!("")),
        open("a relative path", &json!("a.txt")),
        open("a relative path with dots", &json!("../../etc/passwd")),
        open("a path with a NUL", &json!("/tmp/a\u{0}b")),
        open("a directory", &json!("/")),
        open("a device", &json!("/dev/zero")),
        open("a path of 100 kB", &json!(format!("/{}", "x".repeat(100_000)))),
        open("a home directory", &json!("~/.bashrc")),
        open("a file URL", &json!("file:///etc/passwd")),
    ]
}
