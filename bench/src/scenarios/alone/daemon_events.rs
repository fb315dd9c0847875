//! Replaying the events of a `qwen serve` session: from the request for the stream to the last event, parsed and in order.

use std::thread;
use std::time::Instant;

use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonSessionClient, NewSession, StreamItem};
use alongside_testing::FakeDaemon;
use alongside_testing::daemon::{chunk, frame};
use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::sync::oneshot;

use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;

const SIZES: [usize; 4] = [1_250, 2_500, 5_000, 10_000];
const ROUNDS: usize = 7;

pub(super) struct DaemonEvents;

impl Scenario for DaemonEvents {
    fn name(&self) -> &'static str {
        "daemon-events"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for events in SIZES {
            let name = format!("replay of {events} daemon events");
            let mut row =
                Row::new(self.name(), name, Unit::Seconds).in_series("replay by daemon events", as_f64(events));
            let text: String = (1..=events)
                .map(|id| {
                    let data = chunk("agent_message_chunk", &format!("word {id} of a longer answer "));
                    frame(&json!({"v": 1, "id": id, "type": "session_update", "data": data}))
                })
                .collect();
            for _ in 0..run.rounds(ROUNDS) {
                row.push(Subject::Ours, &[replay(run, text.clone(), events)?]);
            }
            rows.push(row);
        }
        rows.extend(Row::growth(self.name(), "growth of a replay by daemon events", &rows));
        Ok(rows)
    }
}

/// The fake daemon sends a text made before, from another thread.
fn replay(run: &Run, text: String, events: usize) -> Result<f64> {
    let (tell_url, url) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let daemon = thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let daemon = FakeDaemon::start().await;
            daemon.with(|state| state.raw_streams.push_back(text));
            let _ = tell_url.send(daemon.url());
            let _ = stopped.await;
        });
        Ok(())
    });
    let took = run.runtime.block_on(async {
        let client = DaemonClient::new(DaemonAddress::parse(&url.await?)?, None)?;
        let session = DaemonSessionClient::create_or_attach(&client, &NewSession::default()).await?;
        let start = Instant::now();
        let mut stream = session.events().context("the session has no events")?;
        let last = u64::try_from(events)?;
        loop {
            match stream.next().await.context("the stream ended")?? {
                StreamItem::Event(event) if event.id == Some(last) => break,
                StreamItem::Interrupted { .. } => bail!("the stream was interrupted"),
                _ => {}
            }
        }
        anyhow::Ok(start.elapsed().as_secs_f64())
    });
    drop(stop);
    let _ = daemon.join();
    took
}
