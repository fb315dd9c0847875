//! `alongside context`: what agents see of the editor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alongside_core::context::Cursor;
use alongside_protocol::{FilePath, Focus, Nothing, Request, ShownContext};
use anyhow::{Context as _, Result, anyhow};

use crate::command_line::{Common, Context};
use crate::printable::printable_line;
use alongside_companion::companion_record;

pub(crate) async fn run(common: &Common, command: Context) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    let output = common.output();
    let requests = match command {
        Context::Open { files } => each(&files, Request::ContextOpen)?,
        Context::Close { files } => each(&files, Request::ContextClose)?,
        Context::Focus {
            file,
            line,
            character,
            select,
        } => {
            let cursor = line.map(|line| Cursor {
                line,
                character: character.unwrap_or(1),
            });
            vec![Request::ContextFocus(Focus {
                path: absolute(&file)?,
                cursor,
                selected_text: select,
            })]
        }
        Context::Show => Vec::new(),
    };
    for request in requests {
        companion.call::<Nothing>(request).await?;
    }
    let shown: ShownContext = companion.call(Request::ContextShow(Nothing {})).await?;
    output.answer(&shown.context, || words(&shown));
    for hidden in &shown.hidden {
        // A script sees only what agents see, so what they do not see is said beside it.
        output.remark(&format!(
            "{} is hidden from agents: {}",
            printable_line(&hidden.path),
            hidden.because
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn each(files: &[PathBuf], request: fn(FilePath) -> Request) -> Result<Vec<Request>> {
    files
        .iter()
        .map(|file| Ok(request(FilePath { path: absolute(file)? })))
        .collect()
}

/// The absolute path of a file as typed. Links stay as they are: agents see the name that the person uses.
fn absolute(file: &Path) -> Result<String> {
    let path =
        std::path::absolute(file).with_context(|| format!("cannot resolve {} to an absolute path", file.display()))?;
    let path = path.into_os_string().into_string();
    path.map_err(|path| {
        anyhow!(
            "{} is not valid UTF-8, so it cannot be reported to agents",
            path.display()
        )
    })
}

fn words(shown: &ShownContext) -> String {
    let mut words = String::new();
    let files = &shown.context.workspace_state.open_files;
    words.push_str(if files.is_empty() {
        "Agents see no open files.\n"
    } else {
        "Agents see:\n"
    });
    for file in files {
        words.push_str(&format!("  {}", printable_line(&file.path)));
        if file.is_active == Some(true) {
            words.push_str(" (active)");
        }
        if let Some(Cursor { line, character }) = file.cursor {
            words.push_str(&format!(", cursor at line {line}, character {character}"));
        }
        if let Some(selected) = &file.selected_text {
            let start: String = selected.chars().take(40).collect();
            words.push_str(&format!(
                ", {} bytes selected: {}",
                selected.len(),
                printable_line(&start)
            ));
        }
        words.push('\n');
    }
    if !shown.hidden.is_empty() {
        words.push_str("Hidden from agents:\n");
    }
    for hidden in &shown.hidden {
        words.push_str(&format!("  {}: {}\n", printable_line(&hidden.path), hidden.because));
    }
    words
}
