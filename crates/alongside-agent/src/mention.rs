//! File search for mentions in a prompt: from part of a path to the files it may mean.
//!
//! Ignored files (`.gitignore`, `.ignore`, and the agents' own ignore files) are not found, nor is anything in `.git`.

use std::path::{Component, Path};
use std::time::{Duration, Instant};

use alongside_protocol::chat::ContentBlock;
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;

pub(crate) const MAX_RESULTS: usize = 100;

/// In a larger workspace, a longer query helps.
const MAX_FILES_SCANNED: usize = 100_000;

const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_QUERY_LEN: usize = 500;

/// The agents' ignore files, in addition to Git's.
const IGNORE_FILES: [&str; 2] = [".qwenignore", ".geminiignore"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// Part of a path.
    Typed(String),
    /// A glob for the whole path.
    Pattern(String),
}

impl Query {
    /// Text without glob characters is part of a path, and so is `**/*part*`; anything else is a glob.
    pub(crate) fn read(text: &str) -> Self {
        let text: String = text.trim().chars().take(MAX_QUERY_LEN).collect();
        let text = text.trim_start_matches("./").to_owned();
        let plain = |text: &str| !text.contains(['*', '?', '[', ']', '{', '}', '\\', '!']);
        let inner = text.strip_prefix("**/*").and_then(|rest| rest.strip_suffix('*'));
        match inner {
            _ if plain(&text) => Self::Typed(text),
            // Here the prefix and the suffix overlap.
            None if text == "**/*" => Self::Typed(String::new()),
            Some(inner) if plain(inner) => Self::Typed(inner.to_owned()),
            _ => Self::Pattern(text),
        }
    }

    /// The query as a glob, for a daemon. Its globs are case-sensitive, so each letter matches both cases.
    pub(crate) fn to_pattern(&self) -> String {
        let typed = match self {
            Self::Pattern(pattern) => return pattern.clone(),
            Self::Typed(typed) => typed,
        };
        let mut pattern = "**/*".to_owned();
        for character in typed.trim_start_matches('/').chars() {
            let (small, capital) = (character.to_ascii_lowercase(), character.to_ascii_uppercase());
            if small == capital {
                pattern.push(character);
            } else {
                pattern.extend(['[', small, capital, ']']);
            }
        }
        if !typed.is_empty() {
            pattern.push('*');
        }
        pattern
    }

    /// The best matches, best first.
    pub(crate) fn rank(&self, paths: impl IntoIterator<Item = String>) -> Vec<String> {
        let typed = match self {
            Self::Typed(typed) => typed.to_lowercase(),
            Self::Pattern(_) => String::new(),
        };
        let mut ranked: Vec<(Rank, String)> = paths
            .into_iter()
            .filter_map(|path| Some((Rank::of(&path, &typed)?, path)))
            .collect();
        ranked.sort_unstable();
        ranked.truncate(MAX_RESULTS);
        ranked.into_iter().map(|(_, path)| path).collect()
    }
}

/// How well a path matches; less is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    fit: Fit,
    depth: usize,
    length: usize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is the file name, with or without its extension.
    Name,
    NameBegins,
    PathBegins,
    InName,
    InPath,
    /// The letters occur in this order.
    Scattered,
}

impl Rank {
    /// `None` if the path does not match. `typed` is lowercase.
    fn of(path: &str, typed: &str) -> Option<Self> {
        let small = path.to_lowercase();
        let name = small.rsplit('/').next().unwrap_or(&small);
        let fit = if name == typed || name.rsplit_once('.').is_some_and(|(stem, _)| stem == typed) {
            Fit::Name
        } else if name.starts_with(typed) {
            Fit::NameBegins
        } else if small.starts_with(typed) {
            Fit::PathBegins
        } else if name.contains(typed) {
            Fit::InName
        } else if small.contains(typed) {
            Fit::InPath
        } else if is_scattered(&small, typed) {
            Fit::Scattered
        } else {
            return None;
        };
        Some(Self {
            fit,
            depth: path.matches('/').count(),
            length: path.len(),
        })
    }
}

fn is_scattered(text: &str, typed: &str) -> bool {
    let mut rest = text.chars();
    typed.chars().all(|wanted| rest.any(|character| character == wanted))
}

/// Finds files in a directory, and returns their paths relative to it, best first. Blocks: it reads directories.
pub(crate) fn find(root: &Path, query: &Query) -> Result<Vec<String>, ignore::Error> {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git");
    for name in IGNORE_FILES {
        walk.add_custom_ignore_filename(name);
    }
    let mut wanted = OverrideBuilder::new(root);
    wanted.case_insensitive(true)?;
    if let Query::Pattern(pattern) = query {
        // A leading `!` would negate it.
        wanted.add(pattern.trim_start_matches('!'))?;
    }
    // Not an override of the walk: that would take precedence over ignore files.
    let wanted = wanted.build()?;
    let until = Instant::now() + SEARCH_TIMEOUT;
    let files = walk.build().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files
        .take(MAX_FILES_SCANNED)
        .take_while(|_| Instant::now() < until)
        .filter(|entry| wanted.is_empty() || wanted.matched(entry.path(), false).is_whitelist())
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(root).ok()?.to_str()?;
            Some(path.replace(std::path::MAIN_SEPARATOR, "/"))
        });
    Ok(query.rank(paths))
}

/// The mentions of one prompt that become links.
const MAX_LINKS: usize = 32;

/// Replaces mentions (`@src/main.rs`) of existing files by links: ACP agents read the files that a prompt links to, but not those that
/// its text mentions. Looks at the disk.
pub(crate) fn link_mentions(blocks: Vec<ContentBlock>, workspace: &Path) -> Vec<ContentBlock> {
    let mut links = 0;
    let mut linked = Vec::with_capacity(blocks.len());
    for block in blocks {
        let ContentBlock::Text(text) = block else {
            linked.push(block);
            continue;
        };
        let mut rest = text.as_str();
        let mut from = 0;
        while let Some(at) = rest[from..].find('@').map(|at| from + at) {
            let found = if links < MAX_LINKS && rest[..at].chars().next_back().is_none_or(char::is_whitespace) {
                mentioned_file(&rest[at + 1..], workspace)
            } else {
                None
            };
            let Some((length, path)) = found else {
                from = at + 1;
                continue;
            };
            links += 1;
            if at > 0 {
                linked.push(ContentBlock::text(&rest[..at]));
            }
            linked.push(link(&path, workspace));
            rest = &rest[at + 1 + length..];
            from = 0;
        }
        if !rest.is_empty() {
            linked.push(ContentBlock::text(rest));
        }
    }
    linked
}

/// The file that a text begins with, and how much of the text that is. Spaces in it are escaped.
fn mentioned_file(text: &str, workspace: &Path) -> Option<(usize, String)> {
    let mut end = text.len();
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        if character.is_whitespace() && !escaped {
            end = index;
            break;
        }
        escaped = character == '\\' && !escaped;
    }
    // The end of a sentence is not part of the path.
    let word = &text[..end];
    let shorter = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
    [word, shorter].into_iter().find_map(|word| {
        let path = word.replace("\\ ", " ");
        let is_inside = Path::new(&path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        (!path.is_empty() && is_inside && workspace.join(&path).is_file()).then_some((word.len(), path))
    })
}

fn link(path: &str, workspace: &Path) -> ContentBlock {
    // Not encoded: Gemini CLI and Qwen Code use what follows the scheme as a path.
    ContentBlock::ResourceLink {
        name: path.to_owned(),
        uri: format!("file://{}", workspace.join(path).display()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn typed(text: &str) -> Query {
        Query::Typed(text.to_owned())
    }

    #[test]
    fn partial_path_and_glob_are_distinguished() {
        assert_eq!(Query::read(" src/ma "), typed("src/ma"));
        assert_eq!(Query::read("**/*src/ma*"), typed("src/ma"));
        assert_eq!(Query::read("./src"), typed("src"));
        assert_eq!(Query::read("**/**"), typed(""));
        assert_eq!(Query::read("**/*"), typed(""));
        assert_eq!(Query::read("src/*.rs"), Query::Pattern("src/*.rs".to_owned()));
        assert_eq!(Query::read(&"x".repeat(10_000)), typed(&"x".repeat(MAX_QUERY_LEN)));
    }

    #[test]
    fn glob_for_a_daemon_matches_both_cases() {
        assert_eq!(typed("Ma_1").to_pattern(), "**/*[mM][aA]_1*");
        assert_eq!(typed("").to_pattern(), "**/*");
        assert_eq!(typed("/a").to_pattern(), "**/*[aA]*");
        assert_eq!(Query::read("*.md").to_pattern(), "*.md");
    }

    #[test]
    fn best_match_comes_first() {
        let paths = [
            "web/src/domain.ts",
            "docs/maintenance/index.md",
            "src/main.rs",
            "main/lib.rs",
            "deep/er/main.rs",
            "m/a/i/n.txt",
            "src/main_loop.rs",
            "README.md",
        ];
        let ranked = typed("Main").rank(paths.map(str::to_owned));
        let expected = [
            "src/main.rs",
            "deep/er/main.rs",
            "src/main_loop.rs",
            "main/lib.rs",
            "web/src/domain.ts",
            "docs/maintenance/index.md",
            "m/a/i/n.txt",
        ];
        assert_eq!(ranked, expected);
        assert_eq!(
            typed("").rank((0..1000).map(|number| number.to_string())).len(),
            MAX_RESULTS
        );
    }

    #[test]
    fn ignored_file_is_not_found() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "src/main.rs",
            "target/main.o",
            "src/main.o",
            "secret/main.key",
            ".github/main.yml",
            ".git/main",
            "notes/Main.md",
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(root.path().join(".gitignore"), "target/\n*.o\n").unwrap();
        fs::write(root.path().join(".qwenignore"), "secret/\n").unwrap();
        assert_eq!(
            find(root.path(), &Query::read("main")).unwrap(),
            ["src/main.rs", "notes/Main.md", ".github/main.yml"]
        );
        assert_eq!(find(root.path(), &Query::read("**/*.MD")).unwrap(), ["notes/Main.md"]);
        assert_eq!(find(root.path(), &Query::read("src/*")).unwrap(), ["src/main.rs"]);
        assert!(find(root.path(), &Query::read("**/*.o")).unwrap().is_empty());
        assert!(find(root.path(), &Query::read("a{b")).is_err());
        assert!(
            find(&root.path().join("nowhere"), &Query::read("main"))
                .unwrap()
                .is_empty()
        );
    }

    #[cfg(unix)]
    #[test]
    fn symlink_out_of_the_workspace_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("main.rs"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        assert!(find(root.path(), &Query::read("main")).unwrap().is_empty());
    }

    #[test]
    fn mentions_of_files_become_links() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for name in ["src/main.rs", "a b.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let linked = |text: &str| -> Vec<String> {
            link_mentions(vec![text.into()], folder.path())
                .into_iter()
                .map(|block| match block {
                    ContentBlock::ResourceLink { name, uri } => {
                        assert_eq!(uri, format!("file://{}", folder.path().join(&name).display()));
                        format!("[{name}]")
                    }
                    other => other.as_text().unwrap().to_owned(),
                })
                .collect()
        };
        assert_eq!(linked("see @src/main.rs now"), ["see ", "[src/main.rs]", " now"]);
        assert_eq!(linked("@src/main.rs."), ["[src/main.rs]", "."]);
        assert_eq!(linked("@a\\ b.txt"), ["[a b.txt]"]);
        for text in [
            "@src",
            "@gone.rs",
            "me@src/main.rs",
            "@../src/main.rs",
            "@/etc/hosts",
            "@",
            "no mention",
        ] {
            assert_eq!(linked(text), [text], "{text}");
        }
    }
}
