//! `alongside stop`: stops a companion.

use std::process::ExitCode;
use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_protocol::{Empty, requests};
use anyhow::{Result, anyhow, bail};
use serde_json::json;

use crate::command_line::{Common, Stop};
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;
use alongside_companion::process_ended;

/// A companion delivers decisions before it exits, which takes its agents a moment.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

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
    for record in records {
        stop_one(&record).await?;
        stopped.push(record.pid);
    }
    common
        .output()
        .answer(&json!({ "stopped": stopped }), || match stopped.as_slice() {
            [] => "No companion is running.\n".to_owned(),
            [pid] => format!("Stopped the companion (pid {pid}).\n"),
            many => format!("Stopped {} companions.\n", many.len()),
        });
    Ok(ExitCode::SUCCESS)
}

async fn stop_one(record: &CompanionRecord) -> Result<()> {
    match record.connect(false).await?.call::<requests::Stop>(Empty {}).await {
        // It may exit before it has responded.
        Ok(_) | Err(ClientError::Closed) => {}
        Err(error) => return Err(error.into()),
    }
    tokio::time::timeout(STOP_TIMEOUT, process_ended(record.pid))
        .await
        .map_err(|_| {
            anyhow!(
                "the companion (pid {}) was asked to stop but is still running",
                record.pid
            )
        })
}
