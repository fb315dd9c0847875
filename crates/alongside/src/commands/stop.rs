//! `alongside stop`: stops a companion.

use std::process::ExitCode;
use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_protocol::{Empty, requests};
use anyhow::{Error, Result, anyhow, bail};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::command_line::{Common, Stop};
use crate::output::to_stderr;
use crate::printable::printable;
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;
use alongside_companion::process_ended;

/// A companion delivers decisions before it exits, which takes its agents a moment.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// For a process that is about to exit, or has just been killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn run(common: &Common, stop: &Stop) -> Result<ExitCode> {
    let places = Places::of_user()?;
    let records = if stop.all {
        companion_record::all(&places)
    } else {
        companion_record::nearest(&places, &common.directory())
            .into_iter()
            .collect()
    };
    if records.is_empty() && !stop.all {
        bail!("no companion is running for {}", common.directory().display());
    }
    let mut stopped = Vec::new();
    let mut failed = Vec::new();
    // At the same time, because each may take its whole time limit.
    let ends = join_all(records.iter().map(stop_one)).await;
    for (record, end) in records.iter().zip(ends) {
        match end {
            Ok(Stopped::ByUs) => stopped.push(record.pid),
            Ok(Stopped::ByItself) => {}
            Err(error) if stop.all => failed.push((record.pid, error)),
            Err(error) => return Err(error),
        }
    }
    let failures: Vec<Value> = failed
        .iter()
        .map(|(pid, error)| json!({ "pid": pid, "message": format!("{error:#}") }))
        .collect();
    let value = json!({ "stopped": stopped, "failed": failures });
    common.output().answer(&value, || match stopped.as_slice() {
        [] if failed.is_empty() => "No companion is running.\n".to_owned(),
        [] => String::new(),
        [pid] => format!("Stopped the companion (pid {pid}).\n"),
        many => format!("Stopped {} companions.\n", many.len()),
    });
    for (pid, error) in failed.iter().filter(|_| !common.json) {
        let line = format!("alongside: cannot stop the companion (pid {pid}): {error:#}\n");
        to_stderr(&printable(&line));
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

enum Stopped {
    ByUs,
    /// It exited before it was asked to.
    ByItself,
}

async fn stop_one(record: &CompanionRecord) -> Result<Stopped> {
    let has_ended = async |limit| tokio::time::timeout(limit, process_ended(record.pid)).await.is_ok();
    match ask(record).await {
        Ok(()) if has_ended(STOP_TIMEOUT).await => Ok(Stopped::ByUs),
        Ok(()) => Err(anyhow!(
            "the companion (pid {}) was asked to stop but is still running",
            record.pid
        )),
        // It closes its ports before it exits.
        Err(ClientError::Unreachable { .. }) if has_ended(STOP_TIMEOUT).await => Ok(Stopped::ByItself),
        Err(_) if has_ended(EXIT_TIMEOUT).await => Ok(Stopped::ByItself),
        Err(error) => Err(Error::new(error)),
    }
}

async fn ask(record: &CompanionRecord) -> Result<(), ClientError> {
    match record.connect(false).await?.call::<requests::Stop>(Empty {}).await {
        // It may exit before it has responded.
        Ok(_) | Err(ClientError::Closed) => Ok(()),
        Err(error) => Err(error),
    }
}
