//! From a tool call to the texts that it would write, and from the decisions to the call that writes what was accepted.
//!
//! Nothing here touches a file: [`Files`] does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use alongside_core::HookAgent;
use alongside_core::difference::unified;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_protocol::HookOutcome;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::call::{Call, Event};
use super::edit::Replacement;
use super::patch::{self, Action, Part, Section};
use super::tool::{Shape, Tool};

/// The files that a call is about.
pub(super) trait Files {
    /// The file that a path leads to, symlinks and `..` resolved. It need not exist. The error is for the agent.
    fn resolve(&self, path: &Path) -> Result<PathBuf, String>;
    /// `None` if there is no file. The error is for the agent.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String>;
}

/// A file before and after a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Absolute, symlinks resolved.
    pub(super) path: Arc<str>,
    /// `None` if there was no file.
    pub(super) before: Option<Vec<u8>>,
    /// `None` if the call deletes the file.
    pub(super) proposed: Option<Arc<str>>,
}

/// What a call would change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing that is reviewed.
    Nothing,
    /// Something that cannot be shown as text.
    Opaque,
    /// One file, by a tool that takes its text or an edit.
    File { change: Change, edits: Edits },
    /// A patch.
    Patch { field: &'static str, files: Vec<PatchFile> },
}

/// How a tool takes a new text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edits {
    Whole {
        field: &'static str,
    },
    One {
        edit: Replacement,
        fields: EditFields,
    },
    /// A list of edits, which becomes one.
    Many {
        edits: Vec<Replacement>,
        field: &'static str,
        fields: EditFields,
    },
}

/// The names of an edit's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EditFields {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
    /// Any of these replaces every occurrence.
    pub(super) all: &'static [&'static str],
}

/// A change by a section of a patch. A move has two, with the same section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatchFile {
    section: Section,
    /// As the patch spells it.
    path: String,
    change: Change,
}

impl Plan {
    /// The error is for the agent.
    pub(super) fn of(call: &Call, files: &dyn Files) -> Result<Self, String> {
        let Some(tool) = Tool::find(call.agent, &call.tool) else {
            return Ok(Self::Nothing);
        };
        let absolute = |path: &str| call.cwd.join(path);
        match tool.shape {
            Shape::Opaque => Ok(Self::Opaque),
            Shape::Write { path, content } => {
                let (path, before) = look(files, &absolute(text(&call.input, path)?))?;
                let proposed = Some(text(&call.input, content)?.into());
                let change = Change { path, before, proposed };
                let edits = Edits::Whole { field: content };
                Ok(Self::File { change, edits })
            }
            Shape::Edit { path, fields } => {
                let (path, before) = look(files, &absolute(text(&call.input, path)?))?;
                let edit = replacement(&call.input, fields)?;
                let proposed = Some(edit.apply(utf8(&path, before.as_deref())?)?.into());
                let change = Change { path, before, proposed };
                let edits = Edits::One { edit, fields };
                Ok(Self::File { change, edits })
            }
            Shape::Edits { path, edits, fields } => {
                let (path, before) = look(files, &absolute(text(&call.input, path)?))?;
                let list = call.input.get(edits).and_then(Value::as_array);
                let list = list.ok_or_else(|| format!("`{edits}` is not a list"))?;
                let read = list.iter().map(|edit| {
                    let edit = edit
                        .as_object()
                        .ok_or_else(|| format!("`{edits}` has something else than objects"))?;
                    replacement(edit, fields)
                });
                let list: Vec<Replacement> = read.collect::<Result<_, String>>()?;
                let mut proposed = utf8(&path, before.as_deref())?.map(str::to_owned);
                for edit in &list {
                    proposed = Some(edit.apply(proposed.as_deref())?);
                }
                let proposed = proposed.map(Into::into);
                let change = Change { path, before, proposed };
                let edits = Edits::Many {
                    edits: list,
                    field: edits,
                    fields,
                };
                Ok(Self::File { change, edits })
            }
            Shape::Patch { field } => {
                let mut changed: Vec<PatchFile> = Vec::new();
                for section in patch::parse(text(&call.input, field)?)? {
                    for file in section_files(&section, files, &absolute)? {
                        if changed.iter().any(|known| known.change.path == file.change.path) {
                            let path = file.path;
                            return Err(format!("the patch changes `{path}` twice; send one change per file"));
                        }
                        changed.push(file);
                    }
                }
                Ok(Self::Patch { field, files: changed })
            }
        }
    }

    pub(super) fn changes(&self) -> Vec<&Change> {
        match self {
            Self::Nothing | Self::Opaque => Vec::new(),
            Self::File { change, .. } => vec![change],
            Self::Patch { files, .. } => files.iter().map(|file| &file.change).collect(),
        }
    }

    /// The answer to the call, after the decisions about [`Plan::changes`].
    pub(super) fn answer(&self, call: &Call, outcomes: &[HookOutcome], files: &dyn Files) -> Answer {
        match (self, outcomes) {
            (Self::Nothing | Self::Opaque, _) => Answer::Nothing,
            (Self::File { change, edits }, [outcome]) => {
                let accepted = match outcome {
                    HookOutcome::Rejected { reason } => return Answer::Deny(rejection(reason.as_deref())),
                    HookOutcome::Accepted { content } => content.clone().or_else(|| change.proposed.clone()),
                };
                match files.read(Path::new(&*change.path)) {
                    Ok(now) => answer_file(call, change, edits, &accepted.unwrap_or_default(), now.as_deref()),
                    Err(reason) => Answer::Deny(reason),
                }
            }
            (Self::Patch { field, files: changed }, outcomes) if outcomes.len() == changed.len() => {
                let is_current = |file: &PatchFile| {
                    let now = files.read(Path::new(&*file.change.path));
                    now.as_ref() == Ok(&file.change.before)
                };
                answer_patch(call, field, changed, outcomes, &is_current)
            }
            _ => Answer::Deny("The companion's response does not fit the change, so nothing was written.".to_owned()),
        }
    }
}

const CHANGED: &str = "The file changed during the review, so nothing was written. Read it again before you change it.";

fn rejection(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("The user rejected this change: {reason}"),
        None => "The user rejected this change.".to_owned(),
    }
}

fn answer_file(call: &Call, change: &Change, edits: &Edits, accepted: &Arc<str>, now: Option<&[u8]>) -> Answer {
    let is_proposed = Some(accepted) == change.proposed.as_ref();
    let allowed = Answer::Allow {
        input: None,
        note: None,
    };
    if now != change.before.as_deref() {
        // The companion carried the change over to the new text. An edit that leads to the same text is still right.
        return match now.map(std::str::from_utf8) {
            Some(Ok(now)) if edits.apply(now).is_some_and(|text| text == **accepted) => allowed,
            _ => Answer::Deny(CHANGED.to_owned()),
        };
    }
    if is_proposed {
        return allowed;
    }
    let before = now.map(std::str::from_utf8).transpose().unwrap_or_default();
    if before == Some(&**accepted) {
        return Answer::Deny("The user rejected every hunk of this change.".to_owned());
    }
    let proposed = change.proposed.as_deref().unwrap_or_default();
    let note = edited_note(&change.path, proposed, accepted);
    if call.agent == HookAgent::Qwen && call.event == Event::Tool {
        // Qwen Code ignores a rewritten call here, and would write its own text.
        return Answer::Write {
            path: PathBuf::from(&*change.path),
            text: Arc::clone(accepted),
            sentence: format!("{note}\nThe accepted text is in the file already. Do not repeat this call."),
        };
    }
    let mut input = call.input.clone();
    match edits {
        Edits::Whole { field } => {
            input.insert((*field).to_owned(), Value::from(&**accepted));
        }
        Edits::One { fields, .. } => {
            let Some(edit) = new_edit(before, accepted) else {
                return Answer::Deny(CHANGED.to_owned());
            };
            set_edit(&mut input, *fields, edit);
        }
        Edits::Many { field, fields, .. } => {
            let Some(edit) = new_edit(before, accepted) else {
                return Answer::Deny(CHANGED.to_owned());
            };
            let mut only = Map::new();
            set_edit(&mut only, *fields, edit);
            input.insert((*field).to_owned(), Value::Array(vec![Value::Object(only)]));
        }
    }
    Answer::Allow {
        input: Some(input),
        note: Some(note),
    }
}

/// The edit that leads to the accepted text.
fn new_edit(before: Option<&str>, accepted: &str) -> Option<Replacement> {
    match before.filter(|before| !before.is_empty()) {
        Some(before) => Replacement::between(before, accepted),
        None => Some(Replacement {
            old: String::new(),
            new: accepted.to_owned(),
            all: false,
        }),
    }
}

fn set_edit(input: &mut Map<String, Value>, fields: EditFields, edit: Replacement) {
    input.insert(fields.old.to_owned(), Value::from(edit.old));
    input.insert(fields.new.to_owned(), Value::from(edit.new));
    for all in fields.all {
        // A number is how many occurrences are expected.
        match input.get(*all) {
            Some(Value::Bool(_)) => drop(input.insert((*all).to_owned(), Value::Bool(false))),
            Some(Value::Number(_)) => drop(input.insert((*all).to_owned(), Value::from(1))),
            _ => {}
        }
    }
}

impl Edits {
    /// The text that the call as it is would make of another one.
    fn apply(&self, text: &str) -> Option<String> {
        match self {
            Self::Whole { .. } => None,
            Self::One { edit, .. } => edit.apply(Some(text)).ok(),
            Self::Many { edits, .. } => {
                let applied = edits
                    .iter()
                    .try_fold(text.to_owned(), |text, edit| edit.apply(Some(&text)));
                applied.ok()
            }
        }
    }
}

fn answer_patch(
    call: &Call,
    field: &str,
    changed: &[PatchFile],
    outcomes: &[HookOutcome],
    is_current: &dyn Fn(&PatchFile) -> bool,
) -> Answer {
    let (mut parts, mut notes, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
    let is_unchanged = |outcome: &HookOutcome| matches!(outcome, HookOutcome::Accepted { content: None });
    for (index, (file, outcome)) in changed.iter().zip(outcomes).enumerate() {
        let content = match outcome {
            HookOutcome::Rejected { reason } => {
                rejected.push(format!("{}: {}", file.path, rejection(reason.as_deref())));
                continue;
            }
            HookOutcome::Accepted { content } => content,
        };
        if !is_current(file) {
            return Answer::Deny(format!("{}: {CHANGED}", file.path));
        }
        let is_same = |other: &PatchFile| other.section == file.section;
        let other = (0..changed.len()).find(|other| *other != index && is_same(&changed[*other]));
        let is_whole = is_unchanged(outcome) && other.is_none_or(|other| is_unchanged(&outcomes[other]));
        if is_whole {
            // Both files of a move are one section.
            if other.is_none_or(|other| other > index) {
                parts.push(Part::Same(file.section.clone()));
            }
            continue;
        }
        let before = file
            .change
            .before
            .clone()
            .and_then(|before| String::from_utf8(before).ok());
        let Some(accepted) = content.clone().or_else(|| file.change.proposed.clone()) else {
            let path = file.path.clone();
            parts.push(Part::Delete { path });
            continue;
        };
        if before.as_deref() == Some(&*accepted) {
            rejected.push(format!("{}: The user rejected every hunk of this change.", file.path));
            continue;
        }
        if content.is_some() {
            let proposed = file.change.proposed.as_deref().unwrap_or_default();
            notes.push(edited_note(&file.path, proposed, &accepted));
        }
        parts.push(Part::Write {
            path: file.path.clone(),
            before,
            after: accepted.as_ref().to_owned(),
        });
    }
    if parts.is_empty() {
        let [only] = rejected.as_slice() else {
            return Answer::Deny(rejected.join("\n"));
        };
        let prefix = format!("{}: ", changed.first().map_or("", |file| &file.path));
        return Answer::Deny(only.strip_prefix(&prefix).unwrap_or(only).to_owned());
    }
    if parts.iter().all(|part| matches!(part, Part::Same(_))) && rejected.is_empty() {
        return Answer::Allow {
            input: None,
            note: None,
        };
    }
    let mut input = call.input.clone();
    input.insert(field.to_owned(), Value::from(patch::write(&parts)));
    notes.extend(rejected);
    Answer::Allow {
        input: Some(input),
        note: Some(notes.join("\n")),
    }
}

fn section_files(
    section: &Section,
    files: &dyn Files,
    absolute: &dyn Fn(&str) -> PathBuf,
) -> Result<Vec<PatchFile>, String> {
    let (path, before) = look(files, &absolute(&section.path))?;
    let missing = |path: &str| format!("`{path}` does not exist");
    let file = |spelled: &str, path: Arc<str>, before, proposed: Option<String>| PatchFile {
        section: section.clone(),
        path: spelled.to_owned(),
        change: Change {
            path,
            before,
            proposed: proposed.map(Into::into),
        },
    };
    match &section.action {
        Action::Add(text) => Ok(vec![file(&section.path, path, before, Some(text.clone()))]),
        Action::Delete => {
            let text = utf8(&path, before.as_deref())?.ok_or_else(|| missing(&section.path))?;
            if text.is_empty() {
                return Err(empty(&section.path));
            }
            Ok(vec![file(&section.path, path, before, None)])
        }
        Action::Update { move_to, hunks } => {
            let text = utf8(&path, before.as_deref())?.ok_or_else(|| missing(&section.path))?;
            let updated = patch::apply(text, hunks).map_err(|error| format!("`{}`: {error}", section.path))?;
            let Some(target) = move_to else {
                return Ok(vec![file(&section.path, path, before, Some(updated))]);
            };
            if text.is_empty() {
                return Err(empty(&section.path));
            }
            let (to, there) = look(files, &absolute(target))?;
            Ok(vec![
                file(target, to, there, Some(updated)),
                file(&section.path, path, before, None),
            ])
        }
    }
}

fn empty(path: &str) -> String {
    format!("`{path}` is empty, so deleting it cannot be reviewed; ask the user to delete it")
}

fn look(files: &dyn Files, path: &Path) -> Result<(Arc<str>, Option<Vec<u8>>), String> {
    let real = files.resolve(path)?;
    let name = real
        .to_str()
        .ok_or("the path is not valid UTF-8, so the change cannot be reviewed")?;
    Ok((name.into(), files.read(&real)?))
}

fn utf8<'a>(path: &str, bytes: Option<&'a [u8]>) -> Result<Option<&'a str>, String> {
    let text = bytes.map(std::str::from_utf8).transpose();
    text.map_err(|_| format!("`{path}` is not UTF-8, so an edit of it cannot be reviewed"))
}

fn text<'a>(input: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let value = input.get(name).and_then(Value::as_str);
    value.ok_or_else(|| format!("the call has no `{name}`"))
}

fn replacement(input: &Map<String, Value>, fields: EditFields) -> Result<Replacement, String> {
    let is_all = |name: &&str| match input.get(*name) {
        Some(Value::Bool(all)) => *all,
        Some(Value::Number(count)) => count.as_u64().is_some_and(|count| count > 1),
        _ => false,
    };
    Ok(Replacement {
        old: text(input, fields.old)?.to_owned(),
        new: text(input, fields.new)?.to_owned(),
        all: fields.all.iter().any(is_all),
    })
}

/// A longer diff is of no use to a model that can read the file.
const MAX_NOTE_BYTES: usize = 4000;

fn edited_note(path: &str, proposed: &str, accepted: &str) -> String {
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    let difference = unified(proposed, accepted, "proposed", "accepted", deadline);
    if difference.len() > MAX_NOTE_BYTES {
        return format!(
            "The user edited your change to {path} during the review. Read the file before you change it again."
        );
    }
    format!("The user edited your change to {path} during the review:\n{difference}")
}
