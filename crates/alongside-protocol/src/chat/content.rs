//! Parts of a message.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One part of a prompt or of an answer, in ACP's JSON. Unknown parts are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub enum ContentBlock {
    Text(String),
    Image {
        /// In base 64.
        data: String,
        mime_type: String,
    },
    /// A file or page by its address, without its content.
    ResourceLink {
        name: String,
        uri: String,
    },
    Other(Value),
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
            Self::ResourceLink { name, uri } => json!({"type": "resource_link", "name": name, "uri": uri}),
            Self::Other(value) => value.clone(),
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of all text parts, concatenated.
    pub fn text_of_all(blocks: &[Self]) -> String {
        blocks.iter().filter_map(Self::as_text).collect()
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<&Value> for ContentBlock {
    fn from(value: &Value) -> Self {
        let string = |name: &str| value.get(name).and_then(Value::as_str);
        let owned = |name: &str| string(name).unwrap_or_default().to_owned();
        match string("type") {
            Some("text") => Self::Text(owned("text")),
            // Qwen Code also sends images that only name an attachment.
            Some("image") if string("data").is_some() => Self::Image {
                data: owned("data"),
                mime_type: owned("mimeType"),
            },
            Some("resource_link") => Self::ResourceLink {
                name: owned("name"),
                uri: owned("uri"),
            },
            _ => Self::Other(value.clone()),
        }
    }
}

impl From<Value> for ContentBlock {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<ContentBlock> for Value {
    fn from(block: ContentBlock) -> Self {
        block.to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_round_trips() {
        for value in [
            json!({"type": "text", "text": "é"}),
            json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            json!({"type": "resource_link", "name": "a", "uri": "file:///a"}),
            json!({"type": "image", "attachmentId": "a.png", "mimeType": "image/png", "size": 7}),
            json!({"type": "hologram", "beam": 1}),
        ] {
            assert_eq!(ContentBlock::from(&value).to_json(), value);
        }
    }
}
