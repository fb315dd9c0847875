//! Which companion an agent finds that is started here, and why that one.

use std::path::Path;

use alongside_discovery::lookup::{Lookup, Source};
use serde::Serialize;

use crate::running::Record;
use alongside_core::printable::printable_line;

/// The companion that an agent finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The one it finds.
    companion: Who,
    /// Why that one.
    because: Because,
    /// The others that serve the same directory.
    others: Vec<Who>,
}

/// A companion, as people tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Who {
    pid: u32,
    editor_pid: u32,
    display_name: String,
}

/// Why an agent finds one companion and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Because {
    ThisTerminal,
    OnlyOne,
    HasEditor,
    UsedLast,
    AgentsOrder,
}

impl Found {
    /// What a look-up comes to; nothing if it comes to no companion of ours.
    pub fn of(lookup: &Lookup, records: &[Record], terminal: &[u16]) -> Option<Self> {
        let port = lookup.targets().next()?.port;
        let found = records.iter().find(|record| record.port == port)?;
        let others: Vec<&Record> = rivals(records, found, &lookup.working_directory);
        let by_variable = lookup
            .chosen()
            .is_some_and(|candidate| matches!(candidate.source, Source::PortVariable | Source::LegacyPort));
        Some(Self {
            because: because(found, &others, by_variable || terminal.contains(&port)),
            companion: Who::of(found),
            others: others.into_iter().map(Who::of).collect(),
        })
    }

    /// The end of a sentence that begins with the agent's name.
    pub fn words(&self) -> String {
        let because = match self.because {
            Because::ThisTerminal => "because this terminal belongs to it",
            Because::OnlyOne => "the only companion here",
            Because::HasEditor => "because it belongs to an editor",
            Because::UsedLast => "because it was used most recently",
            Because::AgentsOrder => "because the agent ranks its discovery file first",
        };
        let mut words = format!("would pick {}, {because}", self.companion.words());
        if !self.others.is_empty() {
            let others: Vec<String> = self.others.iter().map(Who::words).collect();
            words.push_str(&format!("; also running: {}", others.join(", ")));
        }
        words
    }
}

impl Who {
    fn of(record: &Record) -> Self {
        Self {
            pid: record.pid,
            editor_pid: record.editor_pid,
            display_name: record.display_name.clone(),
        }
    }

    fn words(&self) -> String {
        format!("{} (pid {})", printable_line(&self.display_name), self.editor_pid)
    }
}

fn rivals<'a>(records: &'a [Record], found: &Record, directory: &Path) -> Vec<&'a Record> {
    let mut others: Vec<&Record> = records
        .iter()
        .filter(|other| other.pid != found.pid && other.serves(directory))
        .collect();
    others.sort_by_key(|other| std::cmp::Reverse((other.last_use, other.pid)));
    others
}

fn because(found: &Record, others: &[&Record], is_this_terminals: bool) -> Because {
    if is_this_terminals {
        Because::ThisTerminal
    } else if others.is_empty() {
        Because::OnlyOne
    } else if others
        .iter()
        .any(|other| (other.last_use, other.pid) > (found.last_use, found.pid))
    {
        Because::AgentsOrder
    } else if found.has_editor() && !others.iter().any(|other| other.has_editor()) {
        Because::HasEditor
    } else {
        Because::UsedLast
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use alongside_discovery::LastUse;

    use super::*;

    fn editor(pid: u32, seconds: u64) -> Record {
        Record::sample(pid, "/a", LastUse::of_editor(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    fn alone(pid: u32, seconds: u64) -> Record {
        let last_use = LastUse::without_editor(UNIX_EPOCH + Duration::from_secs(seconds));
        let mut record = Record::sample(pid, "/a", last_use);
        record.editor_pid = pid;
        record
    }

    #[test]
    fn the_reason_is_the_rule_that_decided() {
        let (used, former, headless) = (editor(1, 20), editor(2, 10), alone(3, 30));
        assert_eq!(because(&used, &[], false), Because::OnlyOne);
        assert_eq!(because(&used, &[&former, &headless], false), Because::UsedLast);
        assert_eq!(because(&used, &[&headless], false), Because::HasEditor);
        assert_eq!(because(&former, &[&used], false), Because::AgentsOrder);
        assert_eq!(because(&former, &[&used], true), Because::ThisTerminal);
    }

    #[test]
    fn one_sentence_says_who_is_found_and_who_else_is_there() {
        let (used, former, elsewhere) = (
            editor(1, 20),
            editor(5, 10),
            Record::sample(9, "/b", LastUse::default()),
        );
        let records = [former, elsewhere, used.clone()];
        let others = rivals(&records, &used, Path::new("/a/src"));
        let found = Found {
            because: because(&used, &others, false),
            companion: Who::of(&used),
            others: others.into_iter().map(Who::of).collect(),
        };
        assert_eq!(
            found.words(),
            "would find Neovim (pid 2), because it was used most recently; also running: Neovim (pid 6)"
        );
    }
}
