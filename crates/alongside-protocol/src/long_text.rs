//! Long texts, copied only once: from the message into the shared text. Serde's own way has a `String` in between.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    LongText::deserialize(deserializer).map(|text| text.0)
}

pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    Ok(Option::<LongText>::deserialize(deserializer)?.map(|text| text.0))
}

struct LongText(Arc<str>);

impl<'de> Deserialize<'de> for LongText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl Visitor<'_> for TextVisitor {
            type Value = LongText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LongText, E> {
                Ok(LongText(text.into()))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}
