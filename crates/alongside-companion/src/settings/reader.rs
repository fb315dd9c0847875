//! Reads values of a settings file, and says what is wrong with which line.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use super::keys::{Scope, all_keys};
use super::{Owner, SettingsError};

/// A settings file that is being read.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) owner: Owner<'a>,
}

impl Reader<'_> {
    pub(super) fn may_set(&self, scope: Scope) -> bool {
        self.owner == Owner::User || scope == Scope::UserOrWorkspace
    }

    pub(super) fn error(&self, place: Option<Range<usize>>, message: String) -> SettingsError {
        let line = place.map(|place| {
            self.text
                .bytes()
                .take(place.start)
                .filter(|&byte| byte == b'\n')
                .count()
                + 1
        });
        SettingsError {
            file: self.file.to_owned(),
            line,
            message,
        }
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        words: &[(&str, T)],
    ) -> Result<T, SettingsError> {
        let written = self.string(name, value)?;
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == written) {
            return Ok(*meant);
        }
        let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let message = format!("`{name}` must be {}", words.join(" or "));
        Err(self.error(Some(value.span()), message))
    }

    pub(super) fn unknown_key(&self, key: &str, place: Range<usize>) -> SettingsError {
        let is_known = all_keys().any(|(name, _)| name == key);
        let settable: Vec<&str> = all_keys()
            .filter(|(_, scope)| self.may_set(*scope))
            .map(|(name, _)| name)
            .collect();
        let message = if is_known && self.owner != Owner::User {
            format!("`{key}` cannot be set by a workspace; move it to your user settings")
        } else {
            match closest(key, &settable) {
                Some(meant) => format!("unknown setting `{key}`; did you mean `{meant}`?"),
                None => format!("unknown setting `{key}`; expected one of {}", settable.join(", ")),
            }
        };
        self.error(Some(place), message)
    }

    pub(super) fn string(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, SettingsError> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
            _ => Err(self.error(Some(value.span()), format!("`{key}` must be a non-empty string"))),
        }
    }

    pub(super) fn bool(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, SettingsError> {
        match value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.error(Some(value.span()), format!("`{key}` must be true or false"))),
        }
    }

    pub(super) fn number(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        range: RangeInclusive<u64>,
    ) -> Result<u64, SettingsError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let message = format!(
                "`{key}` must be a whole number from {} to {}",
                range.start(),
                range.end()
            );
            self.error(Some(value.span()), message)
        })
    }

    pub(super) fn strings(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, SettingsError> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.string(key, item)).collect(),
            _ => Err(self.error(
                Some(value.span()),
                format!("`{key}` must be a list of strings, such as [\"one\", \"two\"]"),
            )),
        }
    }
}

/// The key that was probably meant: few letters differ, in the whole or in its last part.
fn closest<'a>(key: &str, keys: &[&'a str]) -> Option<&'a str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().replace('_', "-");
    keys.iter()
        .map(|candidate| {
            (
                distance(key, candidate).min(distance(&last(key), &last(candidate)) + 1),
                *candidate,
            )
        })
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be changed, added or removed to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for place in 0..other.len() {
            let replaced = diagonal + usize::from(letter != other[place]);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row.pop().unwrap_or_default()
}
