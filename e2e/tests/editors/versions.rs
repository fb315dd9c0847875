//! What the editors print as their version.

use alongside_e2e::version_in;

#[test]
fn versions_are_parsed() {
    for (text, wanted) in [
        ("NVIM v0.10.4\nBuild type: RelWithDebInfo", "0.10.4"),
        ("VIM - Vi IMproved 9.0 (2022 Jun 28)", "9.0"),
        ("GNU Emacs 28.2\nCopyright (C) 2022", "28.2"),
        ("helix 25.01.1 (e7ac2fcd)", "25.01.1"),
        ("Kakoune v2024.05.18", "2024.05.18"),
    ] {
        assert_eq!(version_in(text).as_deref(), Some(wanted), "{text}");
    }
}
