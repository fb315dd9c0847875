//! `openDiff` of a file that exists, with one line changed, and `closeDiff` after each.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::http::{Address, Connection};
use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::sessions::Session;
use crate::subject::{Server, Subject};

/// Size of the file, its name, and how many pairs of calls a round has.
const SIZES: [(usize, &str, usize); 4] = [
    (1024, "1 KiB", 150),
    (100 * 1024, "100 KiB", 40),
    (1024 * 1024, "1 MiB", 12),
    (5 * 1024 * 1024, "5 MiB", 12),
];
const ROUNDS: usize = 9;

/// Pairs of calls before the first round: Node compiles what it runs often, and was still getting faster after thousands of calls.
/// In turns, because Node closes a connection that is idle for five seconds.
const WARM_UP: (usize, usize) = (20, 500);

/// Different proposals, in turns.
const VARIANTS: usize = 4;

/// What is still to do after the response, such as a sync of the journal, counts too.
const AFTERWARDS: Duration = Duration::from_millis(120);

pub(super) struct OpenDiff;

/// A program with an agent that is connected to it.
pub(super) struct Stage {
    pub(super) server: Server,
    /// Its event stream stays open.
    session: Session,
    connection: Connection,
}

/// The requests for one size, ready to be sent.
pub(super) struct Calls {
    open: Vec<Vec<u8>>,
    close: Vec<u8>,
}

impl Stage {
    pub(super) fn set_up(run: &Run, server: Server) -> Result<Self> {
        let session = Session::open(run, &server)?;
        let connection = Connection::open(server.port)?;
        Ok(Self {
            server,
            session,
            connection,
        })
    }

    pub(super) fn prepare(&self, bytes: usize) -> Calls {
        let text = text(bytes, None);
        // Not in the workspace folder itself, which a companion watches anyway: a review of a file elsewhere needs a watch of its own.
        let path = self
            .server
            .sandbox
            .write(&format!("project/src/file-{bytes}.txt"), &text);
        let address: &Address = &self.session.address;
        let open = (0..VARIANTS).map(|variant| {
            let proposal = json!({"filePath": path, "newContent": self::text(bytes, Some(variant))});
            address.call(1, "openDiff", &proposal)
        });
        Calls {
            open: open.collect(),
            close: address.call(2, "closeDiff", &json!({"filePath": path})),
        }
    }

    /// One pair of calls, checked.
    pub(super) fn check(&mut self, calls: &Calls) -> Result<()> {
        for (variant, open) in calls.open.iter().enumerate() {
            let response = self.connection.exchange(open)?;
            let text = String::from_utf8_lossy(response.body);
            let is_opened = response.status == 200 && text.contains("\"result\"") && !text.contains("\"isError\":true");
            ensure!(is_opened, "openDiff failed: {}{text}", response.head);
            let response = self.connection.exchange(&calls.close)?;
            let text = String::from_utf8_lossy(response.body);
            let is_closed = response.status == 200 && text.contains(&changed_line(variant));
            ensure!(is_closed, "closeDiff returned another text: {}", response.head);
        }
        Ok(())
    }

    /// Returns how long each `openDiff` took, and the CPU time of a pair.
    pub(super) fn measure(&mut self, calls: &Calls, count: usize) -> Result<(Vec<f64>, f64)> {
        let before = self.server.process.cpu()?;
        let mut times = Vec::with_capacity(count);
        for open in calls.open.iter().cycle().take(count) {
            let start = Instant::now();
            let response = self.connection.exchange(open)?;
            times.push(start.elapsed().as_secs_f64());
            ensure!(response.status == 200, "openDiff failed: {}", response.head);
            self.connection.exchange(&calls.close)?;
        }
        std::thread::sleep(AFTERWARDS);
        let used = self.server.process.cpu()?.saturating_sub(before);
        Ok((times, used.as_secs_f64() / as_f64(count)))
    }
}

impl Scenario for OpenDiff {
    fn name(&self) -> &'static str {
        "openDiff"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let stages: Result<Vec<Stage>> = Subject::ALL
            .iter()
            .map(|subject| Stage::set_up(run, run.start(*subject)?))
            .collect();
        let mut stages = stages?;
        let (turns, pairs) = WARM_UP;
        for _ in 0..turns {
            for stage in &mut stages {
                let calls = stage.prepare(SIZES[0].0);
                stage.measure(&calls, pairs)?;
            }
        }
        let (mut times, mut used) = (Vec::new(), Vec::new());
        for (bytes, size, count) in SIZES {
            let calls: Vec<Calls> = stages.iter().map(|stage| stage.prepare(bytes)).collect();
            for (stage, calls) in stages.iter_mut().zip(&calls) {
                stage.check(calls)?;
                stage.measure(calls, count)?;
            }
            let (mut time, mut cpu) = rows(self.name(), bytes, size);
            run.in_turns(run.rounds(ROUNDS), &Subject::ALL, |subject| {
                for (stage, calls) in stages
                    .iter_mut()
                    .zip(&calls)
                    .filter(|(stage, _)| stage.server.subject == subject)
                {
                    let (took, used) = stage.measure(calls, count)?;
                    time.push(subject, &took);
                    cpu.push(subject, &[used]);
                }
                Ok(())
            })?;
            times.push(time);
            used.push(cpu);
        }
        times.extend(Row::growth(self.name(), "growth of openDiff with the size", &times));
        used.extend(Row::growth(self.name(), "growth of the CPU time with the size", &used));
        times.append(&mut used);
        Ok(times)
    }
}

fn rows(scenario: &str, bytes: usize, size: &str) -> (Row, Row) {
    let row = |name: &str, series: &str| {
        Row::new(scenario, format!("{name}, {size}"), Unit::Seconds).in_series(series, as_f64(bytes))
    };
    let mut time = row("openDiff", "time").with_tail();
    let mut cpu = row("CPU of openDiff with closeDiff", "cpu");
    match size {
        "1 KiB" => {
            time = time.headline().bar(Bar::times(1.5, Subject::FloorAndWrite));
            cpu = cpu.headline().bar(Bar::times(1.0 / 8.0, Subject::Node));
        }
        "1 MiB" => time = time.headline().bar(Bar::times(0.5, Subject::Node)),
        _ => {}
    }
    (time, cpu)
}

/// A text of lines, of about this size, with the line in the middle as it is or changed.
fn text(bytes: usize, variant: Option<usize>) -> String {
    let line = |number: usize| format!("    let value_{number:06} = compute(\"some words\", {number});\n");
    let count = bytes.div_ceil(line(0).len());
    let lines = (0..count).map(|number| match variant {
        Some(variant) if number == count / 2 => format!("{}\n", changed_line(variant)),
        _ => line(number),
    });
    lines.collect()
}

fn changed_line(variant: usize) -> String {
    format!("    // changed in proposal {variant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposal_differs_in_one_line() {
        for (bytes, _, _) in SIZES {
            let (before, after) = (text(bytes, None), text(bytes, Some(3)));
            assert!(
                (bytes..bytes + bytes / 10 + 60).contains(&before.len()),
                "{}",
                before.len()
            );
            let differences = before
                .lines()
                .zip(after.lines())
                .filter(|(before, after)| before != after);
            assert_eq!(differences.count(), 1);
        }
    }
}
