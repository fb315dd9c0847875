//! `alongside page`: a link to the review page.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use alongside_platform::{Platform, program};
use alongside_protocol::{PageTarget, requests};
use anyhow::{Context, Result, bail};
use tokio::process::Command;

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

/// Opens a file with the system's default browser. The caller does not wait for it, but the runtime does. Not a login link: other users
/// can read the browser's arguments.
pub(crate) fn open_in_browser(file: &Path) -> Result<()> {
    let set = std::env::var("BROWSER").ok();
    let [name, argument] = browser(Platform::current(), set.as_deref(), file);
    let mut command = Command::new(program(name));
    command
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let instead = "run `alongside page` and open the link it prints";
    match command.spawn() {
        Ok(mut child) => {
            // Otherwise it would stay a zombie as long as the companion runs.
            tokio::spawn(async move { child.wait().await });
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("cannot open the page: `{}` is not installed; {instead}", name.display())
        }
        Err(error) => Err(error).with_context(|| format!("cannot start `{}`; {instead}", name.display())),
    }
}

/// The program that opens a file in the browser, and its argument.
fn browser<'a>(platform: Platform, set: Option<&'a str>, file: &'a Path) -> [&'a OsStr; 2] {
    let default = match platform {
        Platform::Unix => "xdg-open",
        Platform::MacOs => "open",
        // Not `cmd /C start`, which would read the path as a command.
        Platform::Windows => "explorer",
    };
    let name = set.filter(|name| !name.is_empty()).unwrap_or(default);
    [OsStr::new(name), file.as_os_str()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_opened_with_the_systems_program_or_the_users() {
        let file = r"C:\a & b\page.html";
        for (platform, set, name) in [
            (Platform::Unix, None, "xdg-open"),
            (Platform::MacOs, None, "open"),
            (Platform::Windows, None, "explorer"),
            (Platform::Windows, Some(""), "explorer"),
            (Platform::Windows, Some("firefox"), "firefox"),
            (Platform::MacOs, Some("firefox"), "firefox"),
        ] {
            let started = browser(platform, set, Path::new(file));
            assert_eq!(started, [name, file].map(OsStr::new), "{platform:?} {set:?}");
        }
    }
}
