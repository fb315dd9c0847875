//! A companion that a command line starts instead of dialling: started here too, and asked the same.

use std::process::Stdio;
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines, Take};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long a program has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// More than any answer to these questions.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Starts a program, shakes hands over its standard input and output, and ends it. Gives the server's name and the names of
/// its tools, or a sentence about what went wrong.
pub(super) async fn ask(
    command: &str,
    arguments: &[String],
    me: &ClientInfo,
    patience: Duration,
) -> Result<(String, Vec<String>), String> {
    let mut child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let mut talk = Talk::with(&mut child).ok_or("cannot open its stdin and stdout")?;
    let asked = async {
        let client = json!({ "name": me.name, "version": me.version });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let welcome = talk.request(1, "initialize", hello).await?;
        talk.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        let tools = talk.request(2, "tools/list", json!({})).await?;
        let server = &welcome["serverInfo"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = tools["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|tool| text(&tool["name"]))
            .collect();
        Ok((format!("{} {}", text(&server["name"]), text(&server["version"])), names))
    };
    let limited = tokio::time::timeout(patience, asked).await;
    // It ends by itself when its input does, in good order; and if not, then all the same.
    drop(talk);
    let _ = tokio::time::timeout(GRACE, child.wait()).await;
    limited.unwrap_or_else(|_| Err(format!("it did not respond within {} s", patience.as_secs())))
}

/// One message a line.
struct Talk {
    input: ChildStdin,
    lines: Lines<BufReader<Take<ChildStdout>>>,
}

impl Talk {
    fn with(child: &mut Child) -> Option<Self> {
        let output = child.stdout.take()?.take(LONGEST_ANSWER);
        Some(Self {
            input: child.stdin.take()?,
            lines: BufReader::new(output).lines(),
        })
    }

    async fn say(&mut self, message: Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let said = self.input.write_all(line.as_bytes()).await;
        said.map_err(|_| "it exited without responding".to_owned())
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Result<Value, String> {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            let line = self.lines.next_line().await;
            let Ok(Some(line)) = line else {
                return Err("it exited without responding".to_owned());
            };
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
                return Err("its output is not MCP".to_owned());
            };
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(format!(
                        "it returned an error: {}",
                        error["message"].as_str().unwrap_or_default()
                    )),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn ask_shell(script: &str) -> Result<(String, Vec<String>), String> {
        let me = ClientInfo {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let arguments = ["-c".to_owned(), script.to_owned()];
        ask("sh", &arguments, &me, Duration::from_secs(1)).await
    }

    #[tokio::test]
    async fn a_program_that_speaks_mcp_says_who_it_is_and_what_it_has() {
        let script = r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"a","version":"2"}}}'
            read initialized; read list; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"openDiff"}]}}'"#;
        let answer = ask_shell(script).await;
        assert_eq!(answer, Ok(("a 2".to_owned(), vec!["openDiff".to_owned()])));
    }

    #[tokio::test]
    async fn a_program_that_does_not_is_no_companion() {
        for (script, sentence) in [
            ("exit 0", "it exited without responding"),
            ("echo hello", "its output is not MCP"),
            ("exec sleep 60", "it does not answer within 1 s"),
        ] {
            assert_eq!(ask_shell(script).await, Err(sentence.to_owned()), "{script}");
        }
        let me = ClientInfo {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let missing = ask("/no/such/program", &[], &me, Duration::from_secs(1)).await;
        assert!(missing.is_err_and(|sentence| sentence.starts_with("it cannot be started")));
    }
}
