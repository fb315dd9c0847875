//! The arguments of a tool.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Arguments by name. Unknown ones, such as `suppressNotification`, have no effect.
pub(super) struct Arguments<'a> {
    tool: String,
    /// Of those with the same name, the last one counts.
    values: Vec<(Name<'a>, Argument<'a>)>,
}

enum Argument<'a> {
    /// As it was sent.
    Raw(&'a RawValue),
    Text(Arc<str>),
}

/// Arguments that are read as texts at once. Tools have up to four; more could take more memory than the message that has them.
pub(super) type Texts<'a> = Entries<'a, SharedText, 16>;

/// The entries of an object, at most `MAX`.
pub(super) struct Entries<'a, V, const MAX: usize>(pub(super) Vec<(Name<'a>, V)>);

impl<V, const MAX: usize> Default for Entries<'_, V, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Entries<'a, V, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<V, const MAX: usize>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>, const MAX: usize> Visitor<'de> for Object<V, MAX> {
            type Value = Entries<'de, V, MAX>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MAX {
                        return Err(A::Error::custom("too many entries"));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Object(PhantomData))
    }
}

#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Arguments<'a> {
    pub(super) fn parse(tool: &str, arguments: Option<&'a RawValue>) -> Result<Self, String> {
        let text = arguments.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            return Err(format!("The arguments of {tool} must be an object."));
        }
        let values: Entries<'a, &'a RawValue, { usize::MAX }> =
            serde_json::from_str(text).map_err(|error| format!("Invalid arguments for {tool}: {error}."))?;
        let values = values.0.into_iter();
        Ok(Self {
            tool: tool.to_owned(),
            values: values.map(|(name, value)| (name, Argument::Raw(value))).collect(),
        })
    }

    pub(super) fn of_texts(tool: &str, texts: Texts<'a>) -> Self {
        let values = texts.0.into_iter();
        Self {
            tool: tool.to_owned(),
            values: values
                .map(|(name, SharedText(text))| (name, Argument::Text(text)))
                .collect(),
        }
    }

    fn get(&self, name: &str) -> Option<&Argument<'a>> {
        self.values
            .iter()
            .rev()
            .find(|(other, _)| other.0 == name)
            .map(|(_, value)| value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.shared_text(name).map(|text| text.to_string())
    }

    /// A text that may be large: it is copied once.
    pub(super) fn shared_text(&self, name: &str) -> Result<Arc<str>, String> {
        let tool = &self.tool;
        match self.get(name) {
            Some(Argument::Text(text)) => Ok(Arc::clone(text)),
            Some(Argument::Raw(value)) => match serde_json::from_str(value.get()) {
                Ok(SharedText(text)) => Ok(text),
                Err(_) => Err(format!(
                    "The argument {name} of {tool} must be a string of valid Unicode."
                )),
            },
            None => Err(format!("{tool} requires the string argument {name}.")),
        }
    }

    pub(super) fn path(&self, name: &str) -> Result<String, String> {
        let path = self.text(name)?;
        if path.is_empty() {
            let tool = &self.tool;
            return Err(format!(
                "The argument {name} of {tool} is empty; it must be the path of a file."
            ));
        }
        Ok(path)
    }
}

pub(super) struct SharedText(pub(super) Arc<str>);

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = SharedText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<SharedText, E> {
                Ok(SharedText(text.into()))
            }
        }

        deserializer.deserialize_str(Text)
    }
}
