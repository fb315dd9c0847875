//! The discovery files of a running companion, held by a guard that takes them away again.
//!
//! Gemini CLI never removes a file, and one that outlives its companion can keep it from finding the next; so a file
//! exists only as long as the [`DiscoveryFiles`] that wrote it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alongside_core::Secret;
use alongside_core::dialect::{AgentKind, FileRule};

use crate::directory::PrivateDirectory;
use crate::document::Document;
use crate::{AnnounceError, Announcement, DiscoveryError, Environment, place};

/// How the names of unfinished files begin. No agent's pattern matches them.
pub(crate) const TEMPORARY_PREFIX: &str = ".alongside-";

/// How the names of unfinished files end.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// The discovery files of all dialects. They go when this value goes.
#[derive(Debug)]
pub struct DiscoveryFiles {
    environment: Environment,
    token: Secret,
    written: Vec<(AgentKind, PathBuf)>,
    problems: Vec<AnnounceError>,
}

impl DiscoveryFiles {
    /// Writes the files of every dialect. Call it after the port answers.
    ///
    /// A file that cannot be written is a [problem](Self::problems) and does not keep the others from being written; it
    /// is an error if none can.
    pub fn write(environment: &Environment, announcement: &Announcement) -> Result<Self, DiscoveryError> {
        let mut files = Self {
            environment: environment.clone(),
            token: announcement.token.clone(),
            written: Vec::new(),
            problems: Vec::new(),
        };
        files.rewrite(announcement)?;
        Ok(files)
    }

    /// Writes all files anew: when the workspace folders have changed, when one was [deleted](Self::missing), or when another
    /// companion was used last.
    pub fn rewrite(&mut self, announcement: &Announcement) -> Result<(), DiscoveryError> {
        let before = std::mem::take(&mut self.written);
        let old_token = std::mem::replace(&mut self.token, announcement.token.clone());
        self.problems.clear();
        for (agent, rule) in place::rules() {
            let path = place::directory(&self.environment, rule).join(self.file_name(rule, announcement));
            match self.write_one(announcement, agent, rule, &path) {
                Ok(()) => self.written.push((agent, path)),
                Err(error) => self.problems.push(AnnounceError { agent, path, error }),
            }
        }
        for (agent, path) in before {
            // One that could not be written again tells an old story, which is worse than none.
            if !self.paths().any(|written| written == path)
                && let Err(error) = remove_own(&path, &old_token)
            {
                self.problems.push(AnnounceError { agent, path, error });
            }
        }
        if self.written.is_empty() {
            let problems = std::mem::take(&mut self.problems);
            return Err(DiscoveryError::NothingWritten { problems });
        }
        Ok(())
    }

    /// The files that were written.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.written.iter().map(|(_, path)| path.as_path())
    }

    /// The directories that hold them, each once, to be watched.
    pub fn directories(&self) -> BTreeSet<&Path> {
        self.paths().filter_map(Path::parent).collect()
    }

    /// The files that somebody has deleted since.
    pub fn missing(&self) -> Vec<&Path> {
        let gone =
            |path: &&Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        self.paths().filter(gone).collect()
    }

    /// What went wrong when the files were last written.
    pub fn problems(&self) -> &[AnnounceError] {
        &self.problems
    }

    /// Removes the files, but none that another companion has put in their place since. Called again it does nothing.
    pub fn remove(&mut self) -> Result<(), DiscoveryError> {
        let mut result = Ok(());
        for (_, path) in std::mem::take(&mut self.written) {
            result = result.and(remove_own(&path, &self.token));
        }
        result
    }

    fn write_one(
        &mut self,
        announcement: &Announcement,
        agent: AgentKind,
        rule: &FileRule,
        path: &Path,
    ) -> Result<(), DiscoveryError> {
        let base = place::base(&self.environment, rule);
        let directory = PrivateDirectory::open(&base, rule.directories, self.environment.uid)?;
        let (contents, untold) = announcement.contents(&self.environment, agent, rule);
        let name = self.file_name(rule, announcement);
        let temporary = format!("{TEMPORARY_PREFIX}{}-{name}{TEMPORARY_SUFFIX}", self.environment.pid);
        directory.replace(&name, &temporary, &contents, announcement.last_use.as_file_time())?;
        let problem = |error| AnnounceError {
            agent,
            path: path.to_owned(),
            error,
        };
        self.problems.extend(untold.into_iter().map(problem));
        Ok(())
    }

    fn file_name(&self, rule: &FileRule, announcement: &Announcement) -> String {
        place::file_name(rule, announcement.number(self.environment.platform), announcement.port)
    }
}

impl Drop for DiscoveryFiles {
    fn drop(&mut self) {
        // Nobody is left to be told; the next start sweeps.
        let _ = self.remove();
    }
}

/// Removes a file if it still holds our token.
fn remove_own(path: &Path, token: &Secret) -> Result<(), DiscoveryError> {
    let is_ours =
        Document::read(path).is_some_and(|document| document.token().is_some_and(|found| token.matches(found)));
    if !is_ours {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(DiscoveryError::Remove {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tempfile::TempDir;

    use super::*;
    use crate::LastUse;
    use crate::announcement::tests::announcement;

    struct Fixture {
        home: TempDir,
        temporary: TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
                temporary: tempfile::tempdir().unwrap(),
            }
        }

        fn environment(&self) -> Environment {
            Environment::new(self.home.path(), "/").with("TMPDIR", self.temporary.path().to_str().unwrap())
        }

        fn lock(&self) -> PathBuf {
            self.home.path().join(".qwen/ide/4321.lock")
        }
    }

    /// Difference 1: the specification's place for Qwen Code is never read; the lock in its home is.
    /// Difference 3: nobody finds a file by the process id in its name; the editor's is there all the same.
    #[test]
    fn every_dialects_files_are_where_it_looks() {
        let scene = Fixture::new();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        let pid = std::process::id();
        let expected = [
            scene
                .temporary
                .path()
                .join(format!("gemini/ide/gemini-ide-server-{pid}-4321.json")),
            scene.lock(),
            scene
                .temporary
                .path()
                .join(format!("qwen/ide/qwen-code-ide-server-{pid}-4321.json")),
        ];
        assert_eq!(files.paths().collect::<Vec<_>>(), expected);
        assert_eq!(files.paths().count(), place::rules().count());
        assert_eq!(files.directories().len(), 3);
        assert!(files.problems().is_empty());
        assert!(files.missing().is_empty());
    }

    /// Difference 22: Gemini CLI never sweeps, so a file must not outlive its companion.
    #[test]
    fn the_files_go_with_the_guard() {
        let scene = Fixture::new();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        let paths: Vec<PathBuf> = files.paths().map(Path::to_path_buf).collect();
        assert!(paths.iter().all(|path| path.exists()));
        drop(files);
        assert!(!paths.iter().any(|path| path.exists()));
    }

    #[test]
    fn a_file_that_another_companion_put_in_our_place_is_left_alone() {
        let scene = Fixture::new();
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        fs::write(scene.lock(), r#"{"port":4321,"authToken":"somebody else's"}"#).unwrap();
        files.remove().unwrap();
        assert!(scene.lock().exists());
        assert_eq!(files.paths().count(), 0);
    }

    #[test]
    fn a_deleted_file_is_missed_and_written_again() {
        let scene = Fixture::new();
        let announcement = announcement(&[Path::new("/a")]);
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        fs::remove_file(scene.lock()).unwrap();
        assert_eq!(files.missing(), [scene.lock()]);
        files.rewrite(&announcement).unwrap();
        assert!(files.missing().is_empty());
        assert!(scene.lock().exists());
    }

    #[test]
    fn rewriting_tells_the_new_folders_and_leaves_the_time_of_the_last_use() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        announcement.last_use = LastUse::of_editor(long_ago);
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        announcement.workspace.push(PathBuf::from("/b"));
        files.rewrite(&announcement).unwrap();
        assert!(
            fs::read_to_string(scene.lock())
                .unwrap()
                .contains(r#""workspacePath":"/a:/b""#)
        );
        let modified = || fs::metadata(scene.lock()).unwrap().modified().unwrap();
        assert_eq!(modified(), long_ago);
        announcement.last_use = LastUse::of_editor(SystemTime::now());
        files.rewrite(&announcement).unwrap();
        assert!(modified() > long_ago);
    }

    #[test]
    fn a_new_port_leaves_no_file_of_the_old_one() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        announcement.port = 4322;
        announcement.token = Secret::from_bytes([8; 32]);
        files.rewrite(&announcement).unwrap();
        assert!(!scene.lock().exists());
        assert!(files.missing().is_empty());
        assert_eq!(files.paths().count(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn one_unusable_directory_is_reported_and_the_others_are_written() {
        let scene = Fixture::new();
        std::os::unix::fs::symlink("/", scene.temporary.path().join("gemini")).unwrap();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        assert_eq!(files.paths().count(), 2);
        let [problem] = files.problems() else {
            panic!("{:?}", files.problems())
        };
        assert_eq!(problem.agent, AgentKind::Gemini);
        assert!(problem.to_string().contains("symbolic link"), "{problem}");
    }

    #[cfg(unix)]
    #[test]
    fn it_is_an_error_when_nothing_can_be_written() {
        let scene = Fixture::new();
        for directory in ["gemini", "qwen"] {
            fs::create_dir(scene.temporary.path().join(directory)).unwrap();
        }
        fs::create_dir_all(scene.home.path().join(".qwen/ide")).unwrap();
        let environment = scene.environment();
        let stranger = Environment {
            uid: environment.uid.map(|uid| uid + 1),
            ..environment
        };
        let error = DiscoveryFiles::write(&stranger, &announcement(&[Path::new("/a")])).unwrap_err();
        assert!(error.to_string().contains("belongs to user"), "{error}");
    }

    #[test]
    fn a_folder_that_one_agent_cannot_be_told_is_a_problem_of_that_agent() {
        let scene = Fixture::new();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a:b")])).unwrap();
        assert_eq!(files.paths().count(), 3);
        let [problem] = files.problems() else {
            panic!("{:?}", files.problems())
        };
        assert_eq!(problem.agent, AgentKind::Gemini);
        assert!(
            fs::read_to_string(scene.lock())
                .unwrap()
                .contains(r#""workspacePath":"[\"/a:b\"]""#)
        );
    }

    #[test]
    fn nothing_that_is_printed_holds_the_token() {
        let scene = Fixture::new();
        let announcement = announcement(&[Path::new("/a")]);
        let files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        let printed = format!("{files:?} {announcement:?}");
        assert!(!printed.contains(announcement.token.reveal()));
    }
}
