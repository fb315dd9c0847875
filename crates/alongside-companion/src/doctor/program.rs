//! Checks a companion that agents start as a program instead of connecting to a port.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use alongside_agent::acp::Group;
use alongside_core::dialect::ClientInfo;
use alongside_wire::lines::{Line, LineReader, write_line};
use alongside_wire::rpc::{self, Message, PARSE_ERROR};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, BufReader, Take};
use tokio::process::{ChildStdin, ChildStdout, Command};

/// How long the program may take to exit after its stdin is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The most output that is read in all; more than both responses need.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Starts a program, performs the MCP handshake over its stdin and stdout, and stops it. Returns the server's name and the names of
/// its tools, or a sentence about what went wrong.
pub(super) async fn ask(
    command: &str,
    arguments: &[String],
    me: &ClientInfo,
    timeout: Duration,
) -> Result<(String, Vec<String>), String> {
    let mut program = Command::new(alongside_platform::program(OsStr::new(command)));
    program
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut group = Group::start(program).map_err(|error| format!("cannot start it: {error}"))?;
    let mut client = StdioClient::new(&mut group).ok_or("cannot open its stdin and stdout")?;
    let handshake = async {
        let me = json!({ "name": me.name, "version": me.version });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me });
        let welcome = client.request(1, "initialize", &hello).await?;
        client
            .send(rpc::notification("notifications/initialized", None::<&()>))
            .await?;
        let tools = client.request(2, "tools/list", &json!({})).await?;
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
    let result = tokio::time::timeout(timeout, handshake).await;
    // Closing its stdin tells it to exit; if it does not, it is killed.
    drop(client);
    let _ = tokio::time::timeout(EXIT_TIMEOUT, group.exited()).await;
    group.end().await;
    result.unwrap_or_else(|_| Err(format!("it did not respond within {} s", timeout.as_secs())))
}

/// Sends one request at a time to a child.
struct StdioClient {
    input: ChildStdin,
    lines: LineReader<BufReader<Take<ChildStdout>>>,
}

impl StdioClient {
    fn new(group: &mut Group) -> Option<Self> {
        let (input, output, _) = group.pipes();
        Some(Self {
            input: input?,
            lines: LineReader::new(BufReader::new(output?.take(MAX_OUTPUT_BYTES)), usize::MAX),
        })
    }

    async fn send(&mut self, message: serde_json::Result<String>) -> Result<(), String> {
        let message = message.map_err(|error| format!("cannot send a message to it: {error}"))?;
        // A program that closed its stdin may still have written something; reading that tells more than this error.
        let _ = write_line(&mut self.input, &message).await;
        Ok(())
    }

    async fn request(&mut self, id: u64, method: &str, params: &impl Serialize) -> Result<Value, String> {
        self.send(rpc::request(id, method, Some(params))).await?;
        loop {
            let Ok(Some(Line::Complete(line) | Line::Unterminated(line))) = self.lines.next().await else {
                return Err("it exited without responding".to_owned());
            };
            match Message::parse_bytes(line) {
                Ok(Message::Response(response)) if response.number() == Some(id) => {
                    return match response.result {
                        Ok(result) => Ok(serde_json::from_str(result.get()).unwrap_or_default()),
                        Err(error) => Err(format!("it returned an error: {}", error.message)),
                    };
                }
                Err(invalid) if invalid.error.code == PARSE_ERROR => return Err("its output is not MCP".to_owned()),
                // Notifications, and whatever else it sends.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// For programs that respond or exit.
    const PATIENT: Duration = Duration::from_secs(30);

    async fn ask_shell(script: &str, timeout: Duration) -> Result<(String, Vec<String>), String> {
        let me = ClientInfo {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let arguments = ["-c".to_owned(), script.to_owned()];
        ask("sh", &arguments, &me, timeout).await
    }

    #[tokio::test]
    async fn mcp_program_reports_its_name_and_tools() {
        let script = r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"a","version":"2"}}}'
            read initialized; read list; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"openDiff"}]}}'"#;
        let result = ask_shell(script, PATIENT).await;
        assert_eq!(result, Ok(("a 2".to_owned(), vec!["openDiff".to_owned()])));
    }

    #[tokio::test]
    async fn program_ends_with_everything_that_it_started() {
        let scratch = tempfile::tempdir().unwrap();
        let noted = scratch.path().join("pid");
        let script = format!("sleep 600 > /dev/null & echo $! > '{}'; exit 0", noted.display());
        assert!(ask_shell(&script, PATIENT).await.is_err());
        let pid: u32 = std::fs::read_to_string(noted).unwrap().trim().parse().unwrap();
        tokio::time::timeout(PATIENT, crate::editor::ended(pid)).await.unwrap();
    }

    #[tokio::test]
    async fn other_programs_are_reported_with_the_reason() {
        let short = Duration::from_secs(1);
        for (script, timeout, sentence) in [
            ("exit 0", PATIENT, "it exited without responding"),
            ("echo hello", PATIENT, "its output is not MCP"),
            ("exec <&-; echo hello", PATIENT, "its output is not MCP"),
            ("exec sleep 60", short, "it did not respond within 1 s"),
        ] {
            assert_eq!(ask_shell(script, timeout).await, Err(sentence.to_owned()), "{script}");
        }
        let me = ClientInfo {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let missing = ask("/no/such/program", &[], &me, Duration::from_secs(1)).await;
        assert!(missing.is_err_and(|sentence| sentence.starts_with("cannot start it")));
    }
}
