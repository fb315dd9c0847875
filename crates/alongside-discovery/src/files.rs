//! A running companion's discovery files, removed when their guard is dropped.
//!
//! Gemini CLI never removes a file, and one that outlives its companion can hide the next companion; so a file
//! exists only as long as the [`DiscoveryFiles`] that wrote it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alongside_core::Secret;
use alongside_core::dialect::{AgentKind, DocumentKind, FileName, FileRule};
use alongside_platform::unless_held;

use crate::directory::PrivateDirectory;
use crate::document::Document;
use crate::{AnnounceError, Announcement, DiscoveryError, Environment, place};

/// Prefix of temporary file names. No agent's pattern matches it.
pub(crate) const TEMPORARY_PREFIX: &str = ".alongside-";

pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// The discovery files of all dialects, removed on drop.
#[derive(Debug)]
pub struct DiscoveryFiles {
    environment: Environment,
    token: Secret,
    written: Vec<(AgentKind, PathBuf)>,
    problems: Vec<AnnounceError>,
}

impl DiscoveryFiles {
    /// Writes every dialect's files. Call this once the port is open.
    ///
    /// A file that cannot be written is a [problem](Self::problems) and does not stop the others; it is an error only
    /// if none can be written.
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

    /// Rewrites all files: after the workspace folders changed, after a file was [deleted](Self::missing), or after
    /// another companion became the most recently used one.
    pub fn rewrite(&mut self, announcement: &Announcement) -> Result<(), DiscoveryError> {
        let before = std::mem::take(&mut self.written);
        let old_token = std::mem::replace(&mut self.token, announcement.token.clone());
        self.problems.clear();
        for (agent, rule) in place::rules() {
            let path = place::directory(&self.environment, rule).join(self.file_name(rule, announcement));
            let is_written = self.paths().any(|written| written == path);
            let has_no_socket = rule.document == DocumentKind::Socket && announcement.socket.is_none();
            if is_written || has_no_socket || rule.is_exclusive && !announcement.is_first {
                continue;
            }
            match self.write_one(announcement, agent, rule, &path) {
                Ok(()) => self.written.push((agent, path)),
                Err(error) => self.problems.push(AnnounceError { agent, path, error }),
            }
        }
        for (agent, path) in before {
            // A file that could not be rewritten is stale, which is worse than none.
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

    /// The directories containing the files, without duplicates, for watching.
    pub fn directories(&self) -> BTreeSet<&Path> {
        self.paths().filter_map(Path::parent).collect()
    }

    /// The files that have since been deleted.
    pub fn missing(&self) -> Vec<&Path> {
        let gone =
            |path: &&Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        self.paths().filter(gone).collect()
    }

    /// Problems from the last write.
    pub fn problems(&self) -> &[AnnounceError] {
        &self.problems
    }

    /// Removes the files, except those replaced by another companion since. Idempotent.
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
        let (contents, untold) = announcement.contents(&self.environment, rule);
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
        let number = match rule.name {
            FileName::ProcessLock => u64::from(self.environment.pid),
            FileName::PrefixPidPort(_) | FileName::PortLock => announcement.number(rule, self.environment.platform),
        };
        place::file_name(rule, number, announcement.port)
    }
}

impl Drop for DiscoveryFiles {
    fn drop(&mut self) {
        // There is no way to report an error here; the next start sweeps.
        let _ = self.remove();
    }
}

/// Removes a file if it still contains our token. If it cannot be read, it may.
fn remove_own(path: &Path, token: &Secret) -> Result<(), DiscoveryError> {
    let failed = |source| DiscoveryError::Remove {
        path: path.to_owned(),
        source,
    };
    let document = unless_held(|| Document::try_read(path)).map_err(failed)?;
    let is_ours = document.is_some_and(|document| document.token().is_some_and(|found| token.matches(found)));
    if !is_ours {
        return Ok(());
    }
    match unless_held(|| fs::remove_file(path)) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed(source)),
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

        fn claude_lock(&self) -> PathBuf {
            self.home.path().join(".claude/ide/4321.lock")
        }

        fn lock(&self) -> PathBuf {
            self.home.path().join(".qwen/ide/4321.lock")
        }
    }

    /// Difference 1: the specification's location for Qwen Code is never read; the lock file in its home is.
    /// Difference 3: no agent finds a file by the PID in its name; the editor's PID is there anyway.
    #[test]
    fn files_are_written_where_each_agent_looks() {
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
            scene.claude_lock(),
        ];
        assert_eq!(files.paths().collect::<Vec<_>>(), expected);
        assert_eq!(files.directories().len(), 4);
        assert!(files.problems().is_empty());
        assert!(files.missing().is_empty());
    }

    /// Difference 25: only a file that an agent sorts may have another number than the editor's PID in its name.
    #[test]
    fn qwens_file_always_has_the_editors_pid() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.sorts_by_pid = false;
        let files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        let pid = announcement.pid;
        let has = |name: &str| files.paths().any(|path| path.ends_with(name));
        assert!(has(&format!("qwen-code-ide-server-{pid}-4321.json")), "{files:?}");
        let number = announcement.last_use.as_dead_process();
        assert!(has(&format!("gemini-ide-server-{number}-4321.json")), "{files:?}");
    }

    /// Difference 22: Gemini CLI never removes files, so a file must not outlive its companion.
    #[test]
    fn files_are_removed_on_drop() {
        let scene = Fixture::new();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        let paths: Vec<PathBuf> = files.paths().map(Path::to_path_buf).collect();
        assert!(paths.iter().all(|path| path.exists()));
        drop(files);
        assert!(!paths.iter().any(|path| path.exists()));
    }

    #[test]
    fn file_replaced_by_another_companion_is_left_alone() {
        let scene = Fixture::new();
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        fs::write(scene.lock(), r#"{"port":4321,"authToken":"somebody else's"}"#).unwrap();
        files.remove().unwrap();
        assert!(scene.lock().exists());
        assert_eq!(files.paths().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn file_that_cannot_be_read_is_reported_and_the_others_are_removed() {
        let scene = Fixture::new();
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        // Root may read any file, but not a symlink to itself.
        fs::remove_file(scene.lock()).unwrap();
        std::os::unix::fs::symlink(scene.lock(), scene.lock()).unwrap();
        let error = files.remove().unwrap_err().to_string();
        assert!(
            error.contains(&format!("cannot remove {}", scene.lock().display())),
            "{error}"
        );
        assert!(!scene.claude_lock().exists());
    }

    #[test]
    fn deleted_file_is_detected_and_rewritten() {
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
    fn rewrite_updates_folders_and_keeps_last_use() {
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
    fn new_port_removes_old_file() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        announcement.port = 4322;
        announcement.token = Secret::from_bytes([8; 32]);
        files.rewrite(&announcement).unwrap();
        assert!(!scene.lock().exists());
        assert!(files.missing().is_empty());
        assert_eq!(files.paths().count(), 4);
    }

    /// C3: Claude Code connects to none of two companions for one directory, so only one of ours has a lock.
    #[test]
    fn only_the_first_companion_has_a_lock_for_claude() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.is_first = false;
        let mut files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        assert!(!scene.claude_lock().exists());
        assert_eq!(files.paths().count(), 3, "the others are written");
        announcement.is_first = true;
        files.rewrite(&announcement).unwrap();
        assert!(scene.claude_lock().exists());
        // Another companion is used.
        announcement.is_first = false;
        files.rewrite(&announcement).unwrap();
        assert!(!scene.claude_lock().exists());
    }

    /// P9: removing Copilot CLI's lock would disconnect it.
    #[test]
    fn every_companion_has_a_lock_for_copilot() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.socket = Some(PathBuf::from("/s"));
        announcement.is_first = false;
        let files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        let name = format!("alongside-{}-4321.lock", std::process::id());
        assert!(
            files
                .paths()
                .any(|path| path.ends_with(Path::new(".copilot/ide").join(&name))),
            "{files:?}"
        );
    }

    #[test]
    fn lock_of_another_program_is_left_alone() {
        let scene = Fixture::new();
        let foreign = scene.home.path().join(".claude/ide/9.lock");
        fs::create_dir_all(foreign.parent().unwrap()).unwrap();
        let contents =
            r#"{"pid":1,"workspaceFolders":["/a"],"ideName":"VS Code","transport":"ws","authToken":"theirs"}"#;
        fs::write(&foreign, contents).unwrap();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        crate::sweep(&scene.environment(), |_| true);
        drop(files);
        assert_eq!(fs::read_to_string(foreign).unwrap(), contents);
    }

    /// C1: Claude Code reads `CLAUDE_CONFIG_DIR`; opencode does not.
    #[test]
    fn configured_directory_of_claude_gets_a_second_lock() {
        let scene = Fixture::new();
        let configured = scene.home.path().join("configured");
        let environment = scene
            .environment()
            .with("CLAUDE_CONFIG_DIR", configured.to_str().unwrap());
        let files = DiscoveryFiles::write(&environment, &announcement(&[Path::new("/a")])).unwrap();
        let lock = configured.join("ide/4321.lock");
        assert!(lock.exists() && scene.claude_lock().exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;

            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&lock), mode(lock.parent().unwrap())), (0o600, 0o700));
        }
        drop(files);
        assert!(!lock.exists() && !scene.claude_lock().exists());
    }

    #[cfg(unix)]
    #[test]
    fn unusable_directory_is_reported_and_others_are_written() {
        let scene = Fixture::new();
        std::os::unix::fs::symlink("/", scene.temporary.path().join("gemini")).unwrap();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a")])).unwrap();
        assert_eq!(files.paths().count(), 3);
        let [problem] = files.problems() else {
            panic!("{:?}", files.problems())
        };
        assert_eq!(problem.agent, AgentKind::Gemini);
        assert!(problem.to_string().contains("planted symlink"), "{problem}");
    }

    #[cfg(unix)]
    #[test]
    fn error_when_no_file_can_be_written() {
        let scene = Fixture::new();
        for directory in ["gemini", "qwen"] {
            fs::create_dir(scene.temporary.path().join(directory)).unwrap();
        }
        for directory in [".qwen/ide", ".claude/ide"] {
            fs::create_dir_all(scene.home.path().join(directory)).unwrap();
        }
        let environment = scene.environment();
        let stranger = Environment {
            uid: environment.uid.map(|uid| uid + 1),
            ..environment
        };
        let error = DiscoveryFiles::write(&stranger, &announcement(&[Path::new("/a")])).unwrap_err();
        assert!(error.to_string().contains("belongs to user"), "{error}");
    }

    #[test]
    fn unsupported_folder_is_a_problem_of_one_agent() {
        let scene = Fixture::new();
        let files = DiscoveryFiles::write(&scene.environment(), &announcement(&[Path::new("/a:b")])).unwrap();
        assert_eq!(files.paths().count(), 4);
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
    fn debug_output_hides_the_token() {
        let scene = Fixture::new();
        let announcement = announcement(&[Path::new("/a")]);
        let files = DiscoveryFiles::write(&scene.environment(), &announcement).unwrap();
        let printed = format!("{files:?} {announcement:?}");
        assert!(!printed.contains(announcement.token.reveal()));
    }
}
