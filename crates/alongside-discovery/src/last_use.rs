//! When a companion was last used, as a number that both agents sort by.
//!
//! Of several companions that an agent could find, it should find the most recently used one. Neither agent implements
//! that rule, but each sorts files by something we control: Qwen Code by the file's mtime, Gemini CLI by the number in
//! its name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::announcement::unix_milliseconds;

/// The time of the last use, in milliseconds since 1970. Agents find the companion with the greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastUse(u64);

impl LastUse {
    /// An editor was used at this time.
    pub fn of_editor(moment: SystemTime) -> Self {
        Self(unix_milliseconds(moment))
    }

    /// A companion without an editor was used at this time. Its value is halved: always less than any editor's, and
    /// still ordered among companions without an editor.
    pub fn without_editor(moment: SystemTime) -> Self {
        Self(Self::of_editor(moment).0 / 2)
    }

    /// The mtime of a file, which Qwen Code sorts by.
    pub(crate) fn as_file_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }

    /// The number in a file name, which Gemini CLI sorts by. Gemini CLI treats it as the PID of a dead process: no PID
    /// is as large as the seconds since 1970, or even half of them.
    pub(crate) fn as_dead_process(self) -> u64 {
        self.0 / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest PID limit Linux can be configured with; other systems stay far below.
    const MAX_PID: u64 = 1 << 22;

    fn moment(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn editor_companions_outrank_standalone_ones() {
        let (old, new) = (moment(1_700_000_000), moment(1_900_000_000));
        assert!(LastUse::of_editor(old) < LastUse::of_editor(new));
        assert!(LastUse::without_editor(old) < LastUse::without_editor(new));
        assert!(LastUse::without_editor(new) < LastUse::of_editor(old));
    }

    #[test]
    fn number_in_name_is_never_a_process() {
        let now = moment(1_700_000_000);
        for last_use in [LastUse::of_editor(now), LastUse::without_editor(now)] {
            assert!(last_use.as_dead_process() > MAX_PID);
            // What JavaScript accepts as a PID at all.
            assert!(last_use.as_dead_process() < 1 << 31);
        }
    }
}
