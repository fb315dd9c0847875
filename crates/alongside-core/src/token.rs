//! The secret that opens a port.

use std::fmt;

use subtle::ConstantTimeEq;

/// A 256-bit secret in hexadecimal, compared in constant time and never printed by accident.
#[derive(Clone, Eq)]
pub struct Token(String);

impl Token {
    /// Makes a token of 32 random bytes; the caller takes them from the system's generator.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        use fmt::Write;

        let mut text = String::with_capacity(64);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Takes a token read back from a file; `None` if it does not look like one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        well_formed.then(|| Self(text.to_owned()))
    }

    /// The secret itself, for the few places that must write it down.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this token; takes the same time wherever the two first differ.
    pub fn matches(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_itself_and_nothing_else() {
        let token = Token::from_bytes([7; 32]);
        assert!(token.matches(token.reveal()));
        assert!(!token.matches(""));
        assert!(!token.matches(&token.reveal()[1..]));
        assert!(!token.matches(Token::from_bytes([8; 32]).reveal()));
    }

    #[test]
    fn a_token_survives_being_written_and_read() {
        let token = Token::from_bytes([0xab; 32]);
        assert_eq!(Token::parse(token.reveal()), Some(token));
        assert_eq!(Token::parse("too short"), None);
    }

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", Token::from_bytes([1; 32])), "Token(…)");
    }
}
