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
    /// A file that the user attached to a prompt, with its content. Front ends send it; agents get it in their own way.
    File {
        name: String,
        mime_type: String,
        /// In base 64.
        data: String,
    },
    /// A file that was attached to a message, without its content.
    Attachment {
        /// Its name, and its id for [`super::AgentCommand::ReadAttachment`].
        name: String,
        mime_type: String,
        bytes: u64,
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
            Self::File { name, mime_type, data } => {
                json!({"type": "file", "name": name, "mimeType": mime_type, "data": data})
            }
            // Qwen Code's JSON for it.
            Self::Attachment { name, mime_type, bytes } => {
                let kind = if is_image(mime_type) { "image" } else { "resource" };
                json!({"type": kind, "attachmentId": name, "mimeType": mime_type, "size": bytes})
            }
            Self::Other(value) => value.clone(),
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The attached file that this part is about.
    pub fn attachment(&self) -> Option<Self> {
        match self {
            Self::Attachment { .. } => Some(self.clone()),
            Self::File { name, mime_type, data } => Some(Self::Attachment {
                name: name.clone(),
                mime_type: mime_type.clone(),
                bytes: decoded_len(data),
            }),
            _ => None,
        }
    }

    /// The text of all text parts, concatenated.
    pub fn text_of_all(blocks: &[Self]) -> String {
        blocks.iter().filter_map(Self::as_text).collect()
    }
}

/// Whether the content of such a file is an image to agents.
pub fn is_image(mime_type: &str) -> bool {
    matches!(
        mime_type,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/bmp"
    )
}

/// The length of base 64 in bytes, decoded.
fn decoded_len(data: &str) -> u64 {
    let digits = data.trim_end_matches('=').len() as u64;
    digits * 3 / 4
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
            Some("image" | "resource") if string("attachmentId").is_some() => {
                let bytes = value.get("size").and_then(Value::as_u64);
                let block = Self::Attachment {
                    name: owned("attachmentId"),
                    mime_type: owned("mimeType"),
                    bytes: bytes.unwrap_or_default(),
                };
                // One that would not be written back the same is kept as it is.
                Some(block)
                    .filter(|block| block.to_json() == *value)
                    .unwrap_or_else(|| Self::Other(value.clone()))
            }
            Some("file") => Self::File {
                name: owned("name"),
                mime_type: owned("mimeType"),
                data: owned("data"),
            },
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
            json!({"type": "resource", "attachmentId": "a.txt", "mimeType": "text/plain", "size": 0}),
            json!({"type": "resource", "attachmentId": "a.png", "mimeType": "image/png", "size": 7, "more": 1}),
            json!({"type": "file", "name": "a.txt", "mimeType": "text/plain", "data": "AAA="}),
            json!({"type": "hologram", "beam": 1}),
        ] {
            assert_eq!(ContentBlock::from(&value).to_json(), value);
        }
    }

    #[test]
    fn attachment_of_a_file_has_its_length() {
        for (data, expected) in [("", 0), ("AA==", 1), ("AAA=", 2), ("AAAA", 3), ("AAAAAAA=", 5)] {
            let file = ContentBlock::from(json!({"type": "file", "name": "a", "mimeType": "b/c", "data": data}));
            let Some(ContentBlock::Attachment { bytes, .. }) = file.attachment() else {
                panic!("{file:?}")
            };
            assert_eq!(bytes, expected, "{data}");
        }
    }
}
