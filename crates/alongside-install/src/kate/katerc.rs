//! The two entries in Kate's own settings: its LSP plugin is on, and may start a program without asking.

const PLUGINS: (&str, &str) = ("Kate Plugins", "lspclientplugin");
const ALLOWED: (&str, &str) = ("lspclient", "AllowedServerCommandLines");

pub(super) struct Katerc {
    pub(super) text: String,
}

impl Katerc {
    pub(super) fn new(text: String) -> Self {
        Self { text }
    }

    /// The text with a command line that may be started. Kate writes the state of every plugin itself, so `false` is no choice.
    pub(super) fn with(&self, command_line: &str) -> String {
        let text = edit(&self.text, PLUGINS, |_| Some("true".to_owned()));
        edit(&text, ALLOWED, |value| {
            let mut lines = command_lines(value);
            if !lines.contains(&command_line) {
                lines.push(command_line);
            }
            Some(lines.join(","))
        })
    }

    /// The text without such command lines; `None` if nothing else is in it.
    pub(super) fn without(&self, is_own: impl Fn(&str) -> bool) -> Option<String> {
        let text = edit(&self.text, ALLOWED, |value| {
            let mut lines = command_lines(value);
            lines.retain(|line| !is_own(line));
            (!lines.is_empty()).then(|| lines.join(","))
        });
        let only_plugin = edit("", PLUGINS, |_| Some("true".to_owned()));
        (!text.trim().is_empty() && text.trim() != only_plugin.trim()).then_some(text)
    }
}

/// The elements of a list. One with an escaped comma is not ours, and is joined again as it was.
fn command_lines(value: Option<&str>) -> Vec<&str> {
    value.map(|value| value.split(',').collect()).unwrap_or_default()
}

/// Changes the value of a key, which `None` removes, with its section if that is then empty.
fn edit(text: &str, (section, key): (&str, &str), change: impl Fn(Option<&str>) -> Option<String>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let header = format!("[{section}]");
    let begin = lines.iter().position(|line| line.trim() == header);
    let end = |lines: &[String], begin: usize| {
        let rest = lines.iter().skip(begin + 1);
        rest.take_while(|line| !line.starts_with('[')).count() + begin + 1
    };
    let place = begin.and_then(|begin| {
        let end = end(&lines, begin);
        (begin + 1..end).find(|index| lines[*index].split('=').next().is_some_and(|name| name.trim() == key))
    });
    let value = place.and_then(|place| lines[place].split_once('=').map(|(_, value)| value.trim().to_owned()));
    match (change(value.as_deref()), place, begin) {
        (Some(value), Some(place), _) => lines[place] = format!("{key}={value}"),
        (Some(value), None, Some(begin)) => lines.insert(begin + 1, format!("{key}={value}")),
        (Some(value), None, None) => {
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push(String::new());
            }
            lines.extend([header, format!("{key}={value}")]);
        }
        (None, Some(place), Some(begin)) => {
            lines.remove(place);
            let end = end(&lines, begin);
            if lines[begin + 1..end].iter().all(|line| line.trim().is_empty()) {
                lines.drain(begin..end);
                if lines.len() == begin && lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
            }
        }
        (None, ..) => return text.to_owned(),
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_added_and_removed_without_touching_others() {
        for before in [
            "[General]\na=1\n",
            "[lspclient]\nHover=true\n\n[General]\na=1\n",
            "[lspclient]\nAllowedServerCommandLines=/a b,/c\n",
        ] {
            let before = edit(before, PLUGINS, |_| Some("true".to_owned()));
            let with = Katerc::new(before.clone()).with("/bin/alongside lsp");
            assert!(with.contains("/bin/alongside lsp"), "{with}");
            assert_eq!(Katerc::new(with.clone()).with("/bin/alongside lsp"), with);
            let without = Katerc::new(with).without(|line| line == "/bin/alongside lsp");
            assert_eq!(without.as_deref(), Some(before.as_str()));
        }
    }

    #[test]
    fn plugin_that_is_off_is_turned_on() {
        let with = Katerc::new("[Kate Plugins]\nlspclientplugin=false\n".to_owned()).with("/x");
        assert_eq!(
            with,
            "[Kate Plugins]\nlspclientplugin=true\n\n[lspclient]\nAllowedServerCommandLines=/x\n"
        );
    }
}
