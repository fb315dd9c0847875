//! One context change to all sessions: time until the last one has it, and CPU time.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::try_join_all;

use crate::editor::Editor;
use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::sessions::Crowd;
use crate::subject::{Server, Subject};

const SUBJECTS: [Subject; 4] = [Subject::Ours, Subject::Node, Subject::Rmcp, Subject::Floor];
const SESSIONS: [usize; 4] = [1, 10, 64, 256];
const ROUNDS: usize = 5;
const CHANGES: usize = 8;
/// Changes before the first round with each number of sessions: Node compiles what it runs often.
const WARM_UP: usize = 64;

/// How long everyone waits for more changes.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// After a change has arrived, so that the next one does not join it.
const PAUSE: Duration = Duration::from_millis(30);
/// A new stream gets the context twice; after that it is quiet.
pub(super) const SETTLE: Duration = Duration::from_millis(1200);

pub(super) struct ContextChange;

/// A program with its agents and its editor.
pub(super) struct Stage {
    pub(super) server: Server,
    pub(super) crowd: Crowd,
    editor: Editor,
    changes: usize,
}

impl Stage {
    pub(super) fn set_up(run: &Run, subject: Subject) -> Result<Self> {
        let server = run.start(subject)?;
        Ok(Self {
            editor: Editor::connect(run, &server)?,
            crowd: Crowd::default(),
            changes: 0,
            server,
        })
    }

    /// Makes changes. Returns how long each took, without the wait for more, and the CPU time of one.
    pub(super) fn change(&mut self, run: &Run, count: usize) -> Result<(Vec<f64>, f64)> {
        let before = self.server.process.cpu()?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            self.changes += 1;
            let text = format!("selection-{:06}", self.changes);
            times.push(run.runtime.block_on(self.change_once(&text))?.as_secs_f64());
            std::thread::sleep(PAUSE);
        }
        let used = self.server.process.cpu()?.saturating_sub(before);
        Ok((times, used.as_secs_f64() / as_f64(count)))
    }

    /// Makes changes that nothing is read from.
    async fn warm_up(&mut self) -> Result<()> {
        for _ in 0..WARM_UP {
            self.changes += 1;
            let text = format!("selection-{:06}", self.changes);
            self.change_once(&text).await?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn change_once(&mut self, text: &str) -> Result<Duration> {
        let start = Instant::now();
        self.editor.report(&mut self.server, text).await?;
        self.crowd.receive(text.as_bytes()).await?;
        let took = start.elapsed().saturating_sub(DEBOUNCE);
        self.editor.confirm().await?;
        Ok(took)
    }
}

impl Scenario for ContextChange {
    fn name(&self) -> &'static str {
        "context"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let stages: Result<Vec<Stage>> = SUBJECTS.iter().map(|subject| Stage::set_up(run, *subject)).collect();
        let mut stages = stages?;
        let (mut times, mut changes, mut deliveries) = (Vec::new(), Vec::new(), Vec::new());
        for count in SESSIONS {
            for stage in &mut stages {
                stage.crowd.grow(run, &stage.server, count)?;
            }
            std::thread::sleep(SETTLE);
            // All at the same time: they mostly wait.
            let warm_ups = try_join_all(stages.iter_mut().map(Stage::warm_up));
            run.runtime.block_on(warm_ups)?;
            let (mut time, mut change, mut delivery) = rows(self.name(), count);
            run.in_turns(run.rounds(ROUNDS), &SUBJECTS, |subject| {
                let Some(stage) = stages.iter_mut().find(|stage| stage.server.subject == subject) else {
                    return Ok(());
                };
                let (took, used) = stage.change(run, CHANGES)?;
                time.push(subject, &took);
                change.push(subject, &[used]);
                delivery.push(subject, &[used / as_f64(count)]);
                Ok(())
            })?;
            times.push(time);
            changes.push(change);
            deliveries.push(delivery);
        }
        let growth_of_time = Row::growth(self.name(), "growth of that time with sessions", &times);
        let growth_of_cpu = Row::growth(
            self.name(),
            "growth of the CPU time of a change with sessions",
            &changes,
        );
        // With one session, a change is a delivery; with more, the deliveries say all.
        changes.truncate(1);
        deliveries.remove(0);
        let rows = [times, growth_of_time.into(), changes, deliveries, growth_of_cpu.into()];
        Ok(rows.into_iter().flatten().collect())
    }
}

/// The time until the last session has a change, and the CPU time per change and per delivery.
fn rows(scenario: &str, count: usize) -> (Row, Row, Row) {
    let plural = if count == 1 { "session" } else { "sessions" };
    let row = |name: &str, series: &str| {
        Row::new(scenario, format!("{name}, {count} {plural}"), Unit::Seconds).in_series(series, as_f64(count))
    };
    let time = row("context change to all", "time").with_tail();
    let mut change = row("CPU of a context change", "change");
    let mut delivery = row("CPU of a delivery", "delivery");
    if count == 1 {
        change = change.headline().bar(Bar::at_most(100e-6));
    }
    if count == 64 {
        delivery = delivery.headline().bar(Bar::times(0.1, Subject::Node));
    }
    (time, change, delivery)
}
