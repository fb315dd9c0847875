//! Changes that an agent made although its hook ended without a decision.
//!
//! A hook that times out, or that is killed together with its terminal, cannot deny, and some agents then write. The companion cannot prevent
//! that, but it shows what happened and keeps the previous text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use alongside_core::{Base, BaseKind, Review};
use parking_lot::Mutex;

use crate::Companion;
use crate::places::write_private;

/// When to look at the file, each after the previous time. Agents write at once, or after a last request of their own.
const LOOKS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(10)];
const MAX_REPORTED: usize = 16;
const MAX_KEPT_TEXTS: usize = 32;

#[derive(Default)]
pub(crate) struct Unreviewed {
    /// The files that may be written now.
    watched: Mutex<Vec<Arc<str>>>,
    /// Sentences, oldest first.
    written: Mutex<Vec<String>>,
}

impl Unreviewed {
    pub(crate) fn problems(&self) -> Vec<String> {
        self.written.lock().clone()
    }

    /// The agent asks about the file again.
    pub(crate) fn forget(&self, path: &str) {
        self.watched.lock().retain(|watched| **watched != *path);
    }

    pub(crate) fn report(&self, sentence: String) {
        let mut written = self.written.lock();
        written.retain(|reported| *reported != sentence);
        written.push(sentence);
        let excess = written.len().saturating_sub(MAX_REPORTED);
        written.drain(..excess);
    }

    fn is_watched(&self, path: &str) -> bool {
        self.watched.lock().iter().any(|watched| **watched == *path)
    }
}

impl Companion {
    /// Looks for a while whether an agent makes a change whose review closed without a decision.
    pub(crate) fn watch_undecided(&self, review: Review) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        self.unreviewed.watched.lock().push(Arc::clone(&review.path));
        let me = self.me.clone();
        runtime.spawn(async move {
            let watched = review.clone();
            look_repeatedly(&me, move |companion| companion.look_at_undecided(&watched)).await;
            if let Some(companion) = me.upgrade() {
                companion.unreviewed.forget(&review.path);
            }
        });
    }

    /// Whether there is nothing more to look for. Blocks.
    fn look_at_undecided(&self, review: &Review) -> bool {
        if !self.unreviewed.is_watched(&review.path) {
            return true;
        }
        let proposal = review.draft().proposal();
        let is_written = match (self.host.read_base)(&review.path, None) {
            Ok(Base::Text(text)) => text == *proposal,
            // A deletion is a proposal without text.
            Ok(Base::Missing) => proposal.is_empty() && review.base != BaseKind::Missing,
            _ => false,
        };
        if !is_written {
            return false;
        }
        let kept = (review.base == BaseKind::Text).then(|| self.keep(&review.path, review.draft().base()));
        let before = match kept {
            None => String::new(),
            Some(Ok(path)) => format!("; the previous text is in {}", path.display()),
            Some(Err(error)) => format!("; the previous text could not be kept: {error}"),
        };
        let sentence = format!(
            "{} changed {} although its hook ended before you decided{before}",
            review.agent, review.path
        );
        self.unreviewed.report(sentence);
        self.report_problems();
        true
    }

    fn keep(&self, path: &str, text: &str) -> io::Result<PathBuf> {
        let directory = self.places.unreviewed();
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        let now = self.clock.now().unix_milliseconds;
        let kept = directory.join(format!("{now}-{name}"));
        write_private(&kept, text.as_bytes())?;
        drop_oldest(&directory)?;
        Ok(kept)
    }
}

/// Looks at a file until `look`, which may block, returns that there is nothing more to look for.
pub(crate) async fn look_repeatedly(me: &Weak<Companion>, look: impl Fn(&Companion) -> bool + Clone + Send + 'static) {
    for delay in LOOKS {
        tokio::time::sleep(delay).await;
        let Some(companion) = me.upgrade() else { return };
        let look = look.clone();
        let looked = tokio::task::spawn_blocking(move || look(&companion));
        if looked.await.unwrap_or(true) {
            return;
        }
    }
}

fn drop_oldest(directory: &Path) -> io::Result<()> {
    let mut texts: Vec<PathBuf> = fs::read_dir(directory)?.flatten().map(|entry| entry.path()).collect();
    // Their names start with the time.
    texts.sort();
    let excess = texts.len().saturating_sub(MAX_KEPT_TEXTS);
    texts[..excess].iter().try_for_each(fs::remove_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_previous_texts_are_limited() {
        let unreviewed = Unreviewed::default();
        let scratch = tempfile::tempdir().unwrap();
        for number in 10..=10 + MAX_KEPT_TEXTS {
            unreviewed.report(number.to_string());
            fs::write(scratch.path().join(format!("{number}-a.txt")), "").unwrap();
            drop_oldest(scratch.path()).unwrap();
        }
        assert_eq!(unreviewed.problems().len(), MAX_REPORTED);
        assert_eq!(unreviewed.problems().last().map(String::as_str), Some("42"));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), MAX_KEPT_TEXTS);
        assert!(!scratch.path().join("10-a.txt").exists(), "the oldest is dropped");
    }
}
