//! As many sessions as the program allows, some of which never read, and clients that vanish: memory stays level, no session is
//! slowed by another, and nothing is left behind.

mod gauge;
mod report;
mod sessions;
mod vanishing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alongside_front::client::Client;
use alongside_protocol::{Accept, Empty, FilePath, Focus, requests};
use alongside_testing::Sandbox;
use serde_json::json;

use crate::program::Process;
use gauge::Gauge;
pub use report::Report;
use sessions::{Crowd, Latencies};

/// Reviews that are pending all the time.
const REVIEWS: usize = 200;
const VANISHING_CLIENTS: usize = 10_000;
/// How long after the load the memory has to be back.
const RELEASE: Duration = Duration::from_mins(1);
/// How long the companion keeps the session of an agent that vanished, and some more.
const GRACE: Duration = Duration::from_secs(50);

pub struct Options {
    pub duration: Duration,
}

pub async fn run(options: &Options) -> Report {
    let sandbox = Sandbox::new("alongside-load-");
    let process = Process::start(&sandbox, &["serve", "--json"]).expect("the companion starts");
    let gauge = Gauge::new(&process, &sandbox);
    let mut report = Report {
        idle: gauge.read(),
        ..Report::default()
    };

    // The first quarter without clients that do not read, the rest with them: what they cost the others is the difference.
    let mut crowd = Crowd::gather(&process.endpoints, &sandbox).await;
    report.sessions = crowd.limit();
    report.reviews = crowd.open_reviews(REVIEWS).await;
    let stop = Arc::new(AtomicBool::new(false));
    let hand = tokio::spawn(keep_busy(
        process.endpoints.clone(),
        sandbox.file("focused.txt"),
        stop.clone(),
    ));
    report.alone = crowd.work(options.duration / 4, |_| ()).await;
    report.deaf = crowd.deafen().await;
    let mut samples = Vec::new();
    report.together = crowd
        .work(options.duration * 3 / 4, |elapsed| {
            samples.push((elapsed, gauge.read()));
        })
        .await;
    stop.store(true, Ordering::Relaxed);
    let (contexts, decisions) = hand.await.unwrap_or_default();
    (report.contexts, report.decisions) = (contexts, decisions);
    report.samples = samples;
    report.loaded = gauge.read();
    reject_everything(&process).await;
    crowd.disperse().await;
    report.released = gauge
        .wait_for(RELEASE, |now| now.memory_kilobytes < report::RELEASED_KILOBYTES)
        .await;

    let before = gauge.read();
    let start = Instant::now();
    report.vanished = vanishing::vanish(&process.endpoints, VANISHING_CLIENTS).await;
    report.vanishing_took = start.elapsed();
    report.after_vanishing = gauge
        .wait_for(GRACE, |now| {
            let has_no_files = now.files <= before.files + report::CLOSING_FILES;
            now.sessions == 0 && has_no_files && now.memory_kilobytes < report::RELEASED_KILOBYTES
        })
        .await;
    report.before_vanishing = before;
    report
}

/// A front end that moves the cursor and accepts reviews, until it is stopped. Returns how much it did.
async fn keep_busy(
    endpoints: crate::program::Endpoints,
    file: std::path::PathBuf,
    stop: Arc<AtomicBool>,
) -> (usize, usize) {
    let (port, token) = endpoints.front();
    let (mut client, _) = Client::connect(port, token, "load", false)
        .await
        .expect("a front end connects");
    std::fs::write(&file, "focused\n").unwrap();
    let path = file.to_str().unwrap();
    let (mut contexts, mut decisions) = (0, 0);
    let open: FilePath = serde_json::from_value(json!({"path": path})).unwrap();
    client.call::<requests::ContextOpen>(open).await.unwrap();
    while !stop.load(Ordering::Relaxed) {
        // A selection of 10 kB, so that streams that are never read fill up.
        let text = format!("{contexts:>8} ").repeat(1100);
        let focus = json!({"path": path, "cursor": {"line": 1, "character": 1}, "selectedText": text});
        let focus: Focus = serde_json::from_value(focus).unwrap();
        client.call::<requests::ContextFocus>(focus).await.unwrap();
        contexts += 1;
        let list = client.call::<requests::ReviewList>(Empty {}).await.unwrap();
        // The agents open others in their place.
        for review in list.iter().take(4) {
            let accept = Accept {
                review: review.id,
                content: None,
                even_if_empty: true,
            };
            decisions += usize::from(client.call::<requests::ReviewAccept>(accept).await.is_ok());
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    (contexts, decisions)
}

async fn reject_everything(process: &Process) {
    let (port, token) = process.endpoints.front();
    let (mut client, _) = Client::connect(port, token, "load", false)
        .await
        .expect("a front end connects");
    for review in client.call::<requests::ReviewList>(Empty {}).await.unwrap_or_default() {
        // Its agent may have closed it.
        let _ = client.call::<requests::ReviewReject>(review.id.into()).await;
    }
}

/// How long requests took in one part of the run.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) all: Latencies,
    /// The median of each session.
    pub(crate) medians: Vec<Duration>,
}
