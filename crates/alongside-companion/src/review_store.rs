//! Open reviews as files, so that they survive a crash.
//!
//! Two files per review. The texts it began with may be large and hardly ever change, so they are written once; its outline
//! (decisions, edits, version) is small and written with every change. An outline names the file of its texts, is written after
//! it and removed before it: at any moment, the file that an outline names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::{Review, ReviewId, ReviewOutline};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::writer::{Key, Writer};
use crate::places::write_private;

/// The writer has at most one job per open review and one per review on disk.
pub(super) struct ReviewStore {
    writer: Arc<Writer>,
    /// Locked by the writer's thread only.
    files: Arc<Mutex<ReviewFiles>>,
    /// The reviews that may be on disk.
    on_disk: Arc<Mutex<BTreeSet<ReviewId>>>,
}

#[derive(Serialize, Deserialize)]
struct StoredReview {
    outline: ReviewOutline,
    /// The name of the file with the texts.
    texts: String,
}

#[derive(Clone)]
struct Texts {
    base: Arc<str>,
    proposal: Arc<str>,
    file: String,
}

impl ReviewStore {
    /// Takes over a directory and the reviews in it, which were open when the previous companion was killed.
    pub(super) fn open(directory: PathBuf, writer: Arc<Writer>) -> (Self, Vec<Review>) {
        let (reviews, texts) = restore(&directory);
        let on_disk = texts.keys().copied().collect();
        let store = Self {
            writer,
            files: Arc::new(Mutex::new(ReviewFiles { directory, texts })),
            on_disk: Arc::new(Mutex::new(on_disk)),
        };
        (store, reviews)
    }

    /// Writes a review soon.
    pub(super) fn save(&self, review: Review) {
        let (files, on_disk) = (self.files.clone(), self.on_disk.clone());
        self.writer.replace(Key::Review(review.id), move || {
            on_disk.lock().insert(review.id);
            files.lock().write_or_remove(review.id, Some(&review));
        });
    }

    /// Removes a review soon.
    pub(super) fn forget(&self, id: ReviewId) {
        let was_queued = self.writer.cancel(Key::Review(id));
        if was_queued && !self.on_disk.lock().contains(&id) {
            return;
        }
        let (files, on_disk) = (self.files.clone(), self.on_disk.clone());
        self.writer.replace(Key::Review(id), move || {
            files.lock().write_or_remove(id, None);
            on_disk.lock().remove(&id);
        });
    }
}

struct ReviewFiles {
    directory: PathBuf,
    /// What is on disk.
    texts: BTreeMap<ReviewId, Texts>,
}

impl ReviewFiles {
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
                // The version grows with every change, so no two texts of a review share a file.
                file: format!("{}-{}.texts", review.id, review.version),
            };
            write_private(
                &self.directory.join(&texts.file),
                &serde_json::to_vec(&(base, proposal))?,
            )?;
            outdated = self.texts.insert(review.id, texts);
        }
        let texts = self.texts.get(&review.id).map(|texts| texts.file.clone());
        let stored = StoredReview {
            outline: review.outline(),
            texts: texts.unwrap_or_default(),
        };
        write_private(path, &serde_json::to_vec(&stored)?)?;
        match outdated.filter(|outdated| outdated.file != stored.texts) {
            Some(outdated) => fs::remove_file(self.directory.join(outdated.file)),
            None => Ok(()),
        }
    }

    fn remove(&mut self, path: &Path, id: ReviewId) -> io::Result<()> {
        let removed = fs::remove_file(path);
        if let Some(texts) = self.texts.remove(&id) {
            fs::remove_file(self.directory.join(texts.file))?;
        }
        // Succeeds only when it is empty.
        let _ = fs::remove_dir(&self.directory);
        removed
    }
}

/// The reviews of a directory and their texts. Texts without an outline were left behind by a crash and are removed.
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
    // A damaged outline may be repaired by hand, and then needs its texts.
    for path in files
        .iter()
        .filter(|path| !damaged && is(path, "texts") && !named(path))
    {
        let _ = fs::remove_file(path);
    }
    (reviews, known)
}

fn read(directory: &Path, path: &Path) -> anyhow::Result<(Review, Texts)> {
    let stored: StoredReview = serde_json::from_slice(&fs::read(path)?)?;
    // Only the name, so that nothing leads out of the directory.
    let file = Path::new(&stored.texts).file_name().unwrap_or_default();
    let (base, proposal): (Arc<str>, Arc<str>) = serde_json::from_slice(&fs::read(directory.join(file))?)?;
    let review = Review::restore(stored.outline, base.clone(), proposal.clone())?;
    let texts = Texts {
        base,
        proposal,
        file: stored.texts,
    };
    Ok((review, texts))
}

#[cfg(test)]
mod tests {
    use alongside_core::draft::HunkDecision;
    use alongside_core::{Base, Core, Now, Proposal, SessionKey};

    use super::*;

    fn core() -> Core {
        Core::new(Vec::new())
    }

    fn propose(core: &mut Core, text: &str) -> Review {
        let proposal = Proposal::new("/a", Base::Text("\u{feff}old\r\n".into()), text, None);
        let id = core.open_review(Now::default(), &SessionKey::from("one"), proposal);
        core.review(id.unwrap()).unwrap().clone()
    }

    fn open(directory: &Path) -> (ReviewStore, Vec<Review>) {
        ReviewStore::open(directory.to_owned(), Arc::new(Writer::start().unwrap()))
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn open_review_is_restored_byte_for_byte_and_a_decided_one_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("reviews");
        let (store, before) = open(&directory);
        assert!(before.is_empty());
        let review = propose(&mut core(), "\u{feff}new\r\nno newline");
        store.save(review.clone());
        drop(store);
        let (store, restored) = open(&directory);
        assert_eq!(restored, std::slice::from_ref(&review));
        store.forget(review.id);
        drop(store);
        assert!(!directory.exists(), "{:?}", names(&directory));
    }

    #[test]
    fn texts_are_written_once_and_a_decision_changes_only_the_outline() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let mut core = core();
        let review = propose(&mut core, "new\n");
        let (store, _) = open(&directory);
        store.save(review.clone());
        drop(store);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        let inode = |name: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(directory.join(name)).unwrap().ino()
        };
        let (texts, outline) = (inode("1-1.texts"), inode("1.json"));

        let (store, restored) = open(&directory);
        core.restore_review(Now::default(), restored.into_iter().next().unwrap());
        let hunk = review.draft().hunks().next().unwrap().id;
        let restored = core.review(review.id).unwrap();
        let update = restored.decide_hunk(hunk, HunkDecision::Rejected).unwrap();
        core.update_draft(update).unwrap();
        store.save(core.review(review.id).unwrap().clone());
        drop(store);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        assert_eq!(inode("1-1.texts"), texts);
        assert_ne!(inode("1.json"), outline);
        let (_, restored) = open(&directory);
        assert_eq!(restored, [core.review(review.id).unwrap().clone()]);
    }

    #[test]
    fn new_texts_replace_the_previous_ones() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let mut core = core();
        let (store, _) = open(&directory);
        store.save(propose(&mut core, "new\n"));
        drop(store);
        let (store, _) = open(&directory);
        let revised = propose(&mut core, "newer\n");
        store.save(revised.clone());
        drop(store);
        assert_eq!(names(&directory), ["1-2.texts", "1.json"]);
        let (_, restored) = open(&directory);
        assert_eq!(restored, [revised]);
    }

    #[test]
    fn leftover_texts_are_removed_and_a_damaged_outline_is_skipped() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let (store, _) = open(&directory);
        store.save(propose(&mut core(), "text"));
        drop(store);
        fs::write(directory.join("9-1.texts"), "left").unwrap();
        drop(open(&directory).0);
        assert_eq!(names(&directory), ["1-1.texts", "1.json"]);
        fs::write(directory.join("7.json"), "{").unwrap();
        let (_, restored) = open(&directory);
        assert_eq!(restored.len(), 1);
    }

    #[test]
    fn review_decided_before_it_was_written_leaves_no_job() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("reviews");
        let (store, _) = open(&directory);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = std::sync::mpsc::channel();
        store.writer.append(move || {
            started.send(()).unwrap();
            let _ = released.recv();
        });
        has_started.recv().unwrap();
        let review = propose(&mut core(), "new\n");
        store.save(review.clone());
        store.forget(review.id);
        assert!(!store.writer.cancel(Key::Review(review.id)));
        drop(release);
        drop(store);
        assert!(!directory.exists());
    }
}
