//! When a companion was last used, as a number that both agents sort by.
//!
//! Of several companions that an agent could find, the one that was used last shall be found. Neither agent knows that
//! rule, but each sorts files by something that we choose: Qwen Code by the time of the file, Gemini CLI by the number in
//! its name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::announcement::unix_milliseconds;

/// The moment of the last use, in milliseconds since 1970. The greater one is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastUse(u64);

impl LastUse {
    /// That an editor was used at this moment.
    pub fn of_editor(moment: SystemTime) -> Self {
        Self(unix_milliseconds(moment))
    }

    /// That a companion without an editor was used at this moment. It counts for half: always less than any editor's, and
    /// in order among its like.
    pub fn without_editor(moment: SystemTime) -> Self {
        Self(Self::of_editor(moment).0 / 2)
    }

    /// The time of a file that Qwen Code sorts by this.
    pub(crate) fn as_file_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }

    /// The number in the name of a file that Gemini CLI sorts by this. It takes it for the id of a dead process: none is as
    /// large as the seconds since 1970, nor half of them.
    pub(crate) fn as_dead_process(self) -> u64 {
        self.0 / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest process id that Linux can be set to; other systems stay far below.
    const MAX_PID: u64 = 1 << 22;

    fn moment(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_later_use_counts_for_more_and_no_use_without_an_editor_counts_as_much_as_one_with() {
        let (old, new) = (moment(1_700_000_000), moment(1_900_000_000));
        assert!(LastUse::of_editor(old) < LastUse::of_editor(new));
        assert!(LastUse::without_editor(old) < LastUse::without_editor(new));
        assert!(LastUse::without_editor(new) < LastUse::of_editor(old));
    }

    #[test]
    fn the_number_in_a_name_is_no_process() {
        let now = moment(1_700_000_000);
        for last_use in [LastUse::of_editor(now), LastUse::without_editor(now)] {
            assert!(last_use.as_dead_process() > MAX_PID);
            // What JavaScript takes for a process id at all.
            assert!(last_use.as_dead_process() < 1 << 31);
        }
    }
}
