//! Resident memory: idle, and with sessions that only listen.

use std::time::Duration;

use anyhow::Result;

use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::sessions::Crowd;
use crate::subject::{Server, Subject};

const SUBJECTS: [Subject; 4] = [Subject::Ours, Subject::Node, Subject::Rmcp, Subject::Floor];
const SESSIONS: [usize; 5] = [1, 16, 64, 128, 256];
const ROUNDS: usize = 4;

/// After the start.
const IDLE: Duration = Duration::from_millis(2500);
/// After the last session has connected.
const SETTLE: Duration = Duration::from_millis(1300);

pub(super) struct IdleMemory;

struct Rows {
    idle: Row,
    idle_pss: Row,
    /// With each number of sessions.
    with: Vec<Row>,
    /// The same without what the first session costs.
    extra: Vec<Row>,
    per_session: Row,
}

impl Rows {
    fn new(scenario: &str) -> Self {
        let row = |name: String| Row::new(scenario, name, Unit::Kilobytes);
        let with = |count: &usize| {
            let plural = if *count == 1 { "session" } else { "sessions" };
            row(format!("memory with {count} {plural}")).in_series("memory", as_f64(*count))
        };
        Self {
            idle: row("idle memory (RSS)".to_owned())
                .headline()
                .bar(Bar::times(1.0 / 9.0, Subject::Node))
                .bar(Bar::at_most(9000.0)),
            idle_pss: row("idle memory (PSS)".to_owned()),
            with: SESSIONS.iter().map(with).collect(),
            extra: SESSIONS.iter().skip(1).map(with).collect(),
            per_session: row("memory of one more idle session".to_owned())
                .headline()
                .bar(Bar::at_most(20.0)),
        }
    }

    /// One round of one program: its memory when idle, and with each number of sessions.
    fn push(&mut self, subject: Subject, readings: &[f64]) {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
            return;
        };
        for (row, reading) in self.with.iter_mut().zip(readings) {
            row.push(subject, &[*reading]);
        }
        for (row, reading) in self.extra.iter_mut().zip(&readings[1..]) {
            row.push(subject, &[reading - first]);
        }
        let more = as_f64(SESSIONS[SESSIONS.len() - 1] - SESSIONS[0]);
        self.per_session.push(subject, &[(last - first) / more]);
    }
}

impl Scenario for IdleMemory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut rows = Rows::new(self.name());
        for _ in 0..run.rounds(ROUNDS) {
            // All at the same time: they only wait.
            let servers: Result<Vec<Server>> = SUBJECTS.iter().map(|subject| run.start(*subject)).collect();
            let servers = servers?;
            std::thread::sleep(IDLE);
            for server in &servers {
                let memory = server.process.memory()?;
                rows.idle.push(server.subject, &[memory.rss_kilobytes]);
                rows.idle_pss.push(server.subject, &[memory.pss_kilobytes]);
            }
            let mut crowds: Vec<(Crowd, Vec<f64>)> = servers.iter().map(|_| Default::default()).collect();
            for count in SESSIONS {
                for (server, (crowd, _)) in servers.iter().zip(&mut crowds) {
                    crowd.grow(run, server, count)?;
                }
                std::thread::sleep(SETTLE);
                for (server, (_, readings)) in servers.iter().zip(&mut crowds) {
                    readings.push(server.process.memory()?.rss_kilobytes);
                }
            }
            for (server, (_, readings)) in servers.iter().zip(&crowds) {
                rows.push(server.subject, readings);
            }
        }
        let growth = Row::growth(self.name(), "growth of memory with sessions", &rows.extra);
        let mut all = vec![rows.idle, rows.idle_pss];
        all.extend(rows.with);
        all.push(rows.per_session);
        all.extend(growth);
        Ok(all)
    }
}
