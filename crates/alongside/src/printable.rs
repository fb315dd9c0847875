//! Text from agents, made safe for a terminal.

pub(crate) use alongside_core::printable::{printable, printable_line};

/// A diff made safe for a terminal. Hides the carriage returns of CRLF line endings.
pub(crate) fn printable_difference(difference: &str, colors: bool) -> String {
    let mut shown = String::new();
    for line in difference.lines() {
        let color = match line.as_bytes() {
            _ if !colors => None,
            [b'+', ..] => Some("32"),
            [b'-', ..] => Some("31"),
            [b'@', ..] => Some("36"),
            _ => None,
        };
        let line = printable(line.strip_suffix('\r').unwrap_or(line));
        match color {
            Some(color) => shown.push_str(&format!("\x1b[{color}m{line}\x1b[0m\n")),
            None => shown.push_str(&format!("{line}\n")),
        }
    }
    shown
}

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
    fn diff_is_colored_only_on_request() {
        assert_eq!(printable_difference("+a\r\n-b\n", false), "+a\n-b\n");
        assert!(printable_difference("+a\n", true).starts_with("\x1b[32m+a"));
    }

    #[test]
    fn ages_are_rounded_to_one_unit() {
        assert_eq!(ago(500), "just now");
        assert_eq!(ago(65_000), "65 s ago");
        assert_eq!(ago(600_000), "10 min ago");
        assert_eq!(ago(7_200_000), "2 h ago");
    }
}
