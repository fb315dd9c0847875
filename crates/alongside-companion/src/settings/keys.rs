//! The settings' keys. A key without code that reads its value does not compile.

/// Who may set a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    UserOnly,
    UserOrWorkspace,
}

/// Defines an enum of keys with their names and scopes. Each enum is matched exhaustively where its values are read.
macro_rules! keys {
    ($type:ident { $($key:ident = $name:literal, $scope:ident;)* }) => {
        #[derive(Clone, Copy)]
        pub(super) enum $type { $($key),* }

        impl $type {
            const ALL: &[Self] = &[$(Self::$key),*];

            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$key => $name),* }
            }

            pub(super) const fn scope(self) -> Scope {
                match self { $(Self::$key => Scope::$scope),* }
            }

            pub(super) fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|key| key.name() == name)
            }
        }
    };
}

keys!(Key {
    CompanionName = "companion.name", UserOnly;
    CompanionDisplayName = "companion.display-name", UserOnly;
    PageOpen = "page.open", UserOnly;
    PrivacyHide = "privacy.hide", UserOrWorkspace;
    SessionsMax = "sessions.max", UserOnly;
    ResumeAfterStop = "sessions.resume-after-stop", UserOnly;
    ResumeAfterCrash = "sessions.resume-after-crash", UserOnly;
    ReviewOutsideWorkspace = "review.outside-workspace", UserOrWorkspace;
    HooksWithoutCompanion = "hooks.without-companion", UserOnly;
    TerminalMouse = "terminal.mouse", UserOnly;
    TerminalAlert = "terminal.alert", UserOnly;
    TerminalBackground = "terminal.background", UserOnly;
    RunSplit = "run.split", UserOnly;
    DaemonEnabled = "daemon.enabled", UserOnly;
    DaemonUrl = "daemon.url", UserOnly;
    DaemonToken = "daemon.token", UserOnly;
    DaemonTokenFile = "daemon.token-file", UserOnly;
    DaemonCaFile = "daemon.ca-file", UserOnly;
});

// A command runs with the user's rights, so a workspace must not set it.
keys!(AgentKey {
    Command = "agents.<id>.command", UserOnly;
    Name = "agents.<id>.name", UserOnly;
});

/// The names and scopes of all keys.
pub(super) fn all_keys() -> impl Iterator<Item = (&'static str, Scope)> {
    let agent_keys = AgentKey::ALL.iter().map(|key| (key.name(), key.scope()));
    Key::ALL.iter().map(|key| (key.name(), key.scope())).chain(agent_keys)
}
