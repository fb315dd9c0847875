//! The editor plugins embedded in this program.

use std::collections::BTreeMap;
use std::path::Path;

/// One plugin's files by their relative paths.
pub type PluginFiles = BTreeMap<String, Vec<u8>>;

type Embedded = &'static [(&'static str, &'static [(&'static str, &'static [u8])])];

/// Every directory in `editors/`.
const EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/plugins.rs"));

/// Plugins by editor name.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    plugins: BTreeMap<String, PluginFiles>,
}

impl Plugins {
    pub fn embedded() -> Self {
        let owned = |files: &[(&str, &[u8])]| -> PluginFiles {
            files
                .iter()
                .map(|(name, content)| ((*name).to_owned(), content.to_vec()))
                .collect()
        };
        let plugins = EMBEDDED.iter().map(|(name, files)| ((*name).to_owned(), owned(files)));
        Self {
            plugins: plugins.collect(),
        }
    }

    /// The same plugins with one more file, for tests and trials.
    #[must_use]
    pub fn with(mut self, plugin: &str, file: &str, content: &str) -> Self {
        let files = self.plugins.entry(plugin.to_owned()).or_default();
        files.insert(file.to_owned(), content.as_bytes().to_vec());
        self
    }

    pub(super) fn files(&self, plugin: &str) -> Option<&PluginFiles> {
        self.plugins.get(plugin).filter(|files| !files.is_empty())
    }
}

/// The plugin's help index (`doc/tags`), which Vim and Neovim expect next to the help; `None` if it has no help.
///
/// `:helptags` would generate the same, but that means starting the editor.
pub(super) fn help_tags(files: &PluginFiles) -> Option<Vec<u8>> {
    let mut tags = Vec::new();
    for (path, content) in files {
        let Some(name) = path.strip_prefix("doc/").filter(|name| is_help(name)) else {
            continue;
        };
        let text = String::from_utf8_lossy(content);
        for word in text.split_whitespace() {
            let tag = word.strip_prefix('*').and_then(|word| word.strip_suffix('*'));
            if let Some(tag) = tag.filter(|tag| !tag.is_empty() && !tag.contains(['*', '|'])) {
                let pattern = tag.replace('\\', "\\\\").replace('/', "\\/");
                tags.push(format!("{tag}\t{name}\t/*{pattern}*\n"));
            }
        }
    }
    // The editors use binary search, in byte order.
    tags.sort();
    tags.dedup();
    (!tags.is_empty()).then(|| tags.concat().into_bytes())
}

fn is_help(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_tags_are_sorted() {
        let help = "*alongside.txt*  For Vim\n\n*:Alongside* *a/b*\nsee |x| and **bold** and a * b\n";
        let plugins = Plugins::default()
            .with("vim", "doc/alongside.txt", help)
            .with("vim", "plugin/x.vim", "*no*");
        let tags = help_tags(plugins.files("vim").unwrap()).unwrap();
        assert_eq!(
            String::from_utf8(tags).unwrap(),
            ":Alongside\talongside.txt\t/*:Alongside*\na/b\talongside.txt\t/*a\\/b*\nalongside.txt\talongside.txt\t/*alongside.txt*\n"
        );
        assert_eq!(help_tags(&PluginFiles::new()), None);
    }

    #[test]
    fn embedded_paths_are_plain_and_relative() {
        for (editor, files) in &Plugins::embedded().plugins {
            for path in files.keys() {
                assert!(
                    !path.starts_with('/') && !path.contains("..") && !path.contains('\\'),
                    "{editor}: {path}"
                );
            }
        }
    }
}
