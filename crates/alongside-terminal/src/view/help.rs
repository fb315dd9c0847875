//! Help: every key, where it works.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::model::Model;

use super::{popup, row};

/// Keys by where they work.
const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "Hunks",
        &[
            ("a", "accept the hunk"),
            ("r", "reject the hunk"),
            ("=", "keep the draft's text in a conflict"),
            ("u", "undo the last decision about a hunk"),
            ("n  p", "next, previous hunk"),
        ],
    ),
    (
        "Change",
        &[
            ("A", "accept the change as shown"),
            ("R", "reject the change"),
            ("W", "reject with a reason"),
            ("m", "comment on the line, for a rejection"),
            ("+  -", "accept, reject all changes of the agent"),
            ("]  [", "next, previous change"),
            ("i", "edit here; Esc saves, Ctrl-C discards"),
            ("e", "edit in $VISUAL or $EDITOR"),
        ],
    ),
    (
        "Text",
        &[
            ("j k ↓ ↑", "move by a line"),
            ("Space b", "move by a page"),
            ("g  G", "first, last line"),
            ("← →  0", "scroll sideways, and back"),
            ("o  Enter", "show folded lines"),
            ("O", "show or fold all unchanged lines"),
            ("s", "unified or side by side"),
            ("/", "search; . next, , previous match"),
        ],
    ),
    (
        "Chat",
        &[
            ("Enter", "send; Ctrl-J starts another line"),
            ("Alt-1…9", "answer a permission request"),
            ("Ctrl-X", "cancel the turn"),
            ("Ctrl-O", "connect to an agent"),
            ("Ctrl-E", "show all output and thoughts"),
            ("Esc i", "read, write"),
            ("d", "remove the last queued message"),
        ],
    ),
    (
        "Everywhere",
        &[
            ("v", "what agents see"),
            ("c  Alt-C", "chat, and back to the reviews"),
            ("w", "attach another companion"),
            ("l  Esc", "back to the list"),
            ("Ctrl-L", "redraw"),
            ("Ctrl-Z", "suspend"),
            ("q", "quit"),
        ],
    ),
];

impl Model {
    pub(super) fn draw_help(&self, top: usize, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let mut lines: Vec<Vec<(String, Style)>> = Vec::new();
        for (title, keys) in KEYS {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            lines.push(vec![((*title).to_owned(), theme.strong())]);
            for (key, meaning) in *keys {
                lines.push(vec![
                    (format!("  {key:<9} "), theme.accent()),
                    ((*meaning).to_owned(), Style::new()),
                ]);
            }
        }
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let inside = popup(area, 56, height, "Keys", theme.quiet(), buffer);
        let last = lines.len().saturating_sub(usize::from(inside.height));
        for (offset, line) in (0..inside.height).zip(lines.iter().skip(top.min(last))) {
            let place = Rect {
                x: inside.x + 1,
                y: inside.y + offset,
                width: inside.width.saturating_sub(2),
                height: 1,
            };
            row(line, place, Style::new(), buffer);
        }
    }
}
