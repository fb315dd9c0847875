//! A directory of plugin files.
//!
//! A manifest in the directory lists the installed files with their digests. Only those files are ever replaced or
//! removed; one that has been edited since is backed up first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::{self, Change, Plan};
use super::{InstallError, InstallState, digest};

/// The manifest of installed files.
const LIST: &str = ".alongside-installed.json";

#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) directory: PathBuf,
    /// How many parent directories were created for this package alone, and are removed with it.
    pub(super) own_parents: usize,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Path of this program, recorded for the plugin.
    pub(super) program: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: String,
    /// Path of the program that installed this.
    #[serde(default)]
    program: PathBuf,
    /// A digest of each file, by its relative path.
    files: BTreeMap<String, String>,
}

impl Package {
    pub(super) fn plan_install(&self) -> Result<Plan, InstallError> {
        self.check_not_linked()?;
        let list = self.list()?;
        let mut plan = Plan::default();
        for (name, content) in &self.files {
            let path = self.directory.join(name);
            let current = plan::read(&path)?;
            let is_ours = current.is_none_or(|current| list.files.get(name) == Some(&digest(&current)));
            let change = if is_ours {
                Change::write_own(path.clone(), content.clone())?
            } else {
                Change::write(path.clone(), content.clone(), true)?
            };
            if change.is_some() && !is_ours {
                plan.remarks.push(format!(
                    "{} had been edited; a backup is next to the new one.",
                    path.display()
                ));
            }
            plan.changes.extend(change);
        }
        for name in list.files.keys().filter(|name| !self.files.contains_key(*name)) {
            self.remove(name, &list, &mut plan)?;
        }
        let new_list = List {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: self.program.clone(),
            files: self
                .files
                .iter()
                .map(|(name, content)| (name.clone(), digest(content)))
                .collect(),
        };
        let mut content = serde_json::to_vec_pretty(&new_list).unwrap_or_default();
        content.push(b'\n');
        plan.changes
            .extend(Change::write_own(self.directory.join(LIST), content)?);
        Ok(plan)
    }

    pub(super) fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        self.check_not_linked()?;
        let list = self.list()?;
        let mut plan = Plan::default();
        for name in list.files.keys() {
            self.remove(name, &list, &mut plan)?;
        }
        if let Some(before) = plan::read(&self.directory.join(LIST))? {
            plan.changes.push(Change::Remove {
                path: self.directory.join(LIST),
                before,
                keep: false,
            });
        }
        if plan.is_empty() {
            return Ok(plan);
        }
        let mut directories: Vec<PathBuf> = list.files.keys().flat_map(|name| self.directories_of(name)).collect();
        // Longest path first: a directory is empty only after its subdirectories are removed.
        directories.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        directories.dedup();
        directories.extend(
            self.directory
                .ancestors()
                .take(1 + self.own_parents)
                .map(Path::to_owned),
        );
        plan.changes
            .extend(directories.into_iter().map(|path| Change::RemoveDirectory { path }));
        Ok(plan)
    }

    pub(super) fn state(&self) -> Result<InstallState, InstallError> {
        if self.is_linked() {
            return Ok(InstallState::Linked);
        }
        if plan::read(&self.directory.join(LIST))?.is_none() {
            return Ok(InstallState::Absent);
        }
        let list = self.list()?;
        let mut state = InstallState::Installed;
        for (name, noted) in &list.files {
            match plan::read(&self.directory.join(name))? {
                Some(current) if digest(&current) == *noted => {}
                Some(_) => return Ok(InstallState::Edited),
                None => state = InstallState::Outdated,
            }
        }
        let wanted = self.files.iter().map(|(name, content)| (name, digest(content)));
        let is_current = wanted.eq(list.files.iter().map(|(name, noted)| (name, noted.clone())));
        Ok(if is_current && list.program == self.program {
            state
        } else {
            InstallState::Outdated
        })
    }

    /// The program that the installed plugin starts.
    pub(super) fn installed_program(&self) -> Option<PathBuf> {
        let program = self.list().ok()?.program;
        (!program.as_os_str().is_empty()).then_some(program)
    }

    fn remove(&self, name: &str, list: &List, plan: &mut Plan) -> Result<(), InstallError> {
        let path = self.directory.join(name);
        let Some(before) = plan::read(&path)? else {
            return Ok(());
        };
        let keep = list.files.get(name) != Some(&digest(&before));
        if keep {
            plan.remarks
                .push(format!("{} had been edited; a backup is next to it.", path.display()));
        }
        plan.changes.push(Change::Remove { path, before, keep });
        Ok(())
    }

    fn directories_of(&self, name: &str) -> Vec<PathBuf> {
        let parents = Path::new(name).ancestors().skip(1);
        let below = parents.filter(|parent| !parent.as_os_str().is_empty());
        below.map(|parent| self.directory.join(parent)).collect()
    }

    /// Reads the manifest. An unreadable one counts as missing: all files are then treated as the user's and kept.
    fn list(&self) -> Result<List, InstallError> {
        let content = plan::read(&self.directory.join(LIST))?.unwrap_or_default();
        let mut list: List = serde_json::from_slice(&content).unwrap_or_default();
        // A manipulated manifest must not be able to remove other files.
        list.files.retain(|name, _| {
            let mut components = Path::new(name).components();
            !name.is_empty() && components.all(|component| matches!(component, Component::Normal(_)))
        });
        Ok(list)
    }

    fn check_not_linked(&self) -> Result<(), InstallError> {
        if self.is_linked() {
            return Err(InstallError::Linked {
                path: self.directory.clone(),
            });
        }
        Ok(())
    }

    fn is_linked(&self) -> bool {
        fs::symlink_metadata(&self.directory).is_ok_and(|metadata| metadata.is_symlink())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NoRunner;

    fn package(home: &tempfile::TempDir, files: &[(&str, &str)]) -> Package {
        Package {
            directory: home.path().join("pack/alongside/start/alongside"),
            own_parents: 2,
            program: PathBuf::from("/opt/alongside"),
            files: files
                .iter()
                .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
                .collect(),
        }
    }

    const FILES: [(&str, &str); 2] = [("lua/alongside/init.lua", "one"), ("plugin/alongside.lua", "two")];

    fn install(package: &Package) {
        package.plan_install().unwrap().carry_out(&NoRunner).unwrap();
    }

    #[test]
    fn uninstall_leaves_no_trace() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("pack")).unwrap();
        let package = package(&home, &FILES);
        assert_eq!(package.state().unwrap(), InstallState::Absent);
        assert!(package.plan_uninstall().unwrap().is_empty());
        install(&package);
        assert_eq!(package.state().unwrap(), InstallState::Installed);
        assert_eq!(
            fs::read_to_string(package.directory.join("plugin/alongside.lua")).unwrap(),
            "two"
        );
        assert!(package.plan_install().unwrap().is_empty());
        package.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
        assert_eq!(fs::read_dir(home.path().join("pack")).unwrap().count(), 0);
    }

    #[test]
    fn update_replaces_our_files_and_removes_dropped_ones() {
        let home = tempfile::tempdir().unwrap();
        install(&package(&home, &FILES));
        let new = package(&home, &[("plugin/alongside.lua", "new")]);
        assert_eq!(new.state().unwrap(), InstallState::Outdated);
        let plan = new.plan_install().unwrap();
        assert!(plan.remarks.is_empty());
        let steps = plan.carry_out(&NoRunner).unwrap();
        assert!(steps.iter().all(|step| step.backup.is_none()));
        assert!(!new.directory.join("lua/alongside/init.lua").exists());
        assert_eq!(new.state().unwrap(), InstallState::Installed);
    }

    #[test]
    fn unknown_files_stay_and_edited_files_are_backed_up() {
        let home = tempfile::tempdir().unwrap();
        let package = package(&home, &FILES);
        let mine = package.directory.join("plugin/mine.lua");
        let theirs = package.directory.join("plugin/alongside.lua");
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        fs::write(&theirs, "written before alongside came").unwrap();
        install(&package);
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "two");
        let backup = theirs.with_file_name("alongside.lua.alongside-backup");
        assert_eq!(fs::read_to_string(&backup).unwrap(), "written before alongside came");
        fs::write(&theirs, "edited after").unwrap();
        assert_eq!(package.state().unwrap(), InstallState::Edited);
        package.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
        assert!(!theirs.exists() && !package.directory.join("lua").exists());
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        let second = theirs.with_file_name("alongside.lua.alongside-backup-2");
        assert_eq!(fs::read_to_string(second).unwrap(), "edited after");
    }

    #[test]
    fn forged_manifest_reaches_nothing_outside() {
        let home = tempfile::tempdir().unwrap();
        let package = package(&home, &FILES);
        let outside = home.path().join("pack/alongside/start/precious");
        install(&package);
        fs::write(&outside, "precious").unwrap();
        let absolute = outside.to_str().unwrap();
        let digest = digest(b"precious");
        let list =
            format!("{{\"version\":\"1\",\"files\":{{\"../precious\":\"{digest}\",{absolute:?}:\"{digest}\"}}}}");
        fs::write(package.directory.join(LIST), list).unwrap();
        package.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
        assert!(outside.exists());
    }

    #[cfg(unix)]
    #[test]
    fn symlinked_directory_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let package = package(&home, &FILES);
        fs::create_dir_all(package.directory.parent().unwrap()).unwrap();
        fs::create_dir(home.path().join("checkout")).unwrap();
        std::os::unix::fs::symlink(home.path().join("checkout"), &package.directory).unwrap();
        assert!(matches!(package.plan_install(), Err(InstallError::Linked { .. })));
        assert!(matches!(package.plan_uninstall(), Err(InstallError::Linked { .. })));
        assert_eq!(package.state().unwrap(), InstallState::Linked);
    }
}
