//! A large file through the companion: its proposal, one decision and one typed character, and how they grow.

use std::time::{Duration, Instant};

use alongside_core::draft::HunkId;
use alongside_core::{ReviewId, TextChange};
use alongside_front::client::{Client as FrontClient, Incoming};
use alongside_protocol::{Change, DecideHunkParams, Empty, HunkAction, Method, ReviewRef, ReviewTexts, requests};
use alongside_testing::Sandbox;
use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::companion::Companion;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::texts;

const LINES: usize = 200_000;
const CHANGES: usize = 2_000;
const ROUNDS: usize = 5;
const ACTIONS: usize = 6;

pub(super) struct Large;

/// What is measured of each file.
#[derive(Clone)]
struct Rows {
    open: Row,
    get: Row,
    decide: Row,
    edit: Row,
}

impl Rows {
    fn new(file: &str, series: &str, size: usize) -> Self {
        let row = |what: &str| {
            Row::new("large", format!("{what}, {file}"), Unit::Seconds)
                .in_series(&format!("{what} by {series}"), as_f64(size))
        };
        Self {
            open: row("openDiff"),
            get: row("openDiff to review/get"),
            decide: row("one hunk decided"),
            edit: row("one character typed"),
        }
    }

    fn into_array(self) -> [Row; 4] {
        [self.open, self.get, self.decide, self.edit]
    }
}

impl Scenario for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let by_lines = [LINES / 8, LINES / 4, LINES / 2, LINES].map(|lines| (lines, lines / (LINES / CHANGES), lines));
        let by_changes = [CHANGES / 4, CHANGES, CHANGES * 4, CHANGES * 16].map(|changes| (LINES / 2, changes, changes));
        let mut all = Vec::new();
        for (series, files) in [("lines", by_lines), ("changes", by_changes)] {
            let measured = files.map(|(lines, changes, size)| {
                let mut rows = Rows::new(&format!("{lines} lines, {changes} changes"), series, size);
                measure(run, lines, changes, &mut rows).map(|()| rows.into_array())
            });
            let measured: Vec<[Row; 4]> = measured.into_iter().collect::<Result<_>>()?;
            for row in 0..4 {
                let series_rows: Vec<Row> = measured.iter().map(|rows| rows[row].clone()).collect();
                let title = series_rows[0].series.clone().unwrap_or_default();
                all.extend(series_rows.clone());
                all.extend(Row::growth(self.name(), format!("growth of {title}"), &series_rows));
            }
        }
        Ok(all)
    }
}

fn measure(run: &Run, lines: usize, changes: usize, rows: &mut Rows) -> Result<()> {
    let sandbox = Sandbox::new("alongside-bench-");
    let companion = Companion::serve(&run.programs.ours, &sandbox)?;
    let (base, text) = (texts::code(lines), texts::changed(lines, changes));
    let rounds = run.rounds(ROUNDS);
    run.runtime.block_on(async {
        let (mut agent, address) = companion.plain_agent()?;
        let mut front = companion.front().await?;
        // The first one touches all memory that the others use again.
        let mut warm_up = rows.clone();
        for round in 0..=rounds {
            let rows = if round == 0 { &mut warm_up } else { &mut *rows };
            let file = sandbox.write(&format!("large-{round}.rs"), &base);
            let proposal = address.call(1, "openDiff", &json!({"filePath": file, "newContent": text}));
            let start = Instant::now();
            let response = agent.exchange(&proposal)?;
            let opened = start.elapsed();
            ensure!(response.status == 200, "openDiff failed: {}", response.head);
            rows.open.push(Subject::Ours, &[opened.as_secs_f64()]);
            let pending = front.call::<requests::ReviewList>(Empty {}).await?;
            let review = pending.first().context("no review is pending")?.id;
            let (shown, got) = get(&mut front, review).await?;
            rows.get.push(Subject::Ours, &[(opened + got).as_secs_f64()]);
            ensure!(
                shown.hunks.len().abs_diff(changes) <= changes / 20,
                "{} hunks",
                shown.hunks.len()
            );
            let middle = shown.hunks.get(shown.hunks.len() / 2).context("no hunks")?.id;
            let place = shown
                .draft
                .find(&format!("value_{} ", lines / 2 + 1))
                .context("a line is missing")?;
            rows.decide
                .push(Subject::Ours, &decide(&mut front, review, middle).await?);
            rows.edit.push(Subject::Ours, &edit(&mut front, review, place).await?);
            front.call::<requests::ReviewReject>(review.into()).await?;
        }
        Ok(())
    })
}

/// The review, and how long it took until its JSON was there: reading that into texts and hunks is the front end's own work.
async fn get(front: &mut FrontClient, review: ReviewId) -> Result<(ReviewTexts, Duration)> {
    let request = requests::ReviewGet::request(ReviewRef { review });
    let start = Instant::now();
    let id = front.post(&request).await?;
    loop {
        if let Incoming::Response { id: other, result } = front.incoming().await?
            && other == id
        {
            let took = start.elapsed();
            return Ok((serde_json::from_str(&result?)?, took));
        }
    }
}

async fn decide(front: &mut FrontClient, review: ReviewId, hunk: HunkId) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for action in 0..ACTIONS {
        let decision = if action % 2 == 0 {
            HunkAction::Reject
        } else {
            HunkAction::Accept
        };
        let start = Instant::now();
        front
            .call::<requests::ReviewHunk>(DecideHunkParams { review, hunk, decision })
            .await?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// Types characters at one place. The text is ASCII, so that a byte is a UTF-16 code unit.
async fn edit(front: &mut FrontClient, review: ReviewId, place: usize) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let mut version = front
        .call::<requests::ReviewGet>(ReviewRef { review })
        .await?
        .summary
        .version;
    for _ in 0..ACTIONS {
        let insert = TextChange {
            from: place,
            to: place,
            insert: "x".to_owned(),
        };
        let change = Change {
            review,
            version,
            changes: vec![insert],
        };
        let start = Instant::now();
        version = front.call::<requests::ReviewChange>(change).await?.version;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}
