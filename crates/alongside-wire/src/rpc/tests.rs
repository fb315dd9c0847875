//! The envelope by example.

use serde_json::{Value, json};

use super::*;

fn strict_code(text: &str) -> i64 {
    match Payload::parse_strict(text) {
        Err(invalid) => invalid.error.code,
        Ok(_) => 0,
    }
}

#[test]
fn invalid_json_and_invalid_messages_have_different_codes() {
    for text in ["", "{", "nonsense", "{} {}", "[1,", r#"{"a":1} x"#] {
        assert_eq!(strict_code(text), PARSE_ERROR, "{text}");
    }
    for text in [
        "1",
        "null",
        "[]",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
    ] {
        assert_eq!(strict_code(text), INVALID_REQUEST, "{text}");
    }
    assert_eq!(
        Message::parse_bytes(b"{\"method\":\"\xff\"}").unwrap_err().error.code,
        PARSE_ERROR
    );
}

#[test]
fn id_is_returned_byte_for_byte() {
    for id in ["1", "-5", "12345678901234567890123", "1.50", r#""\u0061\/b""#, r#""""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let Ok(Payload::One(Message::Request(request))) = Payload::parse_strict(&text) else {
            panic!("not a request: {text}");
        };
        assert_eq!(
            request.response(&"yes"),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"yes"}}"#)
        );
        assert_eq!(serde_json::to_string(&RequestId::from(request.id)).unwrap(), id);
    }
}

#[test]
fn strict_responses_and_notifications_are_recognized() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"no"}}"#,
    ] {
        assert!(
            matches!(Message::parse_strict(text), Ok(Message::Response(_))),
            "{text}"
        );
    }
    let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(matches!(Message::parse_strict(text), Ok(Message::Notification(_))));
}

#[test]
fn lenient_messages_are_classified() {
    let kind = |text: &str| match Message::parse(text) {
        Ok(Message::Request(request)) => format!("request {} {}", request.id, request.method),
        Ok(Message::Notification(notification)) => format!("notification {}", notification.method),
        Ok(Message::Response(response)) => match &response.result {
            Ok(result) => format!("response {:?} {result}", response.number()),
            Err(error) => format!("response {:?} {error}", response.number()),
        },
        Err(invalid) => format!("invalid {}", invalid.error.code),
    };
    for (text, expected) in [
        (r#"{"id":"a","method":"m","params":{}}"#, r#"request "a" m"#),
        (r#"{"method":"n"}"#, "notification n"),
        (r#"{"id":null,"method":"n"}"#, "notification n"),
        (r#"{"id":3,"result":null}"#, "response Some(3) null"),
        (r#"{"id":3}"#, "response Some(3) null"),
        (r#"{"id":3,"error":null,"result":1}"#, "response Some(3) 1"),
        (
            r#"{"id":"x","error":{"message":"never"}}"#,
            "response None never (code 0)",
        ),
        (
            r#"{"id":4,"error":{"code":-32603,"message":"Internal error","data":1}}"#,
            "response Some(4) Internal error (code -32603)",
        ),
        (r#"{"id":4,"error":"broken"}"#, "response Some(4) broken (code 0)"),
        (r#"{"id":null,"error":{"message":"no"}}"#, "response None no (code 0)"),
        ("Loaded cached credentials.", "invalid -32700"),
        ("", "invalid -32700"),
        ("[1]", "invalid -32600"),
        ("{}", "invalid -32600"),
        (r#"{"id":null,"result":1}"#, "invalid -32600"),
        (r#"{"method":7}"#, "invalid -32600"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn invalid_message_is_answered_with_the_id_it_has() {
    let invalid = Message::parse_strict(r#"{"id":7,"method":"m"}"#).unwrap_err();
    assert_eq!(
        invalid.to_response(),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`jsonrpc` must be \"2.0\""}}"#
    );
    let unreadable = Message::parse("{").unwrap_err().to_response();
    let unreadable: Value = serde_json::from_str(&unreadable).unwrap();
    assert_eq!(unreadable["id"], Value::Null);
}

#[test]
fn batch_keeps_valid_and_invalid_messages() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},3,{"jsonrpc":"2.0","method":"b"}]"#;
    let Ok(Payload::Batch(messages)) = Payload::parse_strict(text) else {
        panic!("not a batch");
    };
    assert!(matches!(messages[0], Ok(Message::Request(_))));
    assert!(messages[1].is_err());
    assert!(matches!(messages[2], Ok(Message::Notification(_))));
}

#[test]
fn written_messages_have_no_extra_keys() {
    assert_eq!(
        request(7, "m", Some(&json!([1]))).unwrap(),
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}"#
    );
    assert_eq!(
        notification("m", None::<&()>).unwrap(),
        r#"{"jsonrpc":"2.0","method":"m"}"#
    );
    let error = RpcError::new(1, "no");
    assert_eq!(
        error_response(None, &error),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}"#
    );
    let error = error.with_data(json!({"kind": "x"}));
    assert_eq!(
        error_response(Some(RawValue::TRUE), &error),
        r#"{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"no","data":{"kind":"x"}}}"#
    );
}

#[test]
fn unserializable_result_becomes_an_error_response() {
    let unserializable = std::collections::BTreeMap::from([((1, 2), 3)]);
    let text = response(RawValue::NULL, &unserializable);
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(response["error"]["code"], INTERNAL_ERROR);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
enum Call<'a> {
    #[serde(rename = "open")]
    Open { path: &'a str },
    #[serde(rename = "list")]
    List {},
}

#[test]
fn params_are_borrowed_from_the_message() {
    let text = r#"{"params":{"path":"/a"},"id":1,"method":"open"}"#;
    let Ok(Message::Request(request)) = Message::parse(text) else {
        panic!("not a request");
    };
    let call: Call<'_> = parse_call(&request.method, request.params).unwrap();
    assert_eq!(call, Call::Open { path: "/a" });
    let Call::Open { path } = call else { return };
    assert!(text.as_bytes().as_ptr_range().contains(&path.as_ptr()));
}

#[test]
fn written_call_can_be_parsed() {
    let text = write_call(Some(7), &Call::Open { path: "/a" }).unwrap();
    assert_eq!(
        text,
        r#"{"jsonrpc":"2.0","id":7,"method":"open","params":{"path":"/a"}}"#
    );
    let Ok(Message::Request(request)) = Message::parse_strict(&text) else {
        panic!("not a request");
    };
    let call: Call<'_> = parse_call(&request.method, request.params).unwrap();
    assert_eq!(call, Call::Open { path: "/a" });
    assert_eq!(
        write_call(None, &Call::List {}).unwrap(),
        r#"{"jsonrpc":"2.0","method":"list","params":{}}"#
    );
}

#[test]
fn missing_params_are_an_empty_object() {
    assert_eq!(parse_call::<Call<'_>>("list", None).unwrap(), Call::List {});
    assert_eq!(parse_params::<Value>("list", None).unwrap(), json!({}));
}

#[test]
fn wrong_params_are_reported_with_the_reason() {
    let reason = |method: &str, params: &str| {
        let params: &RawValue = serde_json::from_str(params).unwrap();
        let error = parse_call::<Call<'_>>(method, Some(params)).unwrap_err();
        assert_eq!(error.code, INVALID_PARAMS);
        error.message
    };
    assert!(reason("open", "{}").contains("missing field `path`"));
    assert!(reason("open", r#"["/a"]"#).contains("must be an object"));
    assert!(reason("closed", "{}").contains("unknown variant"));
}
