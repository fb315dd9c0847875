//! The disk that the state directory is on: small, filled on request, read-only on request.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Room for the reviews of a run, and quickly filled.
const MEBIBYTES: usize = 192;

/// Set in the process that has its own mounts.
const MARK: &str = "ALONGSIDE_TRIAL_MOUNTS";

/// A tmpfs in this process's own mount namespace: it disappears with the process, even if that is killed.
pub struct Disk {
    mount: PathBuf,
}

/// Starts this program again in its own mount namespace, if the system allows that; does not return then.
pub fn enter_namespace() {
    use std::os::unix::process::CommandExt;
    if std::env::var_os(MARK).is_some() {
        return;
    }
    // As another user, the namespace needs a user namespace around it.
    for options in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(options).arg("--").env(MARK, "1");
            command
        };
        let works = unshare()
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success());
        if works {
            let error = unshare()
                .arg(std::env::current_exe().unwrap())
                .args(std::env::args_os().skip(1))
                .exec();
            panic!("cannot start in a namespace: {error}");
        }
    }
}

impl Disk {
    /// `None` if this process has no mount namespace of its own.
    pub fn mount(at: &Path) -> Option<Self> {
        std::env::var_os(MARK)?;
        fs::create_dir_all(at).unwrap();
        let disk = Self { mount: at.to_owned() };
        disk.run(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={MEBIBYTES}m,mode=0700"), "tmpfs"],
        );
        Some(disk)
    }

    /// Takes all the space there is.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        for size in [1 << 20, 1 << 12] {
            let block = vec![0; size];
            while filler.write_all(&block).is_ok() {}
        }
    }

    pub fn free(&self) {
        let _ = fs::remove_file(self.filler());
    }

    /// Only possible while no program has a file open for writing.
    pub fn set_read_only(&self, read_only: bool) {
        let how = if read_only { "remount,ro" } else { "remount,rw" };
        self.run("mount", &["-o", how]);
    }

    pub fn used_bytes(&self) -> u64 {
        fn size(directory: &Path) -> u64 {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries
                .map(|entry| match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => size(&entry.path()),
                    Ok(metadata) => metadata.len(),
                    Err(_) => 0,
                })
                .sum()
        }
        size(&self.mount)
    }

    fn filler(&self) -> PathBuf {
        self.mount.join("filler")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = Command::new(program).args(arguments).arg(&self.mount).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
