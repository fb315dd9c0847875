//! The reviews that wait, as files: what brings them back after a crash.
//!
//! Two files a review. The texts that it began with may be large and hardly ever change, so they are written once; its outline
//! (decisions, edits, version) is small and written with every change. An outline names the file of its texts, is written after
//! it and removed before it: whenever the process ends, what an outline names is there.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use alongside_core::{Review, ReviewId, ReviewOutline};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::places::write_private;

/// Where the reviews of one companion are kept, and the thread that keeps them.
pub(super) struct KeptReviews {
    directory: PathBuf,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

/// What a file of a review says.
#[derive(Serialize, Deserialize)]
struct Kept {
    outline: ReviewOutline,
    /// The name of the file with the texts.
    texts: String,
}

/// The texts of a review, and the file that they are in.
#[derive(Clone)]
struct Texts {
    base: Arc<str>,
    proposal: Arc<str>,
    file: String,
}

/// Reviews to be written; `None` to be removed. A review that changes faster than the disk is written once.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    reviews: BTreeMap<ReviewId, Option<Review>>,
    closed: bool,
}

impl KeptReviews {
    /// Takes over a directory, and the reviews in it that were open when the former companion ended without a word.
    pub(super) fn open(directory: PathBuf) -> io::Result<(Self, Vec<Review>)> {
        let (reviews, texts) = restore(&directory);
        let queue = Arc::new(Queue::default());
        let writer = std::thread::Builder::new().name("reviews".to_owned()).spawn({
            let (queue, directory) = (queue.clone(), directory.clone());
            move || queue.write_until_closed(Writer { directory, texts })
        })?;
        let kept = Self {
            directory,
            queue,
            writer: Some(writer),
        };
        Ok((kept, reviews))
    }

    /// Writes a review soon.
    pub(super) fn save(&self, review: Review) {
        self.queue.put(review.id, Some(review));
    }

    /// Removes a review soon.
    pub(super) fn forget(&self, id: ReviewId) {
        self.queue.put(id, None);
    }
}

impl Drop for KeptReviews {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            // It has nothing to say.
            let _ = writer.join();
        }
        // Only when it is empty.
        let _ = fs::remove_dir(&self.directory);
    }
}

impl Queue {
    fn put(&self, id: ReviewId, review: Option<Review>) {
        self.state.lock().reviews.insert(id, review);
        self.changed.notify_one();
    }

    fn write_until_closed(&self, mut writer: Writer) {
        loop {
            let mut state = self.state.lock();
            while state.reviews.is_empty() && !state.closed {
                self.changed.wait(&mut state);
            }
            let reviews = std::mem::take(&mut state.reviews);
            drop(state);
            if reviews.is_empty() {
                return;
            }
            let start = Instant::now();
            for (id, review) in reviews {
                writer.write_or_remove(id, review.as_ref());
            }
            // A large review that is being edited would be written all the time; so half of the time is for others. A
            // small one is written at once.
            let rest = start.elapsed();
            let mut state = self.state.lock();
            while !state.closed && start.elapsed() < rest * 2 {
                self.changed.wait_for(&mut state, rest);
            }
        }
    }
}

/// What the thread knows.
struct Writer {
    directory: PathBuf,
    /// What is on disk.
    texts: BTreeMap<ReviewId, Texts>,
}

impl Writer {
    fn write_or_remove(&mut self, id: ReviewId, review: Option<&Review>) {
        let path = self.directory.join(format!("{id}.json"));
        let done = match review {
            Some(review) => self.write(&path, review),
            None => self.remove(&path, id),
        };
        if let Err(error) = done
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%error, path = %path.display(), "cannot save a review; it would not survive a crash");
        }
    }

    fn write(&mut self, path: &Path, review: &Review) -> io::Result<()> {
        let (base, proposal) = (review.draft().base(), review.draft().proposal());
        let mut outdated = None;
        let written = self.texts.get(&review.id);
        let is_written =
            written.is_some_and(|texts| Arc::ptr_eq(&texts.base, base) && Arc::ptr_eq(&texts.proposal, proposal));
        if !is_written {
            let texts = Texts {
                base: base.clone(),
                proposal: proposal.clone(),
                // The version grows with every change, and so no two texts of a review share a file.
                file: format!("{}-{}.texts", review.id, review.version),
            };
            write_private(
                &self.directory.join(&texts.file),
                &serde_json::to_vec(&(base, proposal))?,
            )?;
            outdated = self.texts.insert(review.id, texts);
        }
        let texts = self.texts.get(&review.id).map(|texts| texts.file.clone());
        let kept = Kept {
            outline: review.outline(),
            texts: texts.unwrap_or_default(),
        };
        write_private(path, &serde_json::to_vec(&kept)?)?;
        match outdated.filter(|outdated| outdated.file != kept.texts) {
            Some(outdated) => fs::remove_file(self.directory.join(outdated.file)),
            None => Ok(()),
        }
    }

    fn remove(&mut self, path: &Path, id: ReviewId) -> io::Result<()> {
        let removed = fs::remove_file(path);
        if let Some(texts) = self.texts.remove(&id) {
            fs::remove_file(self.directory.join(texts.file))?;
        }
        removed
    }
}

/// The reviews of a directory and their texts. What belongs to none of them is left from an unlucky moment, and removed.
fn restore(directory: &Path) -> (Vec<Review>, BTreeMap<ReviewId, Texts>) {
    let (mut reviews, mut known) = (Vec::new(), BTreeMap::new());
    let Ok(entries) = fs::read_dir(directory) else {
        return (reviews, known);
    };
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is = |path: &Path, kind: &str| path.extension().is_some_and(|extension| extension == kind);
    let mut damaged = false;
    for path in files.iter().filter(|path| is(path, "json")) {
        match read(directory, path) {
            Ok((review, texts)) => {
                known.insert(review.id, texts);
                reviews.push(review);
            }
            Err(error) => {
                damaged = true;
                tracing::error!(%error, path = %path.display(), "cannot restore a review");
            }
        }
    }
    let named = |path: &Path| known.values().any(|texts| directory.join(&texts.file) == path);
    // Somebody may still want to look at what is damaged.
    for path in files
        .iter()
        .filter(|path| !damaged && is(path, "texts") && !named(path))
    {
        let _ = fs::remove_file(path);
    }
    (reviews, known)
}

fn read(directory: &Path, path: &Path) -> anyhow::Result<(Review, Texts)> {
    let kept: Kept = serde_json::from_slice(&fs::read(path)?)?;
    // Only a name: nothing leads out of the directory.
    let file = Path::new(&kept.texts).file_name().unwrap_or_default();
    let (base, proposal): (Arc<str>, Arc<str>) = serde_json::from_slice(&fs::read(directory.join(file))?)?;
    let review = Review::restore(kept.outline, base.clone(), proposal.clone())?;
    let texts = Texts {
        base,
        proposal,
        file: kept.texts,
    };
    Ok((review, texts))
}

#[cfg(test)]
mod tests {
    use alongside_core::draft::HunkDecision;
    use alongside_core::{Base, Core, Now, Proposal, SessionId};

    use super::*;

    fn core() -> Core {
        Core::new(Vec::new())
    }

    fn propose(core: &mut Core, text: &str) -> Review {
        let proposal = Proposal::new("/a", Base::Text("\u{feff}old\r\n".into()), text, None);
        let id = core.open_review(Now::default(), &SessionId::new("one"), proposal);
        core.review(id.unwrap()).unwrap().clone()
    }

    /// Writes what waits and lets go of the directory.
    fn close(kept: KeptReviews) {
        drop(kept);
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_open_review_comes_back_byte_for_byte_and_a_decided_one_does_not() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("reviews");
        let (kept, before) = KeptReviews::open(directory.clone()).unwrap();
        assert!(before.is_empty());
        let review = propose(&mut core(), "\u{feff}new\r\nno newline");
        kept.save(review.clone());
        close(kept);
        let (kept, restored) = KeptReviews::open(directory.clone()).unwrap();
        assert_eq!(restored, std::slice::from_ref(&review));
        kept.forget(review.id);
        close(kept);
        assert!(!directory.exists(), "{:?}", names(&directory));
    }

    #[test]
    fn the_texts_are_written_once_and_a_decision_with_the_outline_only() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let mut core = core();
        let review = propose(&mut core, "new\n");
        let (kept, _) = KeptReviews::open(directory.clone()).unwrap();
        kept.save(review.clone());
        close(kept);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        let inode = |name: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(directory.join(name)).unwrap().ino()
        };
        let (texts, outline) = (inode("1-1.texts"), inode("1.json"));

        let (kept, restored) = KeptReviews::open(directory.clone()).unwrap();
        core.restore_review(Now::default(), restored.into_iter().next().unwrap());
        let hunk = review.draft().hunks().next().unwrap().id;
        let restored = core.review(review.id).unwrap();
        let update = restored.decide_hunk(hunk, HunkDecision::Rejected).unwrap();
        core.update_draft(update).unwrap();
        kept.save(core.review(review.id).unwrap().clone());
        close(kept);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        assert_eq!(inode("1-1.texts"), texts);
        assert_ne!(inode("1.json"), outline);
        let (_, restored) = KeptReviews::open(directory).unwrap();
        assert_eq!(restored, [core.review(review.id).unwrap().clone()]);
    }

    #[test]
    fn other_texts_take_the_place_of_the_former_ones() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let mut core = core();
        let (kept, _) = KeptReviews::open(directory.clone()).unwrap();
        kept.save(propose(&mut core, "new\n"));
        close(kept);
        let (kept, _) = KeptReviews::open(directory.clone()).unwrap();
        let revised = propose(&mut core, "newer\n");
        kept.save(revised.clone());
        close(kept);
        assert_eq!(names(&directory), ["1-2.texts", "1.json"]);
        let (_, restored) = KeptReviews::open(directory).unwrap();
        assert_eq!(restored, [revised]);
    }

    #[test]
    fn what_a_crash_left_between_two_files_is_removed_and_what_is_damaged_stops_nobody() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let (kept, _) = KeptReviews::open(directory.clone()).unwrap();
        kept.save(propose(&mut core(), "text"));
        close(kept);
        fs::write(directory.join("9-1.texts"), "left").unwrap();
        close(KeptReviews::open(directory.clone()).unwrap().0);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        fs::write(directory.join("7.json"), "{").unwrap();
        let (_, restored) = KeptReviews::open(directory).unwrap();
        assert_eq!(restored.len(), 1);
    }
}
