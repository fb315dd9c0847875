//! `alongside page`: a link to the review page.

use std::process::{Command, ExitCode, Stdio};

use alongside_protocol::{Empty, requests};
use anyhow::{Context, Result, bail};

use crate::command_line::Common;
use alongside_companion::companion_record;

pub(crate) async fn run(common: &Common, open: bool) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    let link = companion.call::<requests::PageLink>(Empty {}).await?;
    if open {
        open_in_browser(&link.url)?;
    }
    common.output().answer(&link, || format!("{}\n", link.url));
    Ok(ExitCode::SUCCESS)
}

/// Opens a link with the system's default browser, without waiting for it.
pub(crate) fn open_in_browser(url: &str) -> Result<()> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let browser = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let program = browser.as_deref().unwrap_or(program);
    let mut command = Command::new(program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("cannot open the page: `{program}` is not installed; open this link yourself: {url}")
        }
        Err(error) => Err(error).with_context(|| format!("cannot start `{program}`; open this link yourself: {url}")),
    }
}
