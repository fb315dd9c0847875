//! A change of what is open in the editor, up to the message that agents receive.

use std::path::Path;
use std::time::Duration;

use alongside_core::context::Cursor;
use alongside_core::privacy::Privacy;
use alongside_core::{Core, Effect, Now};
use alongside_wire::rpc;
use anyhow::{Context, Result, ensure};

use crate::counted;

fn at(milliseconds: u64) -> Now {
    Now {
        unix_milliseconds: 1_700_000_000_000 + milliseconds,
        monotonic: Duration::from_millis(milliseconds),
    }
}

fn path(file: u64) -> String {
    format!("/home/user/project/crates/component/src/module_{file}.rs")
}

/// A core with 30 open files that exist; the first one is the oldest.
fn editor() -> Result<Core> {
    let mut core = Core::new(vec!["/home/user/project".into()]);
    for file in 0..30 {
        core.focus_file(at(file), &path(file), None, None)?;
    }
    let lookup = core.start_lookup();
    for path in core.files_to_look_up() {
        core.file_looked_up(at(100), lookup, &path, Some((*path).into()));
    }
    core.set_files_watched(true);
    core.tick(at(1_000));
    core.take_effects();
    Ok(core)
}

fn message(core: &mut Core, path: &str) -> Result<String> {
    let cursor = Cursor { line: 12, character: 7 };
    core.focus_file(at(2_000), path, Some(cursor), Some("compute(12)".to_owned()))?;
    core.tick(at(2_050));
    let context = core.take_effects().into_iter().find_map(|effect| match effect {
        Effect::PublishContext(context) => Some(context),
        _ => None,
    });
    let context = context.context("nothing was published")?;
    Ok(rpc::notification("ide/contextUpdate", Some(&context))?)
}

pub(super) fn focus() -> Result<()> {
    let mut core = editor()?;
    // One that agents see: they see the ten most recent.
    let path = path(25);
    let message = counted(|| message(&mut core, &path))?;
    ensure!(message.contains("module_25"), "{message}");
    Ok(())
}

pub(super) fn move_cursor() -> Result<()> {
    let mut core = editor()?;
    let path = path(29);
    let message = counted(|| message(&mut core, &path))?;
    ensure!(message.contains("compute(12)"), "{message}");
    Ok(())
}

pub(super) fn compile_patterns() -> Result<()> {
    let hidden = counted(|| Privacy::default().rule_for(Path::new("/project/.env"), Path::new("/project/.env")));
    hidden.context("the file is not hidden")?;
    Ok(())
}

pub(super) fn check_path() -> Result<()> {
    let mut privacy = Privacy::default();
    let refused = privacy.hide("config.toml", None, ["*.secret", "private/", "/notes/**/draft-*"]);
    ensure!(refused.is_empty());
    let (other, path) = (path(2), path(1));
    let (other, path) = (Path::new(&other), Path::new(&path));
    // The first check compiles the built-in patterns. Answers are kept, so it is one of another path.
    privacy.rule_for(other, other);
    let hidden = counted(|| privacy.rule_for(path, path));
    ensure!(hidden.is_none());
    Ok(())
}
