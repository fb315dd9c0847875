//! The permissions of what is packed, which must not depend on the umask of the machine that packs it.

use std::path::Path;

/// Gives all files and directories below a directory, and the directory, the usual permissions: 0755 for directories and programs, 0644
/// for other files.
#[cfg(unix)]
pub(super) fn settle(path: &Path) -> Result<(), String> {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    let failed = |error: std::io::Error| format!("cannot set the permissions of {}: {error}", path.display());
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    let is_program = metadata.permissions().mode() & 0o100 != 0;
    let mode = if metadata.is_dir() || is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            settle(&entry.map_err(failed)?.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn settle(_path: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{cache, target_directory};

    #[test]
    fn private_files_are_packed_with_the_usual_permissions() {
        let stage = target_directory().unwrap().join("permissions-test");
        cache::remove(&stage).unwrap();
        let modes = [
            ("", 0o755),
            ("DEBIAN", 0o755),
            ("DEBIAN/control", 0o644),
            ("alongside", 0o755),
        ];
        fs::create_dir_all(stage.join("DEBIAN")).unwrap();
        for (name, wanted) in modes {
            let path = stage.join(name);
            if name.ends_with("control") || name == "alongside" {
                fs::write(&path, "").unwrap();
            }
            // As with a umask of 077.
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted & 0o700)).unwrap();
        }
        settle(&stage).unwrap();
        for (name, wanted) in modes {
            let mode = fs::metadata(stage.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, wanted, "{name}");
        }
        cache::remove(&stage).unwrap();
    }
}
