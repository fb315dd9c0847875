//! A large change on the page, in Chromium: `e2e/browser/speed.mjs` measures it.

use std::path::Path;
use std::process::{Command, Stdio};

use alongside_protocol::{PageTarget, requests};
use alongside_testing::Sandbox;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::companion::{Companion, proposal, propose};
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::texts;

const LINES: usize = 200_000;
const CHANGES: usize = 2_000;
const ROUNDS: usize = 3;

pub(super) struct Page;

impl Scenario for Page {
    fn name(&self) -> &'static str {
        "page"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let row = |what: &str| {
            Row::new(
                "page",
                format!("{what}, {LINES} lines, {CHANGES} changes"),
                Unit::Seconds,
            )
        };
        let Some(chromium) = chromium() else {
            return Ok(vec![row("page: not measured, Chromium is not installed")]);
        };
        if !run.root.join("e2e/node_modules/playwright-core").exists() {
            return Ok(vec![row(
                "page: not measured, e2e/node_modules is missing (`npm ci` in e2e)",
            )]);
        }
        let mut rows = [
            (
                "firstNavigation",
                row("page: navigation to hunks shown, with an empty cache"),
            ),
            ("navigation", row("page: reload to hunks shown")),
            ("decision", row("page: click to decided hunk")),
            ("typing", row("page: key to character shown")),
        ];
        for _ in 0..run.rounds(ROUNDS) {
            let figures = play(run, &chromium)?;
            for (name, row) in &mut rows {
                let milliseconds = figures[*name]
                    .as_f64()
                    .with_context(|| format!("no figure {name}: {figures}"))?;
                row.push(Subject::Ours, &[milliseconds / 1000.0]);
            }
        }
        Ok(rows.map(|(_, row)| row).into())
    }
}

fn chromium() -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let works = |name: &&str| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let name = names.into_iter().find(works)?;
    // Playwright wants a path.
    let folders = std::env::var_os("PATH")?;
    let paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    paths
        .into_iter()
        .find(|path| path.exists())
        .map(|path| path.to_string_lossy().into_owned())
}

fn play(run: &Run, chromium: &str) -> Result<Value> {
    let sandbox = Sandbox::new("alongside-bench-");
    let file = sandbox.write("large.rs", &texts::code(LINES));
    let companion = Companion::serve(&run.programs.ours, &sandbox)?;
    let (agent, url) = run.runtime.block_on(async {
        let agent = companion.agent().await?;
        propose(&agent, proposal(&file, &texts::changed(LINES, CHANGES))).await?;
        let link = companion
            .front()
            .await?
            .call::<requests::PageLink>(PageTarget::default())
            .await?;
        anyhow::Ok((agent, link.url))
    })?;
    let profile = sandbox.path("profile");
    let details = json!({"url": url, "chromium": chromium, "profile": profile, "artifacts": sandbox.path("artifacts")});
    let script: &Path = &run.root.join("e2e/browser/speed.mjs");
    let output = Command::new(&run.programs.node.0)
        .arg(script)
        .arg(details.to_string())
        .env("HOME", sandbox.path("home"))
        .stdin(Stdio::null())
        .output()
        .context("cannot start node")?;
    drop(agent);
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).with_context(|| {
        format!(
            "the scenario printed no result: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    anyhow::ensure!(last["event"] == "done", "the scenario failed: {last}");
    Ok(last["result"]["figures"].clone())
}
