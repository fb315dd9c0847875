//! Whether a workspace contains the directory an agent was started in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alongside_core::dialect::McpAgent;
use serde::Serialize;

use crate::document::WorkspacePath;
use crate::{Environment, Platform, node_path};

/// How a workspace relates to the working directory, as an agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkspaceMatch {
    Contains,
    /// The working directory is outside these folders.
    Outside(Vec<PathBuf>),
    /// There is no `workspacePath`.
    Missing,
    /// `workspacePath` is empty: no folder is open in the editor.
    Empty,
    /// The agent's own code throws: it is not a string, or it contains a path that cannot be resolved.
    Fails,
}

/// An agent's working directory and its matching rules.
pub(super) struct Validator<'a> {
    pub(super) agent: McpAgent,
    pub(super) environment: &'a Environment,
    pub(super) working_directory: &'a Path,
}

impl Validator<'_> {
    /// Compares a file's workspace with the working directory.
    pub(super) fn compare(&self, workspace: &WorkspacePath) -> WorkspaceMatch {
        match workspace {
            WorkspacePath::Missing => WorkspaceMatch::Missing,
            WorkspacePath::Text(text) => self.compare_text(text),
            WorkspacePath::Other => WorkspaceMatch::Fails,
        }
    }

    /// Compares a folder list with the working directory.
    pub(super) fn compare_text(&self, text: &str) -> WorkspaceMatch {
        if text.is_empty() {
            return WorkspaceMatch::Empty;
        }
        match self.agent {
            McpAgent::Gemini => self.compare_as_gemini(text).unwrap_or(WorkspaceMatch::Fails),
            McpAgent::Qwen => self.compare_as_qwen(text),
        }
    }

    fn compare_as_gemini(&self, text: &str) -> io::Result<WorkspaceMatch> {
        let segments = text.split(self.environment.platform.path_delimiter());
        let roots: Vec<PathBuf> = segments
            .map(|segment| self.gemini_path(segment))
            .collect::<io::Result<_>>()?;
        let here = self.gemini_path(&self.working_directory.to_string_lossy())?;
        let fold_case = self.environment.platform != Platform::Unix;
        let contains = roots.iter().any(|root| node_path::is_within(root, &here, fold_case));
        Ok(if contains {
            WorkspaceMatch::Contains
        } else {
            WorkspaceMatch::Outside(roots)
        })
    }

    /// A path as Gemini CLI interprets it: percent escapes are decoded, symlinks resolved, missing parts kept as they
    /// are. An empty path is the working directory.
    fn gemini_path(&self, text: &str) -> io::Result<PathBuf> {
        if text.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // On Unix, `file://` does not survive splitting at colons.
        let text = text.strip_prefix("file:///").unwrap_or(text);
        let decoded = node_path::decode_percent(text);
        let path = decoded.as_deref().unwrap_or(text);
        // It removes the prefix of such paths.
        let path = &*alongside_platform::path::spelled(self.environment.platform, path);
        robust_real_path(&node_path::resolve(self.working_directory, Path::new(path)), 0)
    }

    fn compare_as_qwen(&self, text: &str) -> WorkspaceMatch {
        let roots = self.qwen_roots(text);
        let here = self.qwen_path(self.working_directory);
        let fold_case = self.environment.platform == Platform::Windows;
        let is_root = |root: &PathBuf| node_path::is_within(&self.qwen_path(root), &here, fold_case);
        if roots.iter().any(is_root) {
            WorkspaceMatch::Contains
        } else {
            WorkspaceMatch::Outside(roots)
        }
    }

    /// The folders of a list or a JSON array; empty and relative ones are dropped.
    fn qwen_roots(&self, text: &str) -> Vec<PathBuf> {
        let array = Some(text).filter(|text| text.trim_start().starts_with('['));
        let array: Option<Vec<String>> = array.and_then(|text| serde_json::from_str(text).ok());
        let roots = array.unwrap_or_else(|| {
            let segments = text.split(self.environment.platform.path_delimiter());
            segments.map(str::to_owned).collect()
        });
        roots
            .into_iter()
            .map(PathBuf::from)
            .filter(|root| root.is_absolute())
            .collect()
    }

    /// A path with its symlinks resolved and otherwise spelled as it is: on Windows, `\\\\?\\C:\\a` stays another directory than `C:\\a`. A
    /// missing path is kept as written.
    fn qwen_path(&self, path: &Path) -> PathBuf {
        node_path::real_path(path).unwrap_or_else(|_| node_path::resolve(self.working_directory, path))
    }
}

/// The real path of the existing part, followed by the rest as written.
fn robust_real_path(path: &Path, depth: usize) -> io::Result<PathBuf> {
    let error = match alongside_platform::path::real(path) {
        Ok(real) => return Ok(real),
        Err(error) => error,
    };
    let is_missing = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidFilename
    );
    if !is_missing || depth > 40 {
        return Err(error);
    }
    let Some((parent, name)) = path.parent().zip(path.file_name()) else {
        return Ok(path.to_owned());
    };
    if let Ok(target) = fs::read_link(path) {
        return robust_real_path(&node_path::resolve(parent, &target), depth + 1);
    }
    Ok(robust_real_path(parent, depth)?.join(name))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A scratch directory with `project/src` in it.
    struct Fixture(TempDir);

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir_all(directory.path().join("project/src")).unwrap();
            Self(directory)
        }

        fn path(&self, below: &str) -> String {
            // The directory itself may be behind a symlink, as on macOS.
            let real = alongside_platform::path::real(self.0.path()).unwrap();
            real.join(below).to_str().unwrap().to_owned()
        }

        fn ask(&self, agent: McpAgent, workspace: &str, here: &str) -> WorkspaceMatch {
            self.ask_on(Platform::Unix, agent, workspace, here)
        }

        fn ask_on(&self, platform: Platform, agent: McpAgent, workspace: &str, here: &str) -> WorkspaceMatch {
            let environment = Environment {
                platform,
                ..Environment::new("/home/ada", "/")
            };
            let here = self.path(here);
            let validator = Validator {
                agent,
                environment: &environment,
                working_directory: Path::new(&here),
            };
            validator.compare_text(workspace)
        }

        fn both_contain(&self, workspace: &str, here: &str) -> [bool; 2] {
            let contains = |agent| self.ask(agent, workspace, here) == WorkspaceMatch::Contains;
            [contains(McpAgent::Gemini), contains(McpAgent::Qwen)]
        }
    }

    #[test]
    fn missing_empty_and_non_string_workspaces_differ() {
        let scene = Fixture::new();
        let environment = Environment::new("/home/ada", "/");
        for agent in [McpAgent::Gemini, McpAgent::Qwen] {
            assert_eq!(scene.ask(agent, "", "project"), WorkspaceMatch::Empty);
            let validator = Validator {
                agent,
                environment: &environment,
                working_directory: Path::new("/"),
            };
            assert_eq!(validator.compare(&WorkspacePath::Missing), WorkspaceMatch::Missing);
            assert_eq!(validator.compare(&WorkspacePath::Other), WorkspaceMatch::Fails);
        }
    }

    #[test]
    fn folder_list_is_split_at_delimiter() {
        let scene = Fixture::new();
        let list = format!("/elsewhere:{}", scene.path("project"));
        assert_eq!(scene.both_contain(&list, "project/src"), [true, true]);
        assert_eq!(scene.both_contain("/elsewhere:/nowhere", "project"), [false, false]);
    }

    #[test]
    fn only_qwen_reads_a_json_array() {
        let scene = Fixture::new();
        let array = format!(" [\"/a:b\", \"relative\", {:?}]", scene.path("project"));
        assert_eq!(scene.both_contain(&array, "project"), [false, true]);
        let broken = format!("[1]:{}", scene.path("project"));
        assert_eq!(scene.both_contain(&broken, "project"), [true, true]);
    }

    #[test]
    fn trailing_slash_is_ignored() {
        let scene = Fixture::new();
        assert_eq!(scene.both_contain(&scene.path("project/"), "project"), [true, true]);
    }

    #[test]
    fn symlinks_are_resolved_on_both_sides() {
        let scene = Fixture::new();
        symlink(scene.path("project"), scene.path("link")).unwrap();
        assert_eq!(scene.both_contain(&scene.path("link"), "project/src"), [true, true]);
        assert_eq!(scene.both_contain(&scene.path("project"), "link/src"), [true, true]);
    }

    #[test]
    fn gemini_accepts_missing_path_tail() {
        let scene = Fixture::new();
        symlink(scene.path("project"), scene.path("link")).unwrap();
        assert_eq!(
            scene.both_contain(&scene.path("link/new"), "project/new/src"),
            [true, false]
        );
    }

    #[test]
    fn only_gemini_decodes_percent_escapes() {
        let scene = Fixture::new();
        fs::create_dir(scene.path("a b")).unwrap();
        fs::create_dir(scene.path("a%20c")).unwrap();
        assert_eq!(scene.both_contain(&scene.path("a%20b"), "a b"), [true, false]);
        assert_eq!(scene.both_contain(&scene.path("a%20c"), "a%20c"), [true, true]);
        assert_eq!(
            scene.both_contain(&format!("file://{}", scene.path("project")), "project"),
            [true, true]
        );
    }

    /// Difference 18: an empty segment matches everything in Gemini CLI; Qwen Code drops empty and relative ones.
    #[test]
    fn empty_segment_matches_everything_in_gemini_only() {
        let scene = Fixture::new();
        assert_eq!(scene.both_contain("/elsewhere:", "project"), [true, false]);
        assert_eq!(scene.both_contain("/elsewhere:.", "project"), [true, false]);
    }

    #[test]
    fn case_matters_on_linux_but_not_for_gemini_on_macos() {
        let scene = Fixture::new();
        let upper = scene.path("PROJECT");
        assert_eq!(scene.both_contain(&upper, "project"), [false, false]);
        let on_macos = |agent| scene.ask_on(Platform::MacOs, agent, &upper, "project");
        assert_eq!(on_macos(McpAgent::Gemini), WorkspaceMatch::Contains);
        assert!(matches!(on_macos(McpAgent::Qwen), WorkspaceMatch::Outside(_)));
    }

    #[test]
    fn parent_of_folder_is_outside() {
        let scene = Fixture::new();
        let roots = vec![PathBuf::from(scene.path("project/src"))];
        for agent in [McpAgent::Gemini, McpAgent::Qwen] {
            let found = scene.ask(agent, &scene.path("project/src"), "project");
            assert_eq!(found, WorkspaceMatch::Outside(roots.clone()));
        }
    }

    #[test]
    fn windows_spelling_of_same_folder_is_outside() {
        let scene = Fixture::new();
        assert_eq!(scene.both_contain("\\\\wsl$\\Debian\\home", "project"), [false, false]);
    }
}
