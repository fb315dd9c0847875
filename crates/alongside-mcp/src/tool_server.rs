//! An ordinary MCP server over stdin and stdout: tools that an agent shows to its model.
//!
//! Gemini CLI and Qwen Code keep the tools of their companion to themselves, so what the model may ask for is a server of its own. It
//! handles one message at a time, one per line, and has no state: the tools do not depend on `initialize`.

use std::borrow::Cow;
use std::io;

use alongside_wire::lines::{Line, LineReader, write_line};
use alongside_wire::rpc::{self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Request, RpcError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use crate::protocol::{self, shortened};

/// Arguments are short.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// What a server offers.
pub trait Toolbox: Send {
    /// The tools with their names, descriptions and schemas, as in the response to `tools/list`.
    fn list(&self) -> Value;

    /// Runs a tool. The result is for the model, and so is the error; `None` if there is no such tool.
    fn call(&mut self, name: &str, arguments: Value)
    -> impl Future<Output = Option<Result<ToolResult, String>>> + Send;
}

/// What a tool returns. JSON is always an object: Gemini CLI treats any JSON as structured content, which must be one, and fails
/// the call otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    Object(Map<String, Value>),
    Sentence(String),
}

/// Serves until the input ends. An error means that input or output failed.
pub async fn serve<T, I, O>(mut toolbox: T, input: I, mut output: O) -> io::Result<()>
where
    T: Toolbox,
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
{
    let mut lines = LineReader::new(BufReader::new(input), MAX_MESSAGE_BYTES);
    while let Some(line) = lines.next().await? {
        let response = match line {
            Line::TooLong => {
                let error = RpcError::new(INVALID_REQUEST, "The message is too long.");
                Some(rpc::error_response(None, &error))
            }
            Line::Complete(line) | Line::Unterminated(line) if line.trim_ascii().is_empty() => None,
            Line::Complete(line) | Line::Unterminated(line) => match Message::parse_bytes(line) {
                Ok(Message::Request(request)) => Some(respond(&mut toolbox, &request).await),
                // Nothing is sent that would have a response.
                Ok(Message::Notification(_) | Message::Response(_)) => None,
                Err(invalid) => Some(invalid.to_response()),
            },
        };
        if let Some(response) = response {
            write_line(&mut output, &response).await?;
        }
    }
    Ok(())
}

async fn respond(toolbox: &mut impl Toolbox, request: &Request<'_>) -> String {
    let response = match &*request.method {
        "initialize" => {
            protocol::initialize_params(request).map(|params| protocol::initialize_reply(request, params.version))
        }
        "ping" => Ok(request.response(&json!({}))),
        "tools/list" => Ok(request.response(&json!({ "tools": toolbox.list() }))),
        "tools/call" => call(toolbox, request).await,
        method => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!("Unknown method {}.", shortened(method)),
        )),
    };
    response.unwrap_or_else(|error| request.error(&error))
}

async fn call(toolbox: &mut impl Toolbox, request: &Request<'_>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default)]
        arguments: Value,
    }

    let Parameters { name, arguments } = request.params()?;
    let unknown = || RpcError::new(INVALID_PARAMS, format!("Unknown tool {}.", shortened(&name)));
    let result = toolbox.call(&name, arguments).await.ok_or_else(unknown)?;
    let is_error = result.is_err();
    let text = match result {
        Ok(ToolResult::Object(object)) => Value::Object(object).to_string(),
        Ok(ToolResult::Sentence(text)) | Err(text) => text,
    };
    let content = json!([{ "type": "text", "text": text }]);
    Ok(request.response(&json!({ "content": content, "isError": is_error })))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Toolbox for Echo {
        fn list(&self) -> Value {
            json!([{ "name": "echo" }])
        }

        async fn call(&mut self, name: &str, arguments: Value) -> Option<Result<ToolResult, String>> {
            let result = match (arguments["text"].as_str(), &arguments) {
                (Some(text), _) => Ok(ToolResult::Sentence(text.to_owned())),
                (None, Value::Object(arguments)) => Ok(ToolResult::Object(arguments.clone())),
                (None, _) => Err("`text` is missing.".to_owned()),
            };
            (name == "echo").then_some(result)
        }
    }

    async fn exchange(input: &str) -> Vec<Value> {
        let mut output = Vec::new();
        serve(Echo, input.as_bytes(), &mut output).await.unwrap();
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    fn request(id: u32, method: &str, params: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    }

    #[tokio::test]
    async fn client_initializes_lists_and_calls_tools() {
        let initialize = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "gemini-cli", "version": "1" },
        });
        let input = [
            request(1, "initialize", &initialize),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            request(2, "tools/list", &json!({})),
            request(
                3,
                "tools/call",
                &json!({ "name": "echo", "arguments": { "text": "hello" } }),
            ),
            request(4, "tools/call", &json!({ "name": "echo" })),
            request(5, "tools/call", &json!({ "name": "echo", "arguments": { "n": [1] } })),
        ];
        let responses = exchange(&input.join("\n")).await;
        assert_eq!(responses.len(), 5);
        assert_eq!(responses[0]["result"]["protocolVersion"], "2025-06-18");
        assert!(responses[0]["result"]["capabilities"]["tools"].is_object());
        assert_eq!(responses[1]["result"], json!({ "tools": [{ "name": "echo" }] }));
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        assert_eq!(
            responses[2]["result"],
            json!({ "content": text("hello"), "isError": false })
        );
        assert_eq!(
            responses[3]["result"],
            json!({ "content": text("`text` is missing."), "isError": true })
        );
        assert_eq!(
            responses[4]["result"],
            json!({ "content": text("{\"n\":[1]}"), "isError": false })
        );
    }

    #[tokio::test]
    async fn invalid_messages_get_errors_and_the_next_is_served() {
        let long = "x".repeat(MAX_MESSAGE_BYTES);
        let input = [
            "garbage".to_owned(),
            long,
            request(1, "resources/list", &json!({})),
            request(2, "tools/call", &json!({ "name": "other" })),
            request(3, "ping", &json!({})),
        ];
        let responses = exchange(&input.join("\n\n")).await;
        let codes: Vec<&Value> = responses.iter().map(|response| &response["error"]["code"]).collect();
        assert_eq!(
            codes,
            [
                &json!(-32700),
                &json!(-32600),
                &json!(-32601),
                &json!(-32602),
                &Value::Null
            ]
        );
        assert_eq!(responses[4]["result"], json!({}));
    }
}
