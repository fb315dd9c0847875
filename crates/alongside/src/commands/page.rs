//! `alongside page`: a link to the review page.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use alongside_protocol::{PageTarget, requests};
use anyhow::{Context, Result, bail};

use crate::command_line::Common;
use alongside_companion::companion_record;

pub(crate) async fn run(common: &Common, open: bool) -> Result<ExitCode> {
    link(common, PageTarget::default(), open).await
}

/// Prints a link to the page. `open` opens the page in the browser too, with another link: the printed one still works if the
/// browser cannot read the file.
pub(crate) async fn link(common: &Common, target: PageTarget, open: bool) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    if open {
        let file = companion.call::<requests::PageFile>(target).await?;
        open_in_browser(&file.path)?;
    }
    let link = companion.call::<requests::PageLink>(target).await?;
    common.output().answer(&link, || format!("{}\n", link.url));
    Ok(ExitCode::SUCCESS)
}

/// Opens a file with the system's default browser, without waiting for it. Not a login link: other users can read the
/// browser's arguments.
pub(crate) fn open_in_browser(file: &Path) -> Result<()> {
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
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let instead = "run `alongside page` and open the link it prints";
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("cannot open the page: `{program}` is not installed; {instead}")
        }
        Err(error) => Err(error).with_context(|| format!("cannot start `{program}`; {instead}")),
    }
}
