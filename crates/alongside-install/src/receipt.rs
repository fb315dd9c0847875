//! What was installed, so that uninstalling removes exactly that.
//!
//! An extension or a setting that was there before is not in the receipt, and is left alone. The receipt disappears with its
//! last entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::{self, missing_directories, write_whole};
use super::{InstallContext, InstallError};
use alongside_core::HookAgent;
use alongside_core::dialect::AgentKind;
use alongside_discovery::{Environment, Platform};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Receipt {
    /// By the editor's id.
    editors: BTreeMap<String, Installed>,
    settings: Vec<ChangedSetting>,
    hooks: BTreeMap<HookAgent, ChangedFile>,
    /// Directories created for the receipt itself, and others that it is in.
    directories: Vec<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Installed {
    /// By id; our own with the digest of its package after an `@`.
    extensions: BTreeSet<String>,
    /// The one that our extension starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

/// An agent's settings file that was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedSetting {
    pub(super) agent: AgentKind,
    pub(super) path: PathBuf,
    /// `None` if there was no file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) directories: Vec<PathBuf>,
}

/// A file that was changed, or created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedFile {
    pub(super) path: PathBuf,
    /// `None` if there was no file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) directories: Vec<PathBuf>,
}

impl Receipt {
    /// An unreadable receipt is treated as empty: then nothing is removed that may be the user's.
    pub(super) fn load(context: &InstallContext<'_>) -> Self {
        let path = place(context.environment);
        let json = path.and_then(|path| plan::read(&path).ok().flatten());
        json.and_then(|json| serde_json::from_slice(&json).ok())
            .unwrap_or_default()
    }

    pub(super) fn update(context: &InstallContext<'_>, change: impl FnOnce(&mut Self)) -> Result<(), InstallError> {
        let path = place(context.environment).ok_or(InstallError::NoHome)?;
        let mut receipt = Self::load(context);
        change(&mut receipt);
        if receipt.editors.is_empty() && receipt.settings.is_empty() && receipt.hooks.is_empty() {
            let _ = fs::remove_file(&path);
            remove_directories(&receipt.directories);
            return Ok(());
        }
        receipt.directories.extend(missing_directories(&path));
        let json = serde_json::to_vec_pretty(&receipt).unwrap_or_default();
        write_whole(&path, &json)
    }

    /// `program` is in the package of an extension.
    pub(super) fn add(&mut self, editor: &str, extensions: Vec<String>, directories: Vec<PathBuf>, program: &Path) {
        let installed = self.editors.entry(editor.to_owned()).or_default();
        if !extensions.is_empty() {
            installed.program = Some(program.to_owned());
        }
        for extension in &extensions {
            let id = extension_id(extension);
            installed.extensions.retain(|known| extension_id(known) != id);
        }
        installed.extensions.extend(extensions);
        installed.directories.extend(directories);
    }

    /// Directories that are not empty yet may be so without the receipt.
    pub(super) fn forget(&mut self, editor: &str) {
        let installed = self.editors.remove(editor).unwrap_or_default();
        let left = installed.directories.into_iter().filter(|directory| directory.exists());
        self.directories.extend(left);
    }

    pub(super) fn has_editor(&self, editor: &str) -> bool {
        self.editors.contains_key(editor)
    }

    /// What was noted for an extension, by its id.
    pub(super) fn extension(&self, editor: &str, id: &str) -> Option<&str> {
        let extensions = &self.editors.get(editor)?.extensions;
        extensions
            .iter()
            .map(String::as_str)
            .find(|known| extension_id(known) == id)
    }

    /// The program that an editor's extension was installed with.
    pub(super) fn program(&self, editor: &str) -> Option<PathBuf> {
        self.editors.get(editor)?.program.clone()
    }

    /// Deepest first.
    pub(super) fn directories(&self, editor: &str) -> Vec<PathBuf> {
        let installed = self.editors.get(editor);
        let mut directories: Vec<PathBuf> = installed
            .map(|installed| installed.directories.iter().cloned().collect())
            .unwrap_or_default();
        directories.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        directories
    }

    /// Whether an editor other than these was installed.
    pub(super) fn has_others(&self, editors: &[&str]) -> bool {
        self.editors.keys().any(|editor| !editors.contains(&editor.as_str()))
    }

    pub(super) fn set_hook(&mut self, agent: HookAgent, changed: ChangedFile) {
        self.hooks.insert(agent, changed);
    }

    /// Directories that are not empty yet may be so without the receipt.
    pub(super) fn forget_hook(&mut self, agent: HookAgent) {
        let directories = self.hooks.remove(&agent).map(|changed| changed.directories);
        let left = directories.into_iter().flatten().filter(|directory| directory.exists());
        self.directories.extend(left);
    }

    pub(super) fn hook(&self, agent: HookAgent) -> Option<&ChangedFile> {
        self.hooks.get(&agent)
    }

    pub(super) fn set_setting(&mut self, setting: ChangedSetting) {
        self.settings.retain(|known| known.agent != setting.agent);
        self.settings.push(setting);
    }

    pub(super) fn forget_setting(&mut self, agent: AgentKind) {
        self.settings.retain(|known| known.agent != agent);
    }

    pub(super) fn setting(&self, agent: AgentKind) -> Option<&ChangedSetting> {
        self.settings.iter().find(|known| known.agent == agent)
    }
}

fn extension_id(noted: &str) -> &str {
    noted.split('@').next().unwrap_or(noted)
}

/// In the directory with the companion's own state.
fn place(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name| {
        environment
            .variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = match environment.platform {
        // The other one is part of a roaming profile, and what is noted here is true on this machine.
        Platform::Windows => absolute("LOCALAPPDATA"),
        Platform::Unix | Platform::MacOs => absolute("XDG_STATE_HOME"),
    };
    let state = state.or_else(|| Some(environment.home.as_ref()?.join(".local").join("state")))?;
    Some(state.join("alongside").join("installed.json"))
}

fn remove_directories(directories: &[PathBuf]) {
    let mut directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
    directories.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for directory in directories {
        // If it is not empty, it is in use.
        let _ = fs::remove_dir(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::DetectedIde;
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};

    #[test]
    fn receipts_are_not_part_of_a_roaming_profile() {
        let environment = Environment {
            platform: Platform::Windows,
            ..Environment::new("/home", "/")
        };
        let environment = environment.with("APPDATA", "/roaming").with("LOCALAPPDATA", "/local");
        assert_eq!(
            place(&environment).unwrap(),
            Path::new("/local/alongside/installed.json")
        );
    }

    #[test]
    fn uninstall_leaves_an_empty_home_empty() {
        for platform in [Platform::Unix, Platform::MacOs] {
            for ide in [
                DetectedIde::Neovim,
                DetectedIde::Vim,
                DetectedIde::Emacs,
                DetectedIde::Helix,
                DetectedIde::Kakoune,
            ] {
                let scene = Fixture::on(platform).with_plugin(ide.id(), "plugin/alongside.x", "text");
                let context = scene.context();
                let installer = installer(ide, &context).unwrap();
                assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done, "{ide:?}");
                assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done, "{ide:?}");
                let left: Vec<_> = fs::read_dir(scene.home())
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .collect();
                assert!(left.is_empty(), "{ide:?}: {left:?}");
            }
        }
    }

    #[test]
    fn directory_that_was_there_before_stays() {
        let scene = Fixture::on(Platform::Unix);
        let directory = scene.home().join(".config/helix");
        fs::create_dir_all(&directory).unwrap();
        let context = scene.context();
        let installer = installer(DetectedIde::Helix, &context).unwrap();
        installer.install(Mode::Real);
        installer.uninstall(Mode::Real);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}
