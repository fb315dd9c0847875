//! Pieces of a message.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::{owned_text, text_of};

/// One piece of a prompt or of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentBlock {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its bytes in base 64.
        data: String,
        /// What kind of picture it is.
        mime_type: String,
    },
    /// A file or page that is named, not included.
    ResourceLink {
        /// What people call it.
        name: String,
        /// Where it is.
        uri: String,
    },
    /// Anything else, as it came or as it shall go.
    Other(Value),
}

impl ContentBlock {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Reads a piece in the protocol's JSON.
    pub fn read(value: &Value) -> Self {
        match text_of(value, "type") {
            Some("text") => Self::Text(owned_text(value, "text")),
            Some("image") if text_of(value, "data").is_some() => Self::Image {
                data: owned_text(value, "data"),
                mime_type: owned_text(value, "mimeType"),
            },
            Some("resource_link") => Self::ResourceLink {
                name: owned_text(value, "name"),
                uri: owned_text(value, "uri"),
            },
            _ => Self::Other(value.clone()),
        }
    }

    /// The piece in the protocol's JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
            Self::ResourceLink { name, uri } => json!({"type": "resource_link", "name": name, "uri": uri}),
            Self::Other(value) => value.clone(),
        }
    }

    /// The text of a piece of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// All text of several pieces, one after the other.
    pub fn text_of_all(blocks: &[Self]) -> String {
        blocks.iter().filter_map(Self::as_text).collect()
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::read(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_comes_back_as_it_went() {
        for value in [
            json!({"type": "text", "text": "é"}),
            json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            json!({"type": "resource_link", "name": "a", "uri": "file:///a"}),
            json!({"type": "image", "attachmentId": "a.png", "mimeType": "image/png", "size": 7}),
            json!({"type": "hologram", "beam": 1}),
        ] {
            assert_eq!(ContentBlock::read(&value).to_json(), value);
        }
    }
}
