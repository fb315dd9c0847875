//! Reads one variable from a `.env` file the way Qwen Code does.
//!
//! Qwen Code looks for `QWEN_HOME` in two such files before it knows its own home, using the `dotenv` package: an
//! optional `export`, `NAME=value` or `NAME: value`, three kinds of quotes that may span lines, `#` for comments, and
//! the last assignment wins.

/// The value of `name` in `source`; `None` if it is unset or empty there.
pub(crate) fn value_of(source: &str, name: &str) -> Option<String> {
    let source = source
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut found = None;
    let mut rest = source.as_str();
    while !rest.is_empty() {
        let (assignment, after) = assignment(rest);
        if let Some((key, value)) = assignment
            && key == name
        {
            found = Some(value);
        }
        rest = after;
    }
    found.filter(|value| !value.is_empty())
}

/// The first line's assignment, and the text after it (or after the end of a multi-line quoted value).
fn assignment(text: &str) -> (Option<(&str, String)>, &str) {
    let (line, after_line) = text.split_once('\n').unwrap_or((text, ""));
    let Some((key, value_start)) = key(line) else {
        return (None, after_line);
    };
    let value_text = text[value_start..].trim_start_matches([' ', '\t']);
    if let Some((value, after)) = quoted(value_text) {
        return (Some((key, value)), after);
    }
    let value = line[value_start..].split('#').next().unwrap_or_default().trim();
    (Some((key, value.to_owned())), after_line)
}

/// The key of an assignment and the offset of its value.
fn key(line: &str) -> Option<(&str, usize)> {
    let trimmed = line.trim_start();
    let trimmed = trimmed
        .strip_prefix("export")
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .map_or(trimmed, str::trim_start);
    let start = line.len() - trimmed.len();
    let is_key = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-');
    let length = trimmed.find(|character| !is_key(character)).unwrap_or(trimmed.len());
    let (key, rest) = trimmed.split_at(length);
    if key.is_empty() {
        return None;
    }
    let value = match rest.trim_start().strip_prefix('=') {
        Some(value) => value,
        // A colon must directly follow the key and needs a space after it.
        None => rest
            .strip_prefix(':')
            .filter(|value| value.starts_with(char::is_whitespace))?,
    };
    Some((&line[start..start + length], line.len() - value.len()))
}

/// A quoted value, and the text after its line; `None` if it is unquoted or followed by more than a comment.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|character| matches!(character, '\'' | '"' | '`'))?;
    let mut escaped = false;
    let end = text.char_indices().skip(1).find_map(|(index, character)| {
        let closes = character == quote && !escaped;
        escaped = character == '\\' && !escaped;
        closes.then_some(index)
    })?;
    let (tail, after) = text[end + 1..].split_once('\n').unwrap_or((&text[end + 1..], ""));
    let tail = tail.trim_start();
    if !tail.is_empty() && !tail.starts_with('#') {
        return None;
    }
    let value = &text[1..end];
    let value = match quote {
        '"' => value.replace("\\n", "\n").replace("\\r", "\r"),
        _ => value.to_owned(),
    };
    Some((value, after))
}

#[cfg(test)]
mod tests {
    use super::value_of;

    fn home(source: &str) -> Option<String> {
        value_of(source, "QWEN_HOME")
    }

    #[test]
    fn plain_exported_and_colon_assignments_are_read() {
        assert_eq!(home("QWEN_HOME=/q").as_deref(), Some("/q"));
        assert_eq!(
            home("\u{feff}A=1\r\n  export QWEN_HOME = /q # mine\r\nB=2").as_deref(),
            Some("/q")
        );
        assert_eq!(home("QWEN_HOME: /q").as_deref(), Some("/q"));
        assert_eq!(home("QWEN_HOME:/q"), None);
    }

    #[test]
    fn quotes_protect_spaces_and_hashes() {
        assert_eq!(home("QWEN_HOME=\"/a b#c\" # comment").as_deref(), Some("/a b#c"));
        assert_eq!(home("QWEN_HOME='/a b'").as_deref(), Some("/a b"));
        assert_eq!(home("QWEN_HOME=`/a`").as_deref(), Some("/a"));
    }

    #[test]
    fn name_inside_multiline_value_is_ignored() {
        assert_eq!(
            home("NOTE=\"first\nQWEN_HOME=/wrong\n\"\nQWEN_HOME=/right").as_deref(),
            Some("/right")
        );
    }

    #[test]
    fn last_assignment_wins_and_empty_is_none() {
        assert_eq!(home("QWEN_HOME=/a\nQWEN_HOME=/b").as_deref(), Some("/b"));
        assert_eq!(home("QWEN_HOME=\n"), None);
        assert_eq!(home("# QWEN_HOME=/a\nMY_QWEN_HOME=/b"), None);
    }
}
