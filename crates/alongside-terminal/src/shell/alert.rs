//! How the reviewer draws attention when a change arrives.

use std::io::{self, Write};

use alongside_core::printable::printable_line;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alert {
    None,
    #[default]
    Bell,
    /// A desktop notification, as iTerm2, Windows Terminal, Kitty and others know it.
    Osc9,
    /// The same, as urxvt, VTE, Ghostty and others know it.
    Osc777,
}

impl Alert {
    pub(super) fn send(self, text: &str) {
        let sequence = self.sequence(text, std::env::var_os("TMUX").is_some());
        let mut stdout = io::stdout();
        // A terminal that is gone is noticed elsewhere.
        let _ = stdout.write_all(sequence.as_bytes()).and_then(|()| stdout.flush());
    }

    fn sequence(self, text: &str, is_in_tmux: bool) -> String {
        let text: String = printable_line(text).replace(';', ",").chars().take(120).collect();
        let sequence = match self {
            Self::None => return String::new(),
            Self::Bell => return "\x07".to_owned(),
            Self::Osc9 => format!("\x1b]9;{text}\x07"),
            Self::Osc777 => format!("\x1b]777;notify;alongside;{text}\x07"),
        };
        if is_in_tmux {
            // tmux passes on what is wrapped for it, if `allow-passthrough` is set, and rings for the bell.
            let doubled = sequence.replace('\x1b', "\x1b\x1b");
            format!("\x1bPtmux;{doubled}\x1b\\")
        } else {
            sequence
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_elsewhere_cannot_end_the_sequence() {
        let hostile = "agent\x07\x1b]52;c;AAAA\x07";
        for alert in [Alert::Osc9, Alert::Osc777] {
            let sequence = alert.sequence(hostile, false);
            assert_eq!(sequence.matches('\x1b').count(), 1, "{sequence:?}");
            assert_eq!(sequence.matches('\x07').count(), 1, "{sequence:?}");
        }
        assert_eq!(Alert::Bell.sequence(hostile, true), "\x07");
        assert_eq!(Alert::None.sequence(hostile, true), "");
    }

    #[test]
    fn tmux_gets_a_wrapped_sequence() {
        assert_eq!(Alert::Osc9.sequence("a", true), "\x1bPtmux;\x1b\x1b]9;a\x07\x1b\\");
    }
}
