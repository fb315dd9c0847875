//! The agents of a load: as many as the program lets in.

use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{Client, ClientError};
use alongside_testing::Sandbox;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};

use super::Part;
use crate::program::Endpoints;

/// More than any setting.
const MOST: usize = 2000;
/// The pause of an agent between two requests.
const PAUSE: Duration = Duration::from_millis(500);

/// How long requests took.
#[derive(Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank among a few thousand"
        )]
        let rank = ((sorted.len() as f64 - 1.0).max(0.0) * share).round() as usize;
        sorted.get(rank).copied().unwrap_or_default()
    }
}

/// A session with an event stream that is read.
struct Reader {
    client: Client,
    stream: JoinHandle<()>,
}

pub(crate) struct Crowd {
    endpoints: Endpoints,
    directory: PathBuf,
    readers: Vec<Reader>,
    /// Streams that nobody reads.
    deaf: Vec<TcpStream>,
    limit: usize,
}

impl Crowd {
    /// Starts sessions until the program refuses one. That many is its limit.
    pub(crate) async fn gather(endpoints: &Endpoints, sandbox: &Sandbox) -> Self {
        let mut crowd = Self {
            endpoints: endpoints.clone(),
            directory: sandbox.workspace(),
            readers: Vec::new(),
            deaf: Vec::new(),
            limit: 0,
        };
        while crowd.readers.len() < MOST {
            match crowd.start_reader().await {
                Ok(reader) => crowd.readers.push(reader),
                Err(ClientError::Status { status: 503, .. }) => break,
                Err(error) => panic!("session {}: {error}", crowd.readers.len() + 1),
            }
        }
        crowd.limit = crowd.readers.len();
        crowd
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    async fn start_reader(&self) -> Result<Reader, ClientError> {
        let client = Client::new("127.0.0.1", self.endpoints.port, self.endpoints.token())?;
        let me = ClientInfo {
            name: "streamable-http-client".to_owned(),
            version: "0.61.0".to_owned(),
        };
        client.initialize(&me).await?;
        let mut events = client.events(None).await?;
        let stream = tokio::spawn(async move { while let Ok(Some(_)) = events.next_text().await {} });
        Ok(Reader { client, stream })
    }

    /// Opens reviews, evenly. Returns how many there are.
    pub(crate) async fn open_reviews(&self, count: usize) -> usize {
        let mut opened = 0;
        for number in 0..count {
            let reader = &self.readers[number % self.readers.len()];
            let path = self.directory.join(format!("pending-{number}.txt"));
            let text = format!("review {number}\n").repeat(700);
            opened += usize::from(propose(&reader.client, &path, &text).await.is_ok());
        }
        opened
    }

    /// A tenth of the sessions stops reading: their streams are replaced by connections that nobody reads.
    pub(crate) async fn deafen(&mut self) -> usize {
        let count = self.readers.len() / 10;
        for reader in self.readers.split_off(self.readers.len() - count) {
            reader.stream.abort();
            let session = reader.client.session_id().unwrap_or_default();
            let (port, token) = (self.endpoints.port, self.endpoints.token());
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            write!(
                stream,
                "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
            )
            .unwrap();
            self.deaf.push(stream);
        }
        tokio::task::yield_now().await;
        count
    }

    /// Every reading session proposes changes for a while, one after the other. `sample` is called once a second.
    pub(crate) async fn work(&self, time: Duration, mut sample: impl FnMut(Duration)) -> Part {
        let start = Instant::now();
        let latencies: Arc<Mutex<Vec<Vec<Duration>>>> = Arc::new(Mutex::new(vec![Vec::new(); self.readers.len()]));
        let mut working = JoinSet::new();
        for (index, reader) in self.readers.iter().enumerate() {
            let (client, latencies) = (reader.client.clone(), latencies.clone());
            let path = self.directory.join(format!("agent-{index}.txt"));
            working.spawn(async move {
                // Not all at the same moment.
                tokio::time::sleep(PAUSE * u32::try_from(index % 20).unwrap_or_default() / 20).await;
                for number in 0_u64.. {
                    if start.elapsed() > time {
                        return;
                    }
                    let text = format!("proposal {number} of agent {index}\n").repeat(30);
                    let begin = Instant::now();
                    propose(&client, &path, &text).await.expect("a proposal is accepted");
                    latencies.lock()[index].push(begin.elapsed());
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                done = working.join_next() => match done {
                    Some(done) => done.expect("an agent works"),
                    None => break,
                },
                _ = ticks.tick() => sample(start.elapsed()),
            }
        }
        let latencies = std::mem::take(&mut *latencies.lock());
        let median = |of_one: &Vec<Duration>| Latencies(of_one.clone()).quantile(0.5);
        Part {
            medians: latencies.iter().map(median).collect(),
            all: Latencies(latencies.into_iter().flatten().collect()),
        }
    }

    /// All clients disconnect, properly or not.
    pub(crate) async fn disperse(self) {
        for (index, reader) in self.readers.into_iter().enumerate() {
            if index % 2 == 0 {
                let _ = reader.client.end().await;
            }
            reader.stream.abort();
        }
    }
}

async fn propose(client: &Client, path: &std::path::Path, text: &str) -> Result<(), ClientError> {
    let arguments = json!({"filePath": path, "newContent": text});
    let result = client
        .request("tools/call", json!({"name": "openDiff", "arguments": arguments}))
        .await?;
    assert_ne!(result["isError"], true, "{result}");
    Ok(())
}
