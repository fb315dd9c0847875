//! A call of a tool in one pass over its text.
//!
//! Reading the envelope, then its parameters, then their arguments and then each of them goes through a proposal four times. Here,
//! everything that is not a valid call with a few texts as arguments is left to those steps, and to their error messages.

use std::borrow::Cow;
use std::fmt;

use alongside_wire::rpc;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::arguments::{Name, Texts};

pub(super) struct WholeCall<'a> {
    pub(super) id: &'a RawValue,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Texts<'a>,
}

pub(super) fn parse(message: &str) -> Option<WholeCall<'_>> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        jsonrpc: Cow<'a, str>,
        #[serde(borrow)]
        id: &'a RawValue,
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Parameters<'a>,
    }

    // Serde would also read an array into the fields of a structure.
    if !message.trim_ascii_start().starts_with('{') {
        return None;
    }
    let Call {
        jsonrpc,
        id,
        method,
        params,
    } = serde_json::from_str(message).ok()?;
    let is_call = jsonrpc == "2.0" && method == "tools/call" && rpc::is_id(id);
    is_call.then_some(WholeCall {
        id,
        name: params.name,
        arguments: params.arguments,
    })
}

struct Parameters<'a> {
    name: Cow<'a, str>,
    arguments: Texts<'a>,
}

/// Only from an object, and not with the same parameter twice.
impl<'de: 'a, 'a> Deserialize<'de> for Parameters<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Parameters<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut name, mut arguments) = (None, None);
                while let Some(key) = map.next_key::<Name<'de>>()? {
                    match &*key.0 {
                        "name" if name.is_none() => name = Some(map.next_value::<Name<'de>>()?.0),
                        "arguments" if arguments.is_none() => arguments = Some(map.next_value()?),
                        "name" | "arguments" => return Err(serde::de::Error::custom("the same parameter twice")),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Parameters {
                    name: name.ok_or_else(|| serde::de::Error::missing_field("name"))?,
                    arguments: arguments.unwrap_or_default(),
                })
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::arguments::SharedText;

    /// Id, name and arguments of a call.
    fn read(message: &str) -> Option<String> {
        let call = parse(message)?;
        let arguments = call.arguments.0.into_iter();
        let mut arguments: Vec<_> = arguments
            .map(|(Name(name), SharedText(text))| format!("{name}={text}"))
            .collect();
        arguments.sort();
        Some(format!("{} {}({})", call.id, call.name, arguments.join(",")))
    }

    #[test]
    fn call_with_texts_is_read_whatever_its_order() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"b":"","a":"x\ny\ud83d\ude00"}}}"#,
            r#" {"params":{"_meta":{"b":[1]},"arguments":{"a":"x\ny😀","b":""},"name":"\u0074"},"other":null,"method":"tools\/call","id":1,"jsonrpc":"2.0"} "#,
        ] {
            assert_eq!(read(message).as_deref(), Some("1 t(a=x\ny😀,b=)"), "{message}");
        }
        let without = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}"#;
        assert_eq!(read(without).as_deref(), Some(r#""x" t()"#));
    }

    #[test]
    fn call_with_more_texts_than_any_tool_has_is_left_to_the_steps() {
        let call = |count| {
            let arguments: Vec<_> = (0..count).map(|number| format!(r#""{number}":"""#)).collect();
            let arguments = arguments.join(",");
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{{arguments}}}}}}}"#
            )
        };
        assert!(read(&call(16)).is_some());
        assert!(read(&call(17)).is_none());
    }

    #[test]
    fn everything_else_is_left_to_the_steps() {
        for message in [
            "",
            "{",
            "[]",
            r#"["2.0",1,"tools/call",{"name":"t"}]"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":[],"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["t",{}]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"u"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":true}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"\ud83d"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}} x"#,
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }
}
