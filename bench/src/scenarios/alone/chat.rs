//! A daemon's answer through the companion: every word is journaled, added to the log and sent to a front end. Then a page that joins later.

use std::thread;
use std::time::{Duration, Instant};

use alongside_protocol::{Empty, requests};
use alongside_testing::chat::ChatFront;
use alongside_testing::daemon::Talk;
use alongside_testing::{FakeDaemon, Sandbox};
use anyhow::{Context, Result, ensure};
use tokio::sync::oneshot;

use crate::companion::Companion;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;

const SIZES: [usize; 4] = [1_250, 2_500, 5_000, 10_000];
const ROUNDS: usize = 5;

pub(super) struct Chat;

impl Scenario for Chat {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let (mut answers, mut states) = (Vec::new(), Vec::new());
        for words in SIZES {
            let name = format!("daemon's answer of {words} events, through the companion");
            let mut answer = Row::new(self.name(), name, Unit::Seconds).in_series("answer by events", as_f64(words));
            let name = format!("page that joins after {words} events");
            let mut state = Row::new(self.name(), name, Unit::Seconds).in_series("late page by events", as_f64(words));
            for _ in 0..run.rounds(ROUNDS) {
                let (to_end, to_join) = measure(run, words)?;
                answer.push(Subject::Ours, &[to_end]);
                state.push(Subject::Ours, &[to_join]);
            }
            answers.push(answer);
            states.push(state);
        }
        let grown = [
            Row::growth(self.name(), "growth of an answer by events", &answers),
            Row::growth(self.name(), "growth of a late page by events", &states),
        ];
        Ok(answers
            .into_iter()
            .chain(states)
            .chain(grown.into_iter().flatten())
            .collect())
    }
}

fn measure(run: &Run, words: usize) -> Result<(f64, f64)> {
    let sandbox = Sandbox::new("alongside-bench-");
    let (stop, url, daemon) = start_daemon(&sandbox);
    let times = run.runtime.block_on(async {
        let url = url.await.context("the fake daemon did not start")?;
        sandbox.write_config(&format!("[daemon]\nenabled = true\nurl = '{url}'\n"));
        let companion = Companion::serve(&run.programs.ours, &sandbox)?;
        let (port, token) = companion.front_endpoint();
        let mut front = ChatFront::connect_to(port, token).await?;
        front.choose("daemon").await?;
        let start = Instant::now();
        front.prompt(&words.to_string()).await?;
        // Only the last event is looked at: our own work must not grow with the answer.
        while front.events.last().is_none_or(|event| event["type"] != "turnEnded") {
            front.step().await?;
        }
        let to_end = start.elapsed().as_secs_f64();
        let mut late = companion.chat_front().await?;
        let start = Instant::now();
        let state = late.call::<requests::ChatState>(Empty {}).await?;
        let to_join = start.elapsed().as_secs_f64();
        ensure!(!state.events.is_empty(), "the late page has no events");
        Ok((to_end, to_join))
    });
    drop(stop);
    let _ = daemon.join();
    times
}

/// A daemon in another thread, whose answer to a number is that many words.
fn start_daemon(sandbox: &Sandbox) -> (oneshot::Sender<()>, oneshot::Receiver<String>, thread::JoinHandle<()>) {
    let workspace = sandbox.workspace();
    let (tell_url, url) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let daemon = thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let talk = Talk {
                before: Duration::ZERO,
                between: Duration::ZERO,
                words: |prompt| {
                    (0..prompt.trim().parse().unwrap_or(0))
                        .map(|word| format!("word {word} "))
                        .collect()
                },
            };
            let daemon = FakeDaemon::start_talking(&workspace, talk).await;
            let _ = tell_url.send(daemon.url());
            let _ = stopped.await;
        });
    });
    (stop, url, daemon)
}
