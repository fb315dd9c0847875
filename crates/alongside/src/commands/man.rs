//! `alongside man`: manual pages, generated from the command line's definition.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;
use serde_json::json;

use crate::command_line::{CommandLine, Common};

struct Page {
    /// `alongside-diff-list.1`
    file: String,
    text: Vec<u8>,
}

pub(crate) fn run(common: &Common, out: Option<&Path>) -> Result<ExitCode> {
    let output = common.output();
    let pages = pages()?;
    let Some(directory) = out else {
        let page = pages.first().map(|page| page.text.as_slice()).unwrap_or_default();
        let page = String::from_utf8_lossy(page).into_owned();
        // The page has only our own text.
        output.answer_in_colors(&json!({ "page": page }), || page);
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut written: Vec<PathBuf> = Vec::new();
    for page in pages {
        let path = directory.join(&page.file);
        fs::write(&path, page.text).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    output.answer(&json!({ "pages": written }), || {
        format!("Wrote {} manual pages to {}.\n", written.len(), directory.display())
    });
    Ok(ExitCode::SUCCESS)
}

/// The pages of the program and of each command, the program's first.
fn pages() -> Result<Vec<Page>> {
    // Else half of the pages are about `help`.
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, &mut pages)?;
    Ok(pages)
}

fn add_pages(command: &clap::Command, pages: &mut Vec<Page>) -> Result<()> {
    let page = Man::new(command.clone()).source(concat!("alongside ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).context("cannot generate a manual page")?;
    let file = page.get_filename();
    pages.push(Page { file, text });
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| add_pages(command, pages))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_name() {
        let pages = pages().unwrap();
        let files: BTreeSet<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        assert_eq!(files.len(), pages.len());
        assert_eq!(pages[0].file, "alongside.1");
        for file in ["alongside-serve.1", "alongside-diff-list.1", "alongside-man.1"] {
            assert!(files.contains(file), "{file}: {files:?}");
        }
        assert!(!files.iter().any(|file| file.contains("help")), "{files:?}");
        for page in &pages {
            let text = String::from_utf8(page.text.clone()).unwrap();
            let name = page.file.trim_end_matches(".1").replace('-', "\\-");
            assert!(text.contains(&name), "{text}");
        }
    }
}
