//! Memory a minute after a burst of large proposals.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::http::{Address, Connection};
use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::sessions::Session;
use crate::subject::{Server, Subject};

const SUBJECTS: [Subject; 3] = [Subject::Ours, Subject::Node, Subject::Rmcp];
const ROUNDS: usize = 3;

/// As many at the same time.
const AGENTS: usize = 3;
/// Of each agent.
const PROPOSALS: usize = 4;
const PROPOSAL_BYTES: usize = 8_000_000;

const IDLE: Duration = Duration::from_millis(2500);
const AFTER: Duration = Duration::from_mins(1);

pub(super) struct Burst;

/// A program before and after.
struct Burdened {
    server: Server,
    idle: f64,
    pending: f64,
}

impl Scenario for Burst {
    fn name(&self) -> &'static str {
        "burst"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let row = |name: &str| Row::new(self.name(), name, Unit::Kilobytes);
        let mut pending = row("memory with 12 pending proposals of 8 MB");
        let mut left = row("memory a minute after that, above idle").bar(Bar::at_most(5000.0));
        let mut burdened = Vec::new();
        // One after the other; then all of them wait at the same time.
        run.in_turns(run.rounds(ROUNDS), &SUBJECTS, |subject| {
            let server = run.start(subject)?;
            std::thread::sleep(IDLE);
            let idle = server.process.memory()?.rss_kilobytes;
            let pending = burst(run, &server).with_context(|| format!("a burst for {}", subject.title()))?;
            burdened.push(Burdened { server, idle, pending });
            Ok(())
        })?;
        std::thread::sleep(AFTER);
        for program in burdened {
            let subject = program.server.subject;
            pending.push(subject, &[program.pending]);
            left.push(
                subject,
                &[program.server.process.memory()?.rss_kilobytes - program.idle],
            );
        }
        Ok(vec![pending, left])
    }
}

/// Opens all proposals, then closes them and disconnects. Returns the memory in between.
fn burst(run: &Run, server: &Server) -> Result<f64> {
    let sessions: Result<Vec<Session>> = (0..AGENTS).map(|_| Session::open(run, server)).collect();
    let sessions = sessions?;
    let call = |tool: &'static str| {
        std::thread::scope(|scope| {
            let agents: Vec<_> = sessions.iter().enumerate().collect();
            let calls = agents.into_iter().map(|(agent, session)| {
                let address = session.address.clone();
                scope.spawn(move || call_all(server, &address, agent, tool))
            });
            let calls: Vec<_> = calls.collect();
            calls
                .into_iter()
                .try_for_each(|call| call.join().unwrap_or_else(|_| anyhow::bail!("an agent panicked")))
        })
    };
    call("openDiff")?;
    let pending = server.process.memory()?.rss_kilobytes;
    call("closeDiff")?;
    Ok(pending)
}

/// All calls of one agent.
fn call_all(server: &Server, address: &Address, agent: usize, tool: &str) -> Result<()> {
    let mut connection = Connection::open(address.port)?;
    for number in 0..PROPOSALS {
        let path = server.sandbox.file(&format!("burst-{agent}-{number}.txt"));
        let line = format!("line of agent {agent}, proposal {number}, with some words in it\n");
        let arguments = match tool {
            "openDiff" => json!({"filePath": path, "newContent": line.repeat(PROPOSAL_BYTES / line.len())}),
            _ => json!({"filePath": path}),
        };
        let request = address.call(u64::try_from(number)? + 1, tool, &arguments);
        let response = connection.exchange(&request)?;
        let shown = String::from_utf8_lossy(&response.body[..response.body.len().min(500)]);
        let is_done = response.status == 200 && !shown.contains("\"isError\":true");
        ensure!(is_done, "{tool} failed: {} {shown}", response.status);
    }
    Ok(())
}
