//! The arguments of a tool.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Arguments by name. Unknown ones, such as `suppressNotification`, have no effect.
pub(super) struct Arguments<'a> {
    tool: String,
    values: HashMap<Cow<'a, str>, Argument<'a>>,
}

enum Argument<'a> {
    /// As it was sent.
    Raw(&'a RawValue),
    Text(Arc<str>),
}

impl<'a> Arguments<'a> {
    pub(super) fn parse(tool: &str, arguments: Option<&'a RawValue>) -> Result<Self, String> {
        let text = arguments.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            return Err(format!("The arguments of {tool} must be an object."));
        }
        let values: HashMap<Cow<'a, str>, &'a RawValue> =
            serde_json::from_str(text).map_err(|error| format!("Invalid arguments for {tool}: {error}."))?;
        let values = values.into_iter().map(|(name, value)| (name, Argument::Raw(value)));
        Ok(Self {
            tool: tool.to_owned(),
            values: values.collect(),
        })
    }

    pub(super) fn of_texts(tool: &str, texts: HashMap<String, SharedText>) -> Self {
        let values = texts.into_iter();
        Self {
            tool: tool.to_owned(),
            values: values
                .map(|(name, SharedText(text))| (name.into(), Argument::Text(text)))
                .collect(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.shared_text(name).map(|text| text.to_string())
    }

    /// A text that may be large: it is copied once.
    pub(super) fn shared_text(&self, name: &str) -> Result<Arc<str>, String> {
        let tool = &self.tool;
        match self.values.get(name) {
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
