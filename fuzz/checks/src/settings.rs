//! Settings files of the user and of a workspace.

use std::fs;

use alongside_companion::settings::Settings;

/// Any text is read, or refused in a sentence; a workspace's file never names a program to run.
pub fn settings(bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let (user, folder) = (directory.path().join("config.toml"), directory.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    fs::write(&user, bytes).unwrap();
    check(Settings::load(&user, &[]), &folder);
    fs::remove_file(&user).unwrap();
    fs::write(folder.join(".alongside.toml"), bytes).unwrap();
    let of_workspace = Settings::load(&user, std::slice::from_ref(&folder));
    if let Ok(settings) = &of_workspace {
        assert!(settings.agents.is_empty(), "a workspace must not set a command");
    }
    check(of_workspace, &folder);
}

fn check(outcome: Result<Settings, impl std::fmt::Display>, folder: &std::path::Path) {
    match outcome {
        Ok(settings) => {
            // A bad pattern is refused in a sentence too.
            if let Err(error) = settings.privacy(&[folder.to_owned()], &[]) {
                assert!(error.to_string().len() > 10);
            }
        }
        Err(error) => assert!(error.to_string().len() > 10),
    }
}
