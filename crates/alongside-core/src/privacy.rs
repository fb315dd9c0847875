//! Which files are hidden from agents.
//!
//! Three sources, all in `.gitignore` syntax: the built-in patterns for secrets, the globs in the settings, and the workspace's ignore
//! files for its agents. The built-in patterns cannot be overridden.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use alongside_platform::{Platform, path};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Files that contain secrets, judging by their names; one pattern per line.
pub const SECRETS: &str = include_str!("secrets.gitignore");

/// [`SECRETS`], compiled when the first file is checked and then shared, because a companion without open files does not
/// need it.
///
/// The patterns are lower case and match lower-case paths. Patterns that ignore case would all be compiled to regular
/// expressions, while most of these are looked up by name or extension.
static BUILT_IN: LazyLock<Gitignore> = LazyLock::new(|| {
    let mut builder = GitignoreBuilder::new("");
    for pattern in SECRETS.lines() {
        // The patterns are our own, and a test counts them.
        let _ = builder.add_line(None, pattern);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
});

/// The answers that are kept: more than open files have paths.
const MAX_KNOWN: usize = 4000;

/// Decides which files are hidden.
#[derive(Debug, Default)]
pub struct Privacy {
    configured: Vec<Source>,
    /// Every move of the cursor asks again about all files that agents see. By their text: a path is hashed and compared part by part.
    known: RefCell<HashMap<OsString, Option<Rule>>>,
    platform: Platform,
}

#[derive(Debug)]
struct Source {
    origin: String,
    /// Patterns apply below this directory; `None`: everywhere.
    root: Option<PathBuf>,
    patterns: Gitignore,
}

/// The rule that hid a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The pattern that matched.
    pub pattern: String,
    /// Where it was written.
    pub origin: String,
}

/// An invalid pattern.
#[derive(Debug, Error)]
#[error("invalid pattern `{pattern}` in {origin}: {reason}")]
pub struct PatternError {
    pub pattern: String,
    /// Where it was written.
    pub origin: String,
    pub reason: String,
}

impl Privacy {
    /// Hides what `patterns` match: below `root`, or everywhere. `origin` says where they were written.
    ///
    /// Invalid patterns are returned; the others apply.
    pub fn hide<'a>(
        &mut self,
        origin: &str,
        root: Option<&Path>,
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Vec<PatternError> {
        let refuse = |pattern: &str, error: ignore::Error| PatternError {
            pattern: pattern.to_owned(),
            origin: origin.to_owned(),
            reason: error.to_string(),
        };
        self.known.get_mut().clear();
        let mut builder = builder();
        let mut refused: Vec<PatternError> = patterns
            .into_iter()
            .filter_map(|pattern| {
                builder
                    .add_line(None, pattern)
                    .err()
                    .map(|error| refuse(pattern, error))
            })
            .collect();
        match builder.build() {
            Ok(patterns) => {
                let root = root.map(Path::to_owned);
                self.configured.push(Source {
                    origin: origin.to_owned(),
                    root,
                    patterns,
                });
            }
            Err(error) => refused.push(refuse("all patterns together", error)),
        }
        refused
    }

    /// The rule that hides a file, given by the path it was opened with and the one with symlinks resolved.
    pub fn rule_for(&self, path: &Path, real_path: &Path) -> Option<Rule> {
        self.rule_for_name(path).or_else(|| self.rule_for_name(real_path))
    }

    fn rule_for_name(&self, path: &Path) -> Option<Rule> {
        let mut known = self.known.borrow_mut();
        if let Some(rule) = known.get(path.as_os_str()) {
            return rule.clone();
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let rule = self.find_rule(path);
        known.insert(path.as_os_str().to_owned(), rule.clone());
        rule
    }

    fn find_rule(&self, path: &Path) -> Option<Rule> {
        let lower_case = path.as_os_str().to_ascii_lowercase();
        matching(self.platform, &BUILT_IN, Path::new(&lower_case), None)
            .map(|pattern| Rule {
                pattern,
                origin: "the built-in list of secrets".to_owned(),
            })
            .or_else(|| {
                self.configured.iter().find_map(|source| {
                    let pattern = matching(self.platform, &source.patterns, path, source.root.as_deref());
                    pattern.map(|pattern| Rule {
                        pattern,
                        origin: source.origin.clone(),
                    })
                })
            })
    }
}

/// A builder without a root, so that one set serves every directory.
fn builder() -> GitignoreBuilder {
    let mut builder = GitignoreBuilder::new("");
    // `.ENV` and `ID_RSA` are the same secrets. Setting this cannot fail.
    let _ = builder.case_insensitive(true);
    builder
}

fn matching(platform: Platform, patterns: &Gitignore, path: &Path, root: Option<&Path>) -> Option<String> {
    let relative = match root {
        // A file that does not exist yet has no real path, and may be spelled in any way.
        Some(root) => Cow::Owned(path::below(platform, root, path)?),
        // The matcher needs a relative path: drop the root directory or the drive.
        None => Cow::Borrowed(path.strip_prefix("/").unwrap_or_else(|_| {
            let mut components = path.components();
            while components.as_path().has_root() && components.next().is_some() {}
            components.as_path()
        })),
    };
    match patterns.matched_path_or_any_parents(relative, false) {
        Match::Ignore(glob) => Some(glob.original().to_owned()),
        Match::None | Match::Whitelist(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(privacy: &Privacy, path: &str) -> Option<String> {
        privacy
            .rule_for(Path::new(path), Path::new(path))
            .map(|rule| rule.pattern)
    }

    #[test]
    fn every_built_in_pattern_is_understood() {
        let patterns = SECRETS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(BUILT_IN.len(), patterns.count());
    }

    #[test]
    fn built_in_patterns_are_lower_case() {
        for pattern in SECRETS.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(pattern, pattern.to_lowercase());
        }
    }

    #[test]
    fn built_in_patterns_ignore_case() {
        let privacy = Privacy::default();
        for pattern in SECRETS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            for filling in ["", "x"] {
                let name = pattern.trim_start_matches("**/").replace('*', filling);
                let name = if name.ends_with('/') { name + "a" } else { name };
                for name in [name.clone(), name.to_uppercase()] {
                    assert!(rule(&privacy, &format!("/Project/{name}")).is_some(), "{name} is shown");
                }
            }
        }
    }

    #[test]
    fn secrets_are_hidden_wherever_they_lie() {
        let privacy = Privacy::default();
        for secret in [
            "/project/.env",
            "/project/.env.local",
            "/project/deep/down/production.env",
            "/home/me/.ssh/config",
            "/home/me/.ssh/id_ed25519",
            "/home/me/.aws/credentials",
            "/project/server.PEM",
            "/project/terraform.tfstate",
        ] {
            assert!(rule(&privacy, secret).is_some(), "{secret} is shown");
        }
        for ordinary in [
            "/project/src/main.rs",
            "/project/environment.ts",
            "/project/keys.rs",
            "/project/ssh/a.rs",
        ] {
            assert_eq!(rule(&privacy, ordinary), None, "{ordinary}");
        }
    }

    #[test]
    fn configured_glob_hides_and_names_its_origin() {
        let mut privacy = Privacy::default();
        assert!(privacy.hide("config.toml", None, ["*.secret", "/private/"]).is_empty());
        let rule = privacy
            .rule_for(Path::new("/p/a.secret"), Path::new("/p/a.secret"))
            .unwrap();
        assert_eq!(
            rule,
            Rule {
                pattern: "*.secret".into(),
                origin: "config.toml".into()
            }
        );
    }

    #[test]
    fn ignore_file_applies_to_its_directory_with_negation() {
        let mut privacy = Privacy::default();
        let lines = ["# notes", "", "/build/", "*.log", "!keep.log"];
        privacy.hide(".geminiignore", Some(Path::new("/project")), lines);
        assert!(rule(&privacy, "/project/build/out.js").is_some());
        assert!(rule(&privacy, "/project/a.log").is_some());
        assert_eq!(rule(&privacy, "/project/keep.log"), None);
        assert_eq!(rule(&privacy, "/elsewhere/a.log"), None);
        assert_eq!(rule(&privacy, "/project/src/build/out.js"), None);
    }

    /// As of a file that an editor has not saved yet.
    #[test]
    fn ignore_file_applies_to_every_spelling_of_its_directory() {
        let mut privacy = Privacy {
            platform: Platform::Windows,
            ..Privacy::default()
        };
        privacy.hide(".qwenignore", Some(Path::new(r"C:\proj")), ["/notes/", "*.log"]);
        for hidden in [
            r"C:\proj\notes\new.md",
            r"c:\proj\NOTES\new.md",
            "C:/PROJ/notes/new.md",
            r"\\?\C:\proj\a\b.LOG",
        ] {
            assert!(rule(&privacy, hidden).is_some(), "{hidden} is shown");
        }
        for shown in [r"C:\proj\src\notes\a.md", r"C:\project\a.log", r"D:\proj\a.log"] {
            assert_eq!(rule(&privacy, shown), None, "{shown}");
        }
        privacy.platform = Platform::MacOs;
        privacy.hide(".qwenignore", Some(Path::new("/Users/ada/proj")), ["*.log"]);
        assert!(rule(&privacy, "/users/Ada/Proj/new.log").is_some());
    }

    #[test]
    fn an_ignore_file_cannot_show_a_secret() {
        let mut privacy = Privacy::default();
        privacy.hide(".geminiignore", Some(Path::new("/project")), ["!.env"]);
        assert!(rule(&privacy, "/project/.env").is_some());
    }

    #[test]
    fn another_rule_applies_to_a_file_that_was_checked_before() {
        let mut privacy = Privacy::default();
        assert_eq!(rule(&privacy, "/p/a.log"), None);
        privacy.hide("config.toml", None, ["*.log"]);
        assert_eq!(rule(&privacy, "/p/a.log").as_deref(), Some("*.log"));
        assert_eq!(rule(&privacy, "/p/a.log").as_deref(), Some("*.log"), "and again");
    }

    #[test]
    fn known_answers_are_bounded() {
        let privacy = Privacy::default();
        for number in 0..=MAX_KNOWN {
            assert_eq!(rule(&privacy, &format!("/p/{number}")), None);
        }
        assert!(privacy.known.borrow().len() <= MAX_KNOWN);
    }

    #[test]
    fn a_bad_pattern_is_an_error_that_names_it() {
        let mut privacy = Privacy::default();
        let errors = privacy.hide("config.toml", None, ["a{b", "*.log"]);
        assert!(errors[0].to_string().contains("`a{b` in config.toml"), "{errors:?}");
        assert!(rule(&privacy, "/a.log").is_some(), "the others count");
    }
}
