//! A temporary home with editors in it, for tests.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use super::{InstallContext, Plugins, Runner};
use alongside_discovery::{Environment, Platform};

/// Path of this program.
pub(super) const PROGRAM: &str = "/opt/alongside/bin/alongside";

/// Fails every command.
pub(super) struct NoRunner;

impl Runner for NoRunner {
    fn run(&self, program: &Path, _arguments: &[String]) -> Result<String, String> {
        Err(format!("{} must not be run", program.display()))
    }
}

/// A fake editor command that records the extensions it was asked to install.
#[derive(Default)]
struct FakeRunner {
    extensions: RefCell<Vec<String>>,
    /// The packages that it was asked to install.
    packages: RefCell<Vec<Vec<u8>>>,
    failure: Option<String>,
}

impl Runner for FakeRunner {
    fn run(&self, _program: &Path, arguments: &[String]) -> Result<String, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut extensions = self.extensions.borrow_mut();
        match arguments {
            [option, package, ..] if option == "--install-extension" => {
                let content = fs::read(package).map_err(|error| error.to_string())?;
                self.packages.borrow_mut().push(content);
                extensions.retain(|other| !other.starts_with("alongside.alongside@"));
                extensions.push(format!("alongside.alongside@{}", env!("CARGO_PKG_VERSION")));
            }
            [option, id] if option == "--uninstall-extension" => {
                extensions.retain(|other| other.split('@').next() != Some(id));
            }
            _ => return Ok(extensions.join("\n")),
        }
        Ok(String::new())
    }
}

/// A home, a PATH and plugins.
pub(super) struct Fixture {
    scratch: tempfile::TempDir,
    environment: Environment,
    plugins: Plugins,
    runner: FakeRunner,
}

impl Fixture {
    pub(super) fn on(platform: Platform) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().join("home");
        let bin = scratch.path().join("bin");
        fs::create_dir(&home).unwrap();
        fs::create_dir(&bin).unwrap();
        let environment = Environment {
            platform,
            ..Environment::new(&home, scratch.path())
        };
        let environment = environment.with("PATH", bin.to_str().unwrap());
        let environment = match platform {
            Platform::Windows => environment.with("APPDATA", home.join("AppData/Roaming").to_str().unwrap()),
            Platform::Unix | Platform::MacOs => environment,
        };
        Self {
            scratch,
            environment,
            plugins: Plugins::default(),
            runner: FakeRunner::default(),
        }
    }

    pub(super) fn with_plugin(mut self, plugin: &str, file: &str, content: &str) -> Self {
        self.plugins = self.plugins.with(plugin, file, content);
        self
    }

    pub(super) fn with_program(self, name: &str) -> Self {
        let program = self.scratch.path().join("bin").join(name);
        fs::write(&program, "").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        self
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment = self.environment.with(name, value);
        self
    }

    /// What the fake editor prints for any command.
    pub(super) fn with_answer(self, answer: &str) -> Self {
        self.runner.extensions.borrow_mut().push(answer.to_owned());
        self
    }

    pub(super) fn with_embedded_plugins(mut self) -> Self {
        self.plugins = Plugins::embedded();
        self
    }

    pub(super) fn with_failing_commands(mut self, failure: &str) -> Self {
        self.runner.failure = Some(failure.to_owned());
        self
    }

    pub(super) fn context(&self) -> InstallContext<'_> {
        InstallContext {
            environment: &self.environment,
            plugins: &self.plugins,
            program: PathBuf::from(PROGRAM),
            runner: &self.runner,
        }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// The packages that the fake editor installed.
    pub(super) fn packages(&self) -> Vec<Vec<u8>> {
        self.runner.packages.borrow().clone()
    }

    /// The fake editor's extensions.
    pub(super) fn extensions(&self) -> Vec<String> {
        self.runner.extensions.borrow().clone()
    }

    pub(super) fn count_files(&self) -> usize {
        fn count(directory: &Path) -> usize {
            let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
            entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
        }
        count(&self.home())
    }
}
