//! Secrets that grant access: the tokens of ports, the page's login, a daemon's token.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// A secret that is compared in constant time and that `Debug` does not show.
///
/// Generated secrets have 256 bits in hexadecimal. Only these can be deserialized, so a truncated or edited file never
/// yields a weak one. Secrets from elsewhere, such as a daemon's token in the settings, may have any form.
#[derive(Clone, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Secret(String);

impl Secret {
    /// Generates a secret. The bytes must come from the system's random generator.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        use fmt::Write;

        let mut text = String::with_capacity(64);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// A secret that another program issued; surrounding whitespace is dropped. `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// A generated secret, read back; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::try_from(text.to_owned()).ok()
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes the same time wherever the two first differ.
    pub fn matches(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// Replaces every occurrence of the secret in text from another program.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl TryFrom<String> for Secret {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_generated = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_generated {
            Ok(Self(text))
        } else {
            Err("a secret must have 64 hexadecimal digits")
        }
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_matches_itself_and_nothing_else() {
        let secret = Secret::from_bytes([7; 32]);
        assert!(secret.matches(secret.reveal()));
        assert!(!secret.matches(""));
        assert!(!secret.matches(&secret.reveal()[1..]));
        assert!(!secret.matches(Secret::from_bytes([8; 32]).reveal()));
    }

    #[test]
    fn generated_secret_survives_a_round_trip() {
        let secret = Secret::from_bytes([0xab; 32]);
        assert_eq!(Secret::parse(secret.reveal()), Some(secret.clone()));
        assert_eq!(Secret::parse("too short"), None);
        let json = serde_json::to_string(&secret).unwrap();
        assert_eq!(json, format!("\"{}\"", "ab".repeat(32)));
        assert_eq!(serde_json::from_str::<Secret>(&json).unwrap(), secret);
    }

    #[test]
    fn weak_secret_is_not_deserialized() {
        for text in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            let error = serde_json::from_value::<Secret>(text.into()).unwrap_err();
            assert!(error.to_string().contains("64 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn whitespace_around_a_foreign_secret_is_dropped() {
        assert_eq!(Secret::new(" x \n").unwrap().reveal(), "x");
        assert_eq!(Secret::new(" \t\n"), None);
    }

    #[test]
    fn debug_and_redacted_text_hide_the_secret() {
        let secret = Secret::new("s3cret").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.redact("Bearer s3cret!"), "Bearer …!");
    }
}
