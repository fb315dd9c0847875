//! `alongside doctor`: whether agents would connect from here.

use std::process::ExitCode;

use anyhow::Result;

use crate::command_line::Common;
use alongside_companion::doctor;

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let diagnosis = doctor::examine(&common.directory()).await?;
    common.output().answer(&diagnosis.to_json(), || diagnosis.to_text());
    Ok(if diagnosis.is_healthy() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
