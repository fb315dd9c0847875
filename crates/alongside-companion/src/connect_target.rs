//! Which companion an agent started here would connect to, and why.

use std::path::Path;

use alongside_discovery::lookup::locks::{Endpoint, LockLookup};
use alongside_discovery::lookup::{Lookup, Source};
use serde::Serialize;

use crate::companion_record::CompanionRecord;
use alongside_core::printable::printable_line;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectTarget {
    companion: CompanionName,
    reason: Reason,
    /// The others that serve the same directory.
    others: Vec<CompanionName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CompanionName {
    pid: u32,
    editor_pid: u32,
    display_name: String,
}

/// Why an agent would pick this companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Reason {
    ThisTerminal,
    OnlyOne,
    HasEditor,
    UsedLast,
    AgentsOrder,
}

impl ConnectTarget {
    /// The target of a lookup; `None` if that is not one of our companions.
    pub fn from_lookup(lookup: &Lookup, records: &[CompanionRecord], terminal: &[u16]) -> Option<Self> {
        let port = lookup.targets().next()?.port;
        let by_variable = lookup
            .chosen()
            .is_some_and(|candidate| matches!(candidate.source, Source::PortVariable | Source::LegacyPort));
        let is_of_terminal = by_variable || terminal.contains(&port);
        Self::new(port, &lookup.working_directory, records, is_of_terminal)
    }

    /// The same for an agent that reads lock files.
    pub fn from_locks(lookup: &LockLookup, records: &[CompanionRecord]) -> Option<Self> {
        match lookup.endpoint()? {
            Endpoint::WebSocket { port, .. } => Self::new(*port, &lookup.working_directory, records, false),
            Endpoint::Socket { .. } => None,
        }
    }

    fn new(port: u16, directory: &Path, records: &[CompanionRecord], is_of_terminal: bool) -> Option<Self> {
        let found = records.iter().find(|record| record.port == port)?;
        let others: Vec<&CompanionRecord> = rivals(records, found, directory);
        Some(Self {
            reason: pick_reason(found, &others, is_of_terminal),
            companion: CompanionName::new(found),
            others: others.into_iter().map(CompanionName::new).collect(),
        })
    }

    /// The end of a sentence that begins with the agent's name.
    pub fn to_text(&self) -> String {
        let reason = match self.reason {
            Reason::ThisTerminal => "because this terminal belongs to it",
            Reason::OnlyOne => "the only companion here",
            Reason::HasEditor => "because it belongs to an editor",
            Reason::UsedLast => "because it was used most recently",
            Reason::AgentsOrder => "because the agent ranks its discovery file first",
        };
        let mut text = format!("would pick {}, {reason}", self.companion.to_text());
        if !self.others.is_empty() {
            let others: Vec<String> = self.others.iter().map(CompanionName::to_text).collect();
            text.push_str(&format!("; also running: {}", others.join(", ")));
        }
        text
    }
}

impl CompanionName {
    fn new(record: &CompanionRecord) -> Self {
        Self {
            pid: record.pid,
            editor_pid: record.editor_pid,
            display_name: record.display_name.clone(),
        }
    }

    fn to_text(&self) -> String {
        format!("{} (pid {})", printable_line(&self.display_name), self.editor_pid)
    }
}

fn rivals<'a>(records: &'a [CompanionRecord], found: &CompanionRecord, directory: &Path) -> Vec<&'a CompanionRecord> {
    let mut others: Vec<&CompanionRecord> = records
        .iter()
        .filter(|other| other.pid != found.pid && other.serves(directory))
        .collect();
    others.sort_by_key(|other| std::cmp::Reverse((other.last_use, other.pid)));
    others
}

fn pick_reason(found: &CompanionRecord, others: &[&CompanionRecord], names_this_terminal: bool) -> Reason {
    if names_this_terminal {
        Reason::ThisTerminal
    } else if others.is_empty() {
        Reason::OnlyOne
    } else if others
        .iter()
        .any(|other| (other.last_use, other.pid) > (found.last_use, found.pid))
    {
        Reason::AgentsOrder
    } else if found.has_editor() && !others.iter().any(|other| other.has_editor()) {
        Reason::HasEditor
    } else {
        Reason::UsedLast
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use alongside_discovery::LastUse;

    use super::*;

    fn editor(pid: u32, seconds: u64) -> CompanionRecord {
        CompanionRecord::sample(pid, "/a", LastUse::of_editor(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    fn alone(pid: u32, seconds: u64) -> CompanionRecord {
        let last_use = LastUse::without_editor(UNIX_EPOCH + Duration::from_secs(seconds));
        let mut record = CompanionRecord::sample(pid, "/a", last_use);
        record.editor_pid = pid;
        record
    }

    #[test]
    fn reason_is_the_rule_that_decided() {
        let (used, previous, headless) = (editor(1, 20), editor(2, 10), alone(3, 30));
        assert_eq!(pick_reason(&used, &[], false), Reason::OnlyOne);
        assert_eq!(pick_reason(&used, &[&previous, &headless], false), Reason::UsedLast);
        assert_eq!(pick_reason(&used, &[&headless], false), Reason::HasEditor);
        assert_eq!(pick_reason(&previous, &[&used], false), Reason::AgentsOrder);
        assert_eq!(pick_reason(&previous, &[&used], true), Reason::ThisTerminal);
    }

    #[test]
    fn text_names_the_target_and_the_others() {
        let (used, previous, elsewhere) = (
            editor(1, 20),
            editor(5, 10),
            CompanionRecord::sample(9, "/b", LastUse::default()),
        );
        let records = [previous, elsewhere, used.clone()];
        let others = rivals(&records, &used, Path::new("/a/src"));
        let target = ConnectTarget {
            reason: pick_reason(&used, &others, false),
            companion: CompanionName::new(&used),
            others: others.into_iter().map(CompanionName::new).collect(),
        };
        assert_eq!(
            target.to_text(),
            "would pick Neovim (pid 2), because it was used most recently; also running: Neovim (pid 6)"
        );
    }
}
