//! `alongside stop`: ends a companion.

use std::process::ExitCode;
use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_protocol::{Empty, requests};
use anyhow::{Result, anyhow, bail};
use serde_json::json;

use crate::command_line::{Common, Stop};
use alongside_companion::places::Places;
use alongside_companion::process_ended;
use alongside_companion::running::{self, Record};

/// A companion tells its agents before it ends, which takes them a moment.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(common: &Common, stop: &Stop) -> Result<ExitCode> {
    let places = Places::of_user()?;
    let records = if stop.all {
        running::all(&places)
    } else {
        running::nearest(&places, &common.directory()).into_iter().collect()
    };
    if records.is_empty() && !stop.all {
        bail!("no companion is running for {}", common.directory().display());
    }
    let mut stopped = Vec::new();
    for record in records {
        end(&record).await?;
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

async fn end(record: &Record) -> Result<()> {
    match record.connect(false).await?.call::<requests::Stop>(Empty {}).await {
        // It may end before it has answered.
        Ok(_) | Err(ClientError::Closed) => {}
        Err(error) => return Err(error.into()),
    }
    tokio::time::timeout(PATIENCE, process_ended(record.pid))
        .await
        .map_err(|_| {
            anyhow!(
                "the companion (pid {}) was asked to stop but is still running",
                record.pid
            )
        })
}
