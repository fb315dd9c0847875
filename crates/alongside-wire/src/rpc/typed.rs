//! Parameters and whole calls as types.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess};
use serde_json::value::RawValue;

use super::error::{INVALID_PARAMS, RpcError};

/// Deserializes parameters. Missing ones are `{}`; a list is refused, although serde would read it into the fields of a structure.
pub fn parse_params<'a, P: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<P, RpcError> {
    let text = object(params)?;
    serde_json::from_str(text).map_err(|error| invalid(method, &error))
}

/// Deserializes a call into an enum of all calls, tagged by `method` with its content in `params`.
///
/// The parameters are read straight into the variant. Reading the whole message as the enum would instead buffer all of it as a
/// tree of values where `params` comes before `method`.
pub fn parse_call<'a, C: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<C, RpcError> {
    let fields = Fields {
        next: Field::Method,
        method,
        params: object(params)?,
    };
    C::deserialize(MapAccessDeserializer::new(fields)).map_err(|error| invalid(method, &error))
}

fn object(params: Option<&RawValue>) -> Result<&str, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    if text.starts_with('{') {
        Ok(text)
    } else {
        Err(RpcError::new(INVALID_PARAMS, "`params` must be an object"))
    }
}

fn invalid(method: &str, error: &serde_json::Error) -> RpcError {
    // Names of methods come from outside and may be of any length.
    let method: String = method.chars().take(100).collect();
    RpcError::new(INVALID_PARAMS, format!("invalid parameters for `{method}`: {error}"))
}

/// `{"method": …, "params": …}` in the order in which serde reads it without buffering.
struct Fields<'m, 'a> {
    next: Field,
    method: &'m str,
    params: &'a str,
}

#[derive(Clone, Copy)]
enum Field {
    Method,
    Params,
    End,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let key = match self.next {
            Field::Method => "method",
            Field::Params => "params",
            Field::End => return Ok(None),
        };
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        if matches!(self.next, Field::Method) {
            self.next = Field::Params;
            return seed.deserialize(self.method.into_deserializer());
        }
        self.next = Field::End;
        seed.deserialize(&mut serde_json::Deserializer::from_str(self.params))
    }
}
