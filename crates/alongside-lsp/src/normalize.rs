//! Undoes what editors change in a text without the user.
//!
//! Most editors keep the byte order mark out of their buffer, some also the carriage returns of a file that has them on every line, and
//! many add a final newline when they save. None of these are the user's edits, so they must not reach the draft.

const MARK: char = '\u{feff}';

/// The text that the user meant, if the editor shows `shown` for a text that was `model`.
pub(super) fn denormalize(shown: &str, model: &str) -> String {
    let mut text = shown.to_owned();
    if model.starts_with(MARK) && !text.starts_with(MARK) {
        text.insert(0, MARK);
    }
    if has_only_crlf(model) {
        text = with_crlf(&text);
    }
    // To add a newline on purpose, the user adds two.
    if !model.is_empty() && !model.ends_with('\n') {
        if let Some(shorter) = text.strip_suffix('\n') {
            text = shorter.strip_suffix('\r').unwrap_or(shorter).to_owned();
        }
    } else if model.is_empty() && matches!(text.as_str(), "\n" | "\r\n") {
        text.clear();
    }
    text
}

/// How an editor would show `text` if it shows `shown` for a text that was `model`.
pub(super) fn as_shown(text: &str, shown: &str, model: &str) -> String {
    let mut result = text.to_owned();
    if model.starts_with(MARK) && !shown.starts_with(MARK) {
        result = result.strip_prefix(MARK).map(str::to_owned).unwrap_or(result);
    }
    if has_only_crlf(model) && !shown.contains("\r\n") {
        result = result.replace("\r\n", "\n");
    }
    if !model.ends_with('\n') && shown.ends_with('\n') && !result.ends_with('\n') {
        result.push_str(if shown.ends_with("\r\n") { "\r\n" } else { "\n" });
    }
    result
}

fn has_only_crlf(text: &str) -> bool {
    let mut endings = text.match_indices('\n').peekable();
    endings.peek().is_some() && endings.all(|(at, _)| text[..at].ends_with('\r'))
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_changes_of_an_editor_are_undone() {
        let rows = [
            ("one\ntwo\n", "\u{feff}one\r\ntwo", "\u{feff}one\r\ntwo"),
            ("one\r\ntwo, edited\r\n", "one\r\ntwo", "one\r\ntwo, edited"),
            ("one\nTWO\n", "one\ntwo\n", "one\nTWO\n"),
            ("a\r\nb\nC\n", "a\r\nb\nc\n", "a\r\nb\nC\n"),
            ("one", "one\n", "one"),
            ("one\n\n", "one", "one\n"),
            ("\n", "", ""),
            ("new\n", "", "new\n"),
            ("", "one", ""),
        ];
        for (shown, model, expected) in rows {
            assert_eq!(denormalize(shown, model), expected, "{shown:?} for {model:?}");
        }
    }

    #[test]
    fn new_text_is_shown_like_the_old_one() {
        let model = "\u{feff}one\r\ntwo";
        for shown in ["one\ntwo\n", "one\r\ntwo\r\n", "\u{feff}one\r\ntwo", "one\ntwo"] {
            let new = "\u{feff}1\r\n2";
            let now = as_shown(new, shown, model);
            assert_eq!(now.len() + 4, shown.len(), "{now:?}");
            assert_eq!(denormalize(&now, model), new);
        }
    }
}
