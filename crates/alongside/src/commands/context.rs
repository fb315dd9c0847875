//! `alongside context`: what agents see of the editor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alongside_core::context::Cursor;
use alongside_front::client::Client;
use alongside_protocol::{Empty, FilePath, Focus, Method, ShownContext, requests};
use anyhow::{Context as _, Result, anyhow};

use crate::command_line::{Common, Context};
use crate::printable::printable_line;
use alongside_companion::companion_record;

pub(crate) async fn run(common: &Common, command: Context) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    let output = common.output();
    match command {
        Context::Open { files } => report::<requests::ContextOpen>(&mut companion, &files).await?,
        Context::Close { files } => report::<requests::ContextClose>(&mut companion, &files).await?,
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
            let focus = Focus {
                path: absolute(&file)?,
                cursor,
                selection_start: cursor.filter(|_| select.is_some()),
                selected_text: select,
            };
            companion.call::<requests::ContextFocus>(focus).await?;
        }
        Context::Show => {}
    }
    let shown = companion.call::<requests::ContextShow>(Empty {}).await?;
    output.answer(&shown.context, || text(&shown));
    for hidden in &shown.hidden {
        // A script's stdout has only what agents see.
        output.remark(&format!(
            "{} is hidden from agents: {}",
            printable_line(&hidden.path),
            hidden.reason
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn report<M: Method<Params = FilePath>>(companion: &mut Client, files: &[PathBuf]) -> Result<()> {
    let paths = files.iter().map(|file| absolute(file)).collect::<Result<Vec<_>>>()?;
    for path in paths {
        companion.call::<M>(FilePath { path }).await?;
    }
    Ok(())
}

/// The absolute path of a file as typed. Symlinks stay: agents see the name that the user uses.
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

fn text(shown: &ShownContext) -> String {
    let mut text = String::new();
    let files = &shown.context.workspace_state.open_files;
    text.push_str(if files.is_empty() {
        "Agents see no open files.\n"
    } else {
        "Agents see:\n"
    });
    for file in files {
        text.push_str(&format!("  {}", printable_line(&file.path)));
        if file.is_active == Some(true) {
            text.push_str(" (active)");
        }
        if let Some(Cursor { line, character }) = file.cursor {
            text.push_str(&format!(", cursor at line {line}, character {character}"));
        }
        if let Some(selected) = &file.selected_text {
            let start: String = selected.chars().take(40).collect();
            text.push_str(&format!(
                ", {} bytes selected: {}",
                selected.len(),
                printable_line(&start)
            ));
        }
        text.push('\n');
    }
    if !shown.hidden.is_empty() {
        text.push_str("Hidden from agents:\n");
    }
    for hidden in &shown.hidden {
        text.push_str(&format!("  {}: {}\n", printable_line(&hidden.path), hidden.reason));
    }
    text
}
