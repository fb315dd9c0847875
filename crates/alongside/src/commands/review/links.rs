//! The reviewer's connections: one task for each companion, which reconnects for as long as the reviewer runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;
use alongside_front::client::{Client, ClientError, Incoming};
use alongside_protocol::{ErrorKind, Hello, Request, RequestError};
use alongside_terminal::{CompanionIndex, LinkEvent, Links, RunningCompanion};
use tokio::sync::mpsc;

/// Between two attempts to reconnect, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// What a companion sends while the reviewer is busy, for example with the user's editor. After that the companion itself sends a resync.
const MAX_QUEUED_EVENTS: usize = 1024;
/// How long a companion that stopped responding is waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

type Event = (CompanionIndex, LinkEvent);
/// Finds a companion, again after it was restarted.
type Find = Box<dyn Fn() -> Option<CompanionRecord> + Send + Sync>;

pub(crate) struct Connections {
    places: Places,
    requests: Vec<mpsc::UnboundedSender<Request>>,
    /// The PIDs of the attached companions.
    attached: Vec<u32>,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
}

impl Connections {
    /// Attaches the first companion.
    pub(crate) fn new(places: Places, record: &CompanionRecord, find: Find) -> Self {
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let mut connections = Self {
            places,
            requests: Vec::new(),
            attached: vec![record.pid],
            events,
            sender,
        };
        connections.start(find);
        connections
    }

    fn start(&mut self, find: Find) {
        let (requests, received) = mpsc::unbounded_channel();
        let link = Link {
            index: self.requests.len(),
            events: self.sender.clone(),
            requests: received,
            find,
        };
        self.requests.push(requests);
        tokio::spawn(link.run());
    }

    /// Attaches the companion of another workspace.
    pub(crate) fn attach_record(&mut self, record: &CompanionRecord) {
        self.attached.push(record.pid);
        let (places, workspace, pid) = (self.places.clone(), record.workspace.clone(), record.pid);
        self.start(Box::new(move || find_again(&places, pid, &workspace)));
    }
}

/// The companion with this PID or, after a restart, one for the same folders.
fn find_again(places: &Places, pid: u32, workspace: &[PathBuf]) -> Option<CompanionRecord> {
    let mut records = companion_record::all(places);
    let position = records.iter().position(|record| record.pid == pid);
    let position = position.or_else(|| records.iter().position(|record| record.workspace == workspace))?;
    Some(records.swap_remove(position))
}

impl Links for Connections {
    fn send(&mut self, companion: CompanionIndex, request: Request) {
        if let Some(requests) = self.requests.get(companion) {
            // The task ends only with the program.
            let _ = requests.send(request);
        }
    }

    fn running(&mut self) -> Vec<RunningCompanion> {
        let records = companion_record::all(&self.places).into_iter();
        let others = records.filter(|record| !self.attached.contains(&record.pid) && !record.is_private);
        let running = others.map(|record| RunningCompanion {
            pid: record.pid,
            name: record.display_name,
            workspace: record.workspace,
        });
        running.collect()
    }

    fn attach(&mut self, companion: RunningCompanion) {
        self.attached.push(companion.pid);
        let places = self.places.clone();
        self.start(Box::new(move || {
            find_again(&places, companion.pid, &companion.workspace)
        }));
    }

    async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            // We hold a sender.
            None => std::future::pending().await,
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

struct Link {
    index: CompanionIndex,
    events: mpsc::Sender<Event>,
    requests: mpsc::UnboundedReceiver<Request>,
    find: Find,
}

/// The reviewer is gone.
struct Gone;

impl Link {
    async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let reason = match self.connect().await {
                Ok((client, event)) => {
                    pause = FIRST_PAUSE;
                    if self.report(event).await.is_err() {
                        return;
                    }
                    match self.follow(client).await {
                        Ok(error) => error.to_string(),
                        Err(Gone) => return,
                    }
                }
                Err(reason) => reason,
            };
            if self.report(LinkEvent::Disconnected { reason }).await.is_err() || self.wait(pause).await.is_err() {
                return;
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn report(&self, event: LinkEvent) -> Result<(), Gone> {
        self.events.send((self.index, event)).await.map_err(|_| Gone)
    }

    async fn connect(&self) -> Result<(Client, LinkEvent), String> {
        let record = (self.find)().ok_or("no companion is running; run `alongside` to start one")?;
        let hello = Hello {
            watch: true,
            interactive: true,
            chat: true,
            ..Hello::new("alongside review")
        };
        let client = record.connect_as(hello).await.map_err(|error| error.to_string())?;
        let connected = LinkEvent::Connected {
            workspace: record.workspace.clone(),
            version: String::new(),
        };
        Ok((client, connected))
    }

    /// Waits before the next attempt. What is requested meanwhile fails.
    async fn wait(&mut self, pause: Duration) -> Result<(), Gone> {
        let over = tokio::time::sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return Ok(()),
                request = self.requests.recv() => {
                    let request = request.ok_or(Gone)?;
                    self.fail(request).await?;
                }
            }
        }
    }

    async fn fail(&self, request: Request) -> Result<(), Gone> {
        let error = RequestError::new(
            ErrorKind::NotConnected,
            "the companion is not connected; try again once it is",
        );
        let reply = LinkEvent::Reply {
            request: Box::new(request),
            result: Err(error),
        };
        self.report(reply).await
    }

    /// Passes on what is sent in both directions, until the connection is lost.
    async fn follow(&mut self, mut client: Client) -> Result<ClientError, Gone> {
        let mut sent: HashMap<u64, (Request, Instant)> = HashMap::new();
        let mut check = tokio::time::interval(RESPONSE_TIMEOUT);
        let error = loop {
            tokio::select! {
                request = self.requests.recv() => {
                    let request = request.ok_or(Gone)?;
                    match client.post(&request).await {
                        Ok(id) => { sent.insert(id, (request, Instant::now())); }
                        Err(error) => {
                            self.fail(request).await?;
                            break error;
                        }
                    }
                }
                incoming = client.incoming() => match incoming {
                    Ok(Incoming::Notification(notification)) => {
                        self.report(LinkEvent::Notification(Box::new(notification))).await?;
                    }
                    Ok(Incoming::Response { id, result }) => {
                        let Some((request, _)) = sent.remove(&id) else { continue };
                        let result = result.and_then(|json| request.parse_response(&json).map(Box::new).map_err(|error| {
                            RequestError::new(ErrorKind::Internal, format!("invalid response from the companion: {error}"))
                        }));
                        let request = Box::new(request);
                        self.report(LinkEvent::Reply { request, result }).await?;
                    }
                    Err(error) => break error,
                },
                _ = check.tick() => {
                    let is_late = |(request, at): &(Request, Instant)| !request.is_slow() && at.elapsed() > RESPONSE_TIMEOUT;
                    if sent.values().any(is_late) {
                        break ClientError::Timeout(RESPONSE_TIMEOUT);
                    }
                }
            }
        };
        for (request, _) in sent.into_values() {
            self.fail(request).await?;
        }
        Ok(error)
    }
}
