//! The least that a companion could do: a bare hyper route that parses what agents send and responds with what agents get. There is no
//! session, no token, no review, and with `--write` one write of each proposal to a file.
#![allow(clippy::print_stderr, reason = "a command's output")]

use std::borrow::Cow;
use std::convert::Infallible;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// All programs wait this long for more context changes.
const DEBOUNCE: Duration = Duration::from_millis(50);

struct Floor {
    /// The text of the last proposal.
    text: Mutex<String>,
    file: Option<File>,
    /// The last context change, as an event.
    context: watch::Receiver<Bytes>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments<'a> {
    #[serde(borrow)]
    new_content: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Reply<'a, T> {
    jsonrpc: &'static str,
    id: u64,
    result: &'a T,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: &'a [Block<'a>],
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct FinalText<'a> {
    content: &'a str,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let writes = std::env::args().nth(1).is_some_and(|argument| argument == "--write");
    let file = writes
        .then(|| File::create(std::env::temp_dir().join("written")))
        .transpose()?;
    let (changes, context) = watch::channel(Bytes::new());
    let floor = Arc::new(Floor {
        text: Mutex::default(),
        file,
        context,
    });
    announce(listener.local_addr()?.port())?;
    std::thread::spawn(move || read_changes(&changes));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let floor = floor.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(floor.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            if let Err(error) = connection.await {
                eprintln!("floor: {error}");
            }
        });
    }
}

/// Writes the discovery file that agents look for.
fn announce(port: u16) -> Result<()> {
    let directory = std::env::temp_dir().join("gemini/ide");
    let name = format!("gemini-ide-server-{}-{port}.json", std::process::id());
    let (temporary, path) = (directory.join(format!("{name}.new")), directory.join(&name));
    let workspace = std::env::current_dir()?;
    let document = json!({
        "port": port, "workspacePath": workspace, "authToken": "floor",
        "ideInfo": {"name": "floor", "displayName": "Floor"},
    });
    fs::create_dir_all(&directory)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(document.to_string().as_bytes())?;
    fs::rename(&temporary, &path).context("cannot write the discovery file")
}

/// Each line on stdin is a context change.
fn read_changes(changes: &watch::Sender<Bytes>) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        std::thread::sleep(DEBOUNCE);
        let Ok(file) = serde_json::from_str::<serde_json::Value>(&line) else {
            break;
        };
        let params = json!({"workspaceState": {"openFiles": [file], "isTrusted": true}});
        let message = json!({"jsonrpc": "2.0", "method": "ide/contextUpdate", "params": params});
        changes.send_replace(format!("event: message\ndata: {message}\n\n").into());
    }
    // The benchmark stopped, or was killed: nothing else would stop this process.
    std::process::exit(0);
}

async fn answer(floor: Arc<Floor>, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    if request.method() == Method::GET {
        return Ok(events(&floor));
    }
    let body = request.into_body().collect().await?.to_bytes();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return Ok(plain(StatusCode::BAD_REQUEST, String::new()));
    };
    let Some(id) = message.id else {
        return Ok(plain(StatusCode::ACCEPTED, String::new()));
    };
    let params = message.params.unwrap_or(Params {
        name: None,
        arguments: None,
    });
    Ok(match (message.method.as_ref(), params.name.as_deref()) {
        ("tools/call", Some("openDiff")) => {
            let text = params.arguments.and_then(|arguments| arguments.new_content);
            floor.propose(text.unwrap_or_default().into_owned());
            result(id, &ToolResult { content: &[] })
        }
        ("tools/call", Some("closeDiff")) => {
            let final_text = serde_json::to_string(&FinalText {
                content: &floor.text.lock(),
            });
            let block = Block {
                r#type: "text",
                text: &final_text.unwrap_or_default(),
            };
            result(id, &ToolResult { content: &[block] })
        }
        _ => {
            let info = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": "1"},
            });
            result(id, &info)
        }
    })
}

impl Floor {
    fn propose(&self, text: String) {
        if let Some(mut file) = self.file.as_ref() {
            // A failed write would be a faster one.
            if let Err(error) = file.write_all(text.as_bytes()) {
                eprintln!("floor: {error}");
                std::process::exit(1);
            }
        }
        *self.text.lock() = text;
    }
}

/// The event stream: every context change.
fn events(floor: &Floor) -> Answer {
    let events = stream::unfold(floor.context.clone(), |mut context| async move {
        context.changed().await.ok()?;
        let event = context.borrow_and_update().clone();
        Some((Ok(Frame::data(event)), context))
    });
    let mut response = Response::new(StreamBody::new(events).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        hyper::header::HeaderValue::from_static("text/event-stream"),
    );
    response
}

fn result(id: u64, result: &impl Serialize) -> Answer {
    let message = Reply {
        jsonrpc: "2.0",
        id,
        result,
    };
    let mut response = plain(StatusCode::OK, serde_json::to_string(&message).unwrap_or_default());
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        hyper::header::HeaderValue::from_static("application/json"),
    );
    response
}

fn plain(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(Full::from(body).boxed_unsync());
    *response.status_mut() = status;
    response
}
