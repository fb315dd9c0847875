//! A token that cannot be printed by accident.

use std::fmt;

/// The bearer token of a daemon. `Debug` hides it; only [`Secret::reveal`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a token as people write it: blanks around it do not count, and an empty one is none.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The token itself, for the header that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the token blotted out, for texts that come from elsewhere.
    pub(crate) fn blot_out(&self, text: &str) -> String {
        text.replace(&self.0, "…")
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
    fn debug_output_hides_the_secret() {
        let secret = Secret::new("s3cret").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.blot_out("Bearer s3cret!"), "Bearer …!");
    }

    #[test]
    fn blanks_around_a_token_do_not_count_and_an_empty_one_is_none() {
        assert_eq!(Secret::new(" x \n").unwrap().reveal(), "x");
        assert_eq!(Secret::new(" \t\n"), None);
    }
}
