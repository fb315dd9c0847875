//! Text from agents, made safe to be shown.

/// Shows control characters and those that reorder text instead of letting the terminal obey them.
pub fn printable(text: &str) -> String {
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
pub fn printable_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// Whether a character must not reach a terminal as it is: it moves the cursor, reorders text, or is invisible.
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{61c}' | '\u{feff}')
        || matches!(character, '\u{ad}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c\td\n"), "a\\u{1b}[2Jb\\u{202e}c\td\n");
        assert_eq!(printable_line("a\nb"), "a b");
    }
}
