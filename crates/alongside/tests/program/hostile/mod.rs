//! Requests that no honest client sends, against the three ports of the real program: each is refused, none leaves a trace, and the
//! companion still works afterwards.

mod heads;
mod messages;
mod tools;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use alongside_protocol::{PageTarget, requests};
use serde_json::Value;

use crate::sandbox::{Agent, Sandbox, Serving};

/// Longer than any response takes; a connection that stays open is a failure.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Agents,
    Commands,
    Page,
}

/// What must come back.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// One of these statuses.
    Status(&'static [u16]),
    /// One of these statuses, or the connection is closed without a response.
    StatusOrClosed(&'static [u16]),
    /// A JSON-RPC error with this code.
    Rpc(i64),
    /// A tool's result that is an error, with a sentence.
    ToolError,
}

/// One request. `{host}`, `{port}` and `{token}` are replaced by what belongs to the port.
struct Row {
    name: &'static str,
    port: Port,
    request: Vec<u8>,
    /// Whether the client closes its side after that, because the request is not complete.
    ends: bool,
    expect: Expect,
}

/// The program, with a pending review that nothing here may touch.
struct Target {
    sandbox: Sandbox,
    serving: Serving,
    _agent: Agent,
    page_port: u16,
    secret: String,
}

impl Target {
    async fn start() -> Self {
        let sandbox = Sandbox::new();
        let secret = sandbox.write("secret.txt", "the secret of the workspace\n");
        let serving = sandbox.serve();
        let agent = Agent::connect(&serving).await;
        agent.propose(&secret, "the proposal\n").await;
        let mut front = serving.front_end(&sandbox).await;
        let link = front
            .call::<requests::PageLink>(PageTarget::default())
            .await
            .unwrap()
            .url;
        let page_port = link
            .split(':')
            .nth(2)
            .and_then(|rest| rest.split('/').next())
            .unwrap()
            .parse()
            .unwrap();
        Self {
            sandbox,
            serving,
            _agent: agent,
            page_port,
            secret,
        }
    }

    fn endpoint(&self, port: Port) -> (u16, String) {
        let (front, front_token) = self.serving.people(&self.sandbox);
        match port {
            Port::Agents => (self.serving.port, self.serving.token()),
            Port::Commands => (front, front_token.reveal().to_owned()),
            // It has no bearer token; any of ours must be useless there.
            Port::Page => (self.page_port, self.serving.token()),
        }
    }

    /// Sends a request and returns everything that comes back until the response is complete or the connection is closed.
    fn send(&self, row: &Row) -> Vec<u8> {
        let (port, token) = self.endpoint(row.port);
        let replaced = [
            ("{host}", format!("127.0.0.1:{port}")),
            ("{port}", port.to_string()),
            ("{token}", token),
            ("{secret}", self.secret.clone()),
        ];
        let request = replaced.iter().fold(row.request.clone(), |request, (name, value)| {
            replace(&request, name.as_bytes(), value.as_bytes())
        });
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(&request);
        if row.ends {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut response = Vec::new();
        let mut buffer = [0; 4096];
        while !is_complete(&response) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => response.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => {
                    let response = String::from_utf8_lossy(&response);
                    panic!("{}: the connection stays open ({error}) after {response:?}", row.name)
                }
            }
        }
        response
    }

    /// Sends a row and checks what comes back; the error says what is wrong.
    fn check(&self, row: &Row) -> Result<(), String> {
        let response = self.send(row);
        let text = String::from_utf8_lossy(&response).into_owned();
        let status: Option<u16> = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body: Value = text
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok())
            .unwrap_or_default();
        let is_expected = match row.expect {
            Expect::Status(statuses) => status.is_some_and(|status| statuses.contains(&status)),
            Expect::StatusOrClosed(statuses) => status.is_none_or(|status| statuses.contains(&status)),
            Expect::Rpc(code) => body["error"]["code"] == code,
            Expect::ToolError => {
                let sentence = body["result"]["content"][0]["text"].as_str().unwrap_or_default();
                body["result"]["isError"] == true && sentence.len() > 10
            }
        };
        let (_, token) = self.endpoint(row.port);
        let leaks = text.contains(&token) || text.contains("the secret of the workspace");
        if is_expected && !leaks {
            return Ok(());
        }
        let start: String = text.chars().take(300).collect();
        Err(format!(
            "{:?}: {}: expected {:?}, got {start:?}",
            row.port, row.name, row.expect
        ))
    }

    /// Nothing has changed: the review is pending as it was, and no other session or review exists.
    fn check_untouched(&self) {
        let status = self.sandbox.json(&["status"]);
        let companion = &status["companions"][0];
        assert_eq!(companion["reviews"].as_array().map(Vec::len), Some(1), "{companion}");
        assert_eq!(companion["reviews"][0]["path"], *self.secret);
        assert_eq!(
            fs::read_to_string(&self.secret).unwrap(),
            "the secret of the workspace\n"
        );
    }
}

/// Whether a response has as many bytes as it announces. One that may be followed by another is read to the end of the connection.
fn is_complete(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.parse().ok());
    if head.starts_with("http/1.1 101") {
        return true;
    }
    !head.contains("connection: close") && length.is_some_and(|length: usize| body.len() >= length)
}

fn replace(text: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.windows(name.len()).position(|window| window == name) {
        replaced.extend_from_slice(&rest[..position]);
        replaced.extend_from_slice(value);
        rest = &rest[position + name.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// Every request of the tables, one after the other and then all at once.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused() {
    let target = Target::start().await;
    let rows: Vec<Row> = [heads::rows(), messages::rows(), tools::rows()]
        .into_iter()
        .flatten()
        .collect();
    let mut failures: Vec<String> = rows.iter().filter_map(|row| target.check(row).err()).collect();
    target.check_untouched();
    std::thread::scope(|scope| {
        let target = &target;
        let checks: Vec<_> = rows
            .iter()
            .map(|row| scope.spawn(move || target.check(row).err()))
            .collect();
        failures.extend(checks.into_iter().filter_map(|check| check.join().unwrap()));
    });
    target.check_untouched();
    assert!(rows.len() >= 185, "{} rows", rows.len());
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        rows.len(),
        failures.join("\n")
    );
}

/// The tables are not refused for another reason: the same requests without a fault are served.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_requests_without_a_fault_are_served() {
    let target = Target::start().await;
    for row in heads::good_rows() {
        target.check(&row).unwrap();
    }
}
