//! Colors and other marks for every depth of color, on dark and light backgrounds.

use ratatui::style::{Color, Modifier, Style};

/// How many colors a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorDepth {
    /// None: marks and attributes say everything.
    None,
    Ansi16,
    Ansi256,
    True,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// What the syntax of a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    Comment,
    Keyword,
    String,
    Number,
    Type,
    Function,
    Variable,
    Punctuation,
}

/// Whose line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Context,
    Removed,
    Added,
    /// The agent's text that would not be accepted now.
    Declined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub depth: ColorDepth,
    pub background: Background,
}

impl Theme {
    /// By the usual environment variables.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let terminal = set("TERM").unwrap_or_default();
        let depth = if set("NO_COLOR").is_some() || terminal == "dumb" {
            ColorDepth::None
        } else if set("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit")
            || terminal.ends_with("-direct")
            || set("WT_SESSION").is_some()
        {
            ColorDepth::True
        } else if terminal.contains("256color") {
            ColorDepth::Ansi256
        } else {
            ColorDepth::Ansi16
        };
        // "foreground;background", as rxvt, Konsole and others set it.
        let background = set("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
        let background = match background {
            Some(7 | 9..=15) => Background::Light,
            _ => Background::Dark,
        };
        Self { depth, background }
    }

    fn pick(self, dark: (u32, u8, Color), light: (u32, u8, Color)) -> Color {
        let (rgb, indexed, named) = match self.background {
            Background::Dark => dark,
            Background::Light => light,
        };
        match self.depth {
            ColorDepth::None => Color::Reset,
            ColorDepth::Ansi16 => named,
            ColorDepth::Ansi256 => Color::Indexed(indexed),
            ColorDepth::True => Color::from_u32(rgb),
        }
    }

    fn has_backgrounds(self) -> bool {
        matches!(self.depth, ColorDepth::Ansi256 | ColorDepth::True)
    }

    fn plain(self) -> bool {
        self.depth == ColorDepth::None
    }

    /// A whole line of a diff.
    pub(crate) fn line(self, side: Side) -> Style {
        let style = Style::new();
        match side {
            Side::Declined => style.add_modifier(Modifier::DIM | Modifier::CROSSED_OUT),
            Side::Removed if self.has_backgrounds() => {
                style.bg(self.pick((0x003c_1a1e, 52, Color::Red), (0x00ff_ebe9, 224, Color::Red)))
            }
            Side::Added if self.has_backgrounds() => {
                style.bg(self.pick((0x0014_3222, 22, Color::Green), (0x00e2_fbe8, 194, Color::Green)))
            }
            Side::Removed if !self.plain() => style.fg(Color::Red),
            Side::Added if !self.plain() => style.fg(Color::Green),
            Side::Context | Side::Removed | Side::Added => style,
        }
    }

    /// The changed words in a line.
    pub(crate) fn word(self, side: Side) -> Style {
        match side {
            Side::Removed if self.has_backgrounds() => {
                Style::new().bg(self.pick((0x0075_2a31, 88, Color::Red), (0x00ff_c2bd, 217, Color::Red)))
            }
            Side::Added if self.has_backgrounds() => {
                Style::new().bg(self.pick((0x001f_6a3c, 28, Color::Green), (0x00a6_f0b8, 157, Color::Green)))
            }
            Side::Removed | Side::Added if self.plain() => {
                Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD)
            }
            Side::Removed | Side::Added => Style::new().add_modifier(Modifier::REVERSED),
            Side::Context | Side::Declined => Style::new(),
        }
    }

    pub(crate) fn syntax(self, syntax: Syntax, side: Side) -> Style {
        // Without backgrounds, the color of the text says which side it is.
        if self.plain() || side == Side::Declined || (side != Side::Context && !self.has_backgrounds()) {
            return Style::new();
        }
        let color = match syntax {
            Syntax::Comment => self.pick((0x008b_949e, 245, Color::DarkGray), (0x0066_6e78, 243, Color::DarkGray)),
            Syntax::Keyword => self.pick((0x00ff_7b9c, 211, Color::Magenta), (0x00b3_1d5b, 125, Color::Magenta)),
            Syntax::String => self.pick((0x00a5_d6ff, 153, Color::Cyan), (0x000a_4fa0, 25, Color::Blue)),
            Syntax::Number => self.pick((0x0079_c0ff, 111, Color::Blue), (0x0005_50ae, 25, Color::Blue)),
            Syntax::Type => self.pick((0x00ff_c680, 222, Color::Yellow), (0x0095_3800, 130, Color::Yellow)),
            Syntax::Function => self.pick((0x00d2_a8ff, 183, Color::Blue), (0x0082_50df, 97, Color::Blue)),
            Syntax::Variable | Syntax::Punctuation => return Style::new(),
        };
        Style::new().fg(color)
    }

    pub(crate) fn quiet(self) -> Style {
        if self.plain() {
            Style::new().add_modifier(Modifier::DIM)
        } else {
            Style::new().fg(self.pick((0x008b_949e, 245, Color::DarkGray), (0x0066_6e78, 243, Color::DarkGray)))
        }
    }

    #[expect(clippy::unused_self, reason = "like the others")]
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn good(self) -> Style {
        self.named((0x003f_b950, 77, Color::Green), (0x001a_7f37, 28, Color::Green))
    }

    pub(crate) fn bad(self) -> Style {
        self.named((0x00f8_5149, 203, Color::Red), (0x00cf_222e, 160, Color::Red))
    }

    pub(crate) fn warning(self) -> Style {
        self.named((0x00e3_b341, 179, Color::Yellow), (0x009a_6700, 130, Color::Yellow))
    }

    pub(crate) fn accent(self) -> Style {
        self.named((0x0058_a6ff, 75, Color::Cyan), (0x0009_69da, 26, Color::Blue))
    }

    fn named(self, dark: (u32, u8, Color), light: (u32, u8, Color)) -> Style {
        if self.plain() {
            Style::new()
        } else {
            Style::new().fg(self.pick(dark, light))
        }
    }

    /// What stands for characters that cannot be drawn.
    pub(crate) fn special(self) -> Style {
        self.warning().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn selected(self) -> Style {
        if self.has_backgrounds() {
            Style::new().bg(self.pick((0x0026_3445, 237, Color::Reset), (0x00dd_e9f8, 254, Color::Reset)))
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    pub(crate) fn found(self) -> Style {
        if self.plain() {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
                .fg(Color::Black)
                .bg(self.pick((0x00e3_b341, 179, Color::Yellow), (0x00ff_d866, 221, Color::Yellow)))
        }
    }

    pub(crate) fn bar(self) -> Style {
        if self.has_backgrounds() {
            Style::new().bg(self.pick((0x001c_2128, 235, Color::Reset), (0x00ea_eef2, 255, Color::Reset)))
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> Theme {
        Theme::from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn depth_follows_the_environment() {
        for (variables, depth) in [
            (&[("TERM", "xterm")][..], ColorDepth::Ansi16),
            (&[("TERM", "screen-256color")], ColorDepth::Ansi256),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")],
                ColorDepth::True,
            ),
            (&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")], ColorDepth::None),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], ColorDepth::Ansi16),
            (&[("TERM", "dumb")], ColorDepth::None),
        ] {
            assert_eq!(theme(variables).depth, depth, "{variables:?}");
        }
    }

    #[test]
    fn background_follows_colorfgbg() {
        for (value, background) in [
            ("15;0", Background::Dark),
            ("0;15", Background::Light),
            ("0;default;7", Background::Light),
        ] {
            assert_eq!(theme(&[("COLORFGBG", value)]).background, background, "{value}");
        }
        assert_eq!(theme(&[]).background, Background::Dark);
    }

    #[test]
    fn no_color_means_no_color() {
        let theme = Theme {
            depth: ColorDepth::None,
            background: Background::Dark,
        };
        for style in [
            theme.line(Side::Added),
            theme.line(Side::Removed),
            theme.word(Side::Added),
            theme.syntax(Syntax::Keyword, Side::Context),
            theme.quiet(),
            theme.good(),
            theme.special(),
            theme.selected(),
            theme.found(),
            theme.bar(),
        ] {
            assert_eq!((style.fg, style.bg), (None, None), "{style:?}");
        }
    }
}
