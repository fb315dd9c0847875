//! What differs between operating systems: how paths and URIs are spelled and compared, how programs are found and ended, how
//! files are replaced.
//!
//! The rules take the platform as a value, so that those of every platform can be tested on one machine.

pub mod path;
mod program;
mod replace;
mod tree;
pub mod uri;

pub use program::{is_executable, is_installed, on_path, program};
pub use replace::{persist, replace, unless_held};
pub use tree::ProcessTree;

/// A platform, as far as agents and editors distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other Unix systems.
    Unix,
    /// macOS: like Unix, with case-insensitive file names.
    MacOs,
    Windows,
}

impl Default for Platform {
    fn default() -> Self {
        Self::current()
    }
}

impl Platform {
    /// The platform this program was built for.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Unix
        }
    }

    /// The separator of path lists: Node's `path.delimiter`.
    pub const fn path_delimiter(self) -> char {
        match self {
            Self::Windows => ';',
            Self::Unix | Self::MacOs => ':',
        }
    }
}
