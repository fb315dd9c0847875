//! The values of settings about terminals.

/// What the terminal reviewer does when a change arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminalAlert {
    #[default]
    Bell,
    None,
    /// A desktop notification by OSC 9.
    Osc9,
    /// A desktop notification by OSC 777.
    Osc777,
}

impl TerminalAlert {
    pub(super) const WORDS: &[(&str, Self)] = &[
        ("bell", Self::Bell),
        ("none", Self::None),
        ("osc9", Self::Osc9),
        ("osc777", Self::Osc777),
    ];
}

/// The terminal's background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminalBackground {
    /// As the environment says, else dark.
    #[default]
    Auto,
    Dark,
    Light,
}

impl TerminalBackground {
    pub(super) const WORDS: &[(&str, Self)] = &[("auto", Self::Auto), ("dark", Self::Dark), ("light", Self::Light)];
}

/// Whether `alongside run` opens the terminal reviewer next to the agent, in tmux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunSplit {
    /// It offers to.
    #[default]
    Ask,
    Always,
    Never,
}

impl RunSplit {
    pub(super) const WORDS: &[(&str, Self)] = &[("ask", Self::Ask), ("always", Self::Always), ("never", Self::Never)];
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn read(user: &str) -> Result<Settings, String> {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("config.toml");
        std::fs::write(&file, user).unwrap();
        Settings::load(&file, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn terminal_settings_are_words() {
        let settings =
            read("[terminal]\nmouse = true\nalert = 'osc9'\nbackground = 'light'\n[run]\nsplit = 'never'").unwrap();
        assert!(settings.terminal_mouse);
        assert_eq!(settings.terminal_alert, TerminalAlert::Osc9);
        assert_eq!(settings.terminal_background, TerminalBackground::Light);
        assert_eq!(settings.run_split, RunSplit::Never);
        let error = read("[terminal]\nalert = 'horn'").unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("\"bell\" or \"none\""),
            "{error}"
        );
    }
}
