//! Whether to use a daemon, and which.
//!
//! Each value is taken from the first source that has it; an empty string counts as unset.
//!
//! | value | 1. | 2. | 3. | otherwise |
//! |---|---|---|---|---|
//! | whether | `daemon.enabled` | `QWEN_IDE_DAEMON_URL` is set: yes | | no |
//! | address | `daemon.url` | `QWEN_IDE_DAEMON_URL` | | `http://127.0.0.1:4170` |
//! | token | `daemon.token` | the file `daemon.token-file` | `QWEN_SERVER_TOKEN` | none |
//! | certificates, for https | the file `daemon.ca-file` | | | the system's |
//!
//! So the daemon is off by default, `daemon.enabled = false` overrides the environment, and the user's settings take precedence over
//! environment variables.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::daemon::{AddressError, DaemonAddress};
use alongside_core::Secret;

/// The daemon's address. Setting this variable enables the daemon.
pub const URL_VARIABLE: &str = "QWEN_IDE_DAEMON_URL";

/// The daemon's token. `qwen serve` reads the same variable.
pub const TOKEN_VARIABLE: &str = "QWEN_SERVER_TOKEN";

/// The `daemon.*` settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSettings {
    pub enabled: Option<bool>,
    pub url: Option<String>,
    pub token: Option<Secret>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonTarget {
    pub address: DaemonAddress,
    pub token: Option<Secret>,
    /// The trusted certificates, for https.
    pub ca_file: Option<PathBuf>,
    /// Where the address comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Settings,
    Environment,
    Default,
}

/// Why an enabled daemon cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{origin}: {source}")]
    Address { origin: Origin, source: AddressError },
    #[error("cannot read daemon.token-file {}: {source}", path.display())]
    TokenFile { path: PathBuf, source: io::Error },
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Settings => "daemon.url",
            Self::Environment => URL_VARIABLE,
            Self::Default => "the default address",
        })
    }
}

/// Decides whether to use a daemon, and which. `None` means that it is not enabled.
///
/// The environment and the token file are passed as functions, for tests.
pub fn resolve_daemon(
    settings: &DaemonSettings,
    environment: impl Fn(&str) -> Option<String>,
    read_file: impl Fn(&Path) -> io::Result<String>,
) -> Result<Option<DaemonTarget>, SettingsError> {
    let from_environment = environment(URL_VARIABLE).filter(|url| !url.trim().is_empty());
    if !settings.enabled.unwrap_or(from_environment.is_some()) {
        return Ok(None);
    }
    let from_settings = settings.url.clone().filter(|url| !url.trim().is_empty());
    let (url, origin) = match (from_settings, from_environment) {
        (Some(url), _) => (Some(url), Origin::Settings),
        (None, Some(url)) => (Some(url), Origin::Environment),
        (None, None) => (None, Origin::Default),
    };
    let address = url
        .as_deref()
        .map_or_else(|| Ok(DaemonAddress::default()), DaemonAddress::parse);
    let address = address.map_err(|source| SettingsError::Address { origin, source })?;
    let token = match (&settings.token, &settings.token_file) {
        (Some(token), _) => Some(token.clone()),
        (None, Some(path)) => {
            let text = read_file(path).map_err(|source| SettingsError::TokenFile {
                path: path.clone(),
                source,
            })?;
            Secret::new(&text)
        }
        (None, None) => None,
    };
    let token = token.or_else(|| environment(TOKEN_VARIABLE).and_then(|token| Secret::new(&token)));
    Ok(Some(DaemonTarget {
        address,
        token,
        ca_file: settings.ca_file.clone(),
        origin,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:5000/";

    fn resolve(settings: &DaemonSettings, variables: &[(&str, &str)]) -> Result<Option<DaemonTarget>, SettingsError> {
        let environment = |name: &str| {
            let mut variables = variables.iter();
            variables
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let read_file = |path: &Path| match path.to_str() {
            Some("/token") => Ok("from the file\n".to_owned()),
            Some("/empty") => Ok("\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        resolve_daemon(settings, environment, read_file)
    }

    fn enabled() -> DaemonSettings {
        DaemonSettings {
            enabled: Some(true),
            ..DaemonSettings::default()
        }
    }

    fn token(settings: &DaemonSettings, variables: &[(&str, &str)]) -> Option<String> {
        resolve(settings, variables)
            .unwrap()
            .unwrap()
            .token
            .map(|token| token.reveal().to_owned())
    }

    #[test]
    fn daemon_is_off_by_default() {
        assert_eq!(resolve(&DaemonSettings::default(), &[]).unwrap(), None);
        assert_eq!(
            resolve(
                &DaemonSettings::default(),
                &[(TOKEN_VARIABLE, "x"), (URL_VARIABLE, " ")]
            )
            .unwrap(),
            None
        );
        let only_url = DaemonSettings {
            url: Some(URL.to_owned()),
            ..DaemonSettings::default()
        };
        assert_eq!(resolve(&only_url, &[]).unwrap(), None);
    }

    #[test]
    fn variable_enables_and_setting_overrides() {
        let target = resolve(&DaemonSettings::default(), &[(URL_VARIABLE, URL)])
            .unwrap()
            .unwrap();
        assert_eq!(
            (target.address.to_string().as_str(), target.origin),
            (URL, Origin::Environment)
        );
        let off = DaemonSettings {
            enabled: Some(false),
            ..DaemonSettings::default()
        };
        assert_eq!(resolve(&off, &[(URL_VARIABLE, URL)]).unwrap(), None);
    }

    #[test]
    fn address_from_settings_then_environment_then_default() {
        let both = DaemonSettings {
            url: Some("http://localhost:1".to_owned()),
            ..enabled()
        };
        let target = resolve(&both, &[(URL_VARIABLE, URL)]).unwrap().unwrap();
        assert_eq!(
            (target.address.to_string().as_str(), target.origin),
            ("http://localhost:1/", Origin::Settings)
        );
        let target = resolve(&enabled(), &[(URL_VARIABLE, URL)]).unwrap().unwrap();
        assert_eq!(target.origin, Origin::Environment);
        let empty = DaemonSettings {
            url: Some(String::new()),
            ..enabled()
        };
        let target = resolve(&empty, &[]).unwrap().unwrap();
        assert_eq!(
            (target.address.to_string().as_str(), target.origin),
            ("http://127.0.0.1:4170/", Origin::Default)
        );
    }

    #[test]
    fn token_from_settings_then_file_then_environment() {
        let variables = [(TOKEN_VARIABLE, " from the environment ")];
        let in_file = DaemonSettings {
            token_file: Some("/token".into()),
            ..enabled()
        };
        let everywhere = DaemonSettings {
            token: Secret::new("from the settings"),
            ..in_file.clone()
        };
        assert_eq!(token(&everywhere, &variables).as_deref(), Some("from the settings"));
        assert_eq!(token(&in_file, &variables).as_deref(), Some("from the file"));
        let empty_file = DaemonSettings {
            token_file: Some("/empty".into()),
            ..enabled()
        };
        assert_eq!(token(&empty_file, &variables).as_deref(), Some("from the environment"));
        assert_eq!(token(&enabled(), &variables).as_deref(), Some("from the environment"));
        assert_eq!(token(&enabled(), &[(TOKEN_VARIABLE, "  ")]), None);
    }

    #[test]
    fn settings_error_names_source_without_secrets() {
        let error = resolve(
            &DaemonSettings::default(),
            &[(URL_VARIABLE, "http://me:s3cret@127.0.0.1")],
        )
        .unwrap_err();
        assert!(error.to_string().starts_with(URL_VARIABLE), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"));
        let missing = DaemonSettings {
            token_file: Some("/missing".into()),
            ..enabled()
        };
        assert!(resolve(&missing, &[]).unwrap_err().to_string().contains("/missing"));
    }
}
