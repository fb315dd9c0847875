//! What recovery could not read, as a sentence for users.

use std::fmt;
use std::path::PathBuf;

/// What is missing from a recovered log, and where the file with the rest of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    log: String,
    findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) loss: Loss,
    /// The file as it was found.
    pub(crate) copy: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// So many bytes were skipped, and everything behind them was read.
    Skipped {
        bytes: usize,
    },
    /// Nothing behind this was read: power was lost before it was synced.
    Dropped {
        bytes: usize,
    },
    /// A snapshot without its end.
    Incomplete,
    OtherFormat {
        major: u16,
    },
    Unreadable,
}

impl Damage {
    /// Nothing if nothing was found.
    pub(crate) fn new(log: &str, findings: Vec<Finding>) -> Option<Self> {
        (!findings.is_empty()).then(|| Self {
            log: log.to_owned(),
            findings,
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the journal `{}` could not be read completely: ", self.log)?;
        for (position, Finding { loss, copy }) in self.findings.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            let copy = copy.display();
            match loss {
                Loss::Skipped { bytes } => write!(f, "{bytes} damaged bytes were skipped; the damaged file is {copy}")?,
                Loss::Dropped { bytes } => write!(
                    f,
                    "the last {bytes} bytes were not saved completely before the computer stopped; the file is {copy}"
                )?,
                Loss::Incomplete => write!(f, "a part of it is missing; the damaged file is {copy}")?,
                Loss::OtherFormat { major } => write!(
                    f,
                    "another version of alongside wrote it, in format {major}; it was left alone in {copy}"
                )?,
                Loss::Unreadable => write!(f, "it is damaged; the damaged file is {copy}")?,
            }
        }
        Ok(())
    }
}
