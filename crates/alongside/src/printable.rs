//! Text from agents, made safe for a terminal.

/// Shows control characters and those that reorder text instead of letting the terminal obey them.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_harmful(character) {
            safe.push(character);
        } else {
            safe.extend(character.escape_unicode());
        }
    }
    safe
}

/// The same on one line.
pub(crate) fn printable_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{feff}')
}

/// A difference for a terminal: carriage returns at line ends are ordinary there and stay out of sight.
pub(crate) fn printable_difference(difference: &str, colours: bool) -> String {
    let mut shown = String::new();
    for line in difference.lines() {
        let colour = match line.as_bytes() {
            _ if !colours => None,
            [b'+', ..] => Some("32"),
            [b'-', ..] => Some("31"),
            [b'@', ..] => Some("36"),
            _ => None,
        };
        let line = printable(line.strip_suffix('\r').unwrap_or(line));
        match colour {
            Some(colour) => shown.push_str(&format!("\x1b[{colour}m{line}\x1b[0m\n")),
            None => shown.push_str(&format!("{line}\n")),
        }
    }
    shown
}

/// How long ago, in words.
pub(crate) fn ago(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..=1 => "just now".to_owned(),
        2..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        _ => format!("{} h ago", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_an_agent_moves_the_cursor_or_turns_the_text() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c\td\n"), "a\\u{1b}[2Jb\\u{202e}c\td\n");
        assert_eq!(printable_line("a\nb"), "a b");
    }

    #[test]
    fn a_difference_is_coloured_only_when_asked() {
        assert_eq!(printable_difference("+a\r\n-b\n", false), "+a\n-b\n");
        assert!(printable_difference("+a\n", true).starts_with("\x1b[32m+a"));
    }

    #[test]
    fn ages_are_in_words() {
        assert_eq!(ago(500), "just now");
        assert_eq!(ago(65_000), "65 s ago");
        assert_eq!(ago(600_000), "10 min ago");
        assert_eq!(ago(7_200_000), "2 h ago");
    }
}
