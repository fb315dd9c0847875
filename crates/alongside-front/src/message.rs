//! Requests of front ends as JSON-RPC messages.

use alongside_protocol::{METHODS, Request, RequestError, Response};
use alongside_wire::rpc::{
    self, Envelope, INVALID_REQUEST, InvalidMessage, METHOD_NOT_FOUND, Message, RequestId, RpcError,
};
use serde_json::{Value, json};

/// The code of every error that is not about the message itself; the kind is in its data.
const REQUEST_FAILED: i64 = 1;

/// Reads a request. It has no id if no response is wanted.
pub(crate) fn parse(text: &str) -> Result<(Option<RequestId>, Request), InvalidMessage<'_>> {
    let (id, method, params) = match Envelope::parse(text)?.require_version()?.into_message()? {
        Message::Request(request) => (Some(request.id), request.method, request.params),
        Message::Notification(notification) => (None, notification.method, notification.params),
        Message::Response(response) => {
            return Err(InvalidMessage::new(
                Some(response.id),
                INVALID_REQUEST,
                "missing `method`",
            ));
        }
    };
    if !METHODS.contains(&&*method) {
        let message = format!("unknown method `{method}`; available methods: {}", METHODS.join(", "));
        return Err(InvalidMessage::new(id, METHOD_NOT_FOUND, message));
    }
    match rpc::parse_call(&method, params) {
        Ok(request) => Ok((id.map(RequestId::from), request)),
        Err(error) => Err(InvalidMessage { id, error }),
    }
}

/// A request's id, for notifications that follow from it.
pub(crate) fn id_value(id: &RequestId) -> Option<Value> {
    serde_json::from_str(id.as_raw().get()).ok()
}

pub(crate) fn response(id: &RequestId, result: Result<Response, RequestError>) -> String {
    match result {
        Ok(result) => rpc::response(id.as_raw(), &result),
        Err(error) => {
            let error = RpcError::new(REQUEST_FAILED, error.message).with_data(json!({ "kind": error.kind }));
            rpc::error_response(Some(id.as_raw()), &error)
        }
    }
}

#[cfg(test)]
mod tests {
    use alongside_protocol::{Empty, FilePath};

    use super::*;

    #[test]
    fn written_request_can_be_parsed() {
        let sent = Request::ContextOpen(FilePath {
            path: "/a \"b\"".into(),
        });
        let text = rpc::write_call(Some(7), &sent).unwrap();
        let (id, request) = parse(&text).unwrap();
        assert_eq!((id.unwrap().as_raw().get(), request), ("7", sent));
    }

    #[test]
    fn params_are_optional_where_there_are_none() {
        let (_, request) = parse(r#"{"jsonrpc":"2.0","id":1,"method":"review/list"}"#).unwrap();
        assert_eq!(request, Request::ReviewList(Empty {}));
    }

    #[test]
    fn every_listed_method_is_a_request() {
        for method in METHODS {
            let text = json!({ "jsonrpc": "2.0", "method": method, "params": {} }).to_string();
            let parsed = parse(&text);
            assert!(
                !format!("{parsed:?}").contains("unknown variant"),
                "{method}: {parsed:?}"
            );
        }
    }

    #[test]
    fn invalid_message_is_answered_with_the_reason() {
        let response = |text: &str| parse(text).unwrap_err().to_response();
        assert!(response("{").contains("-32700"));
        assert!(response("[]").contains("-32600"));
        assert!(response(r#"{"id":1,"method":"hello"}"#).contains("`jsonrpc` must be"));
        assert!(response(r#"{"jsonrpc":"2.0","id":1}"#).contains("missing `method`"));
        let unknown = response(r#"{"jsonrpc":"2.0","id":5,"method":"diff/list"}"#);
        assert!(unknown.contains("-32601") && unknown.contains("review/list") && unknown.contains("\"id\":5"));
        assert!(response(r#"{"jsonrpc":"2.0","id":1,"method":"context/open","params":{}}"#).contains("missing field"));
        let dance =
            response(r#"{"jsonrpc":"2.0","id":1,"method":"chat/command","params":{"command":{"type":"dance"}}}"#);
        assert!(dance.contains("-32602") && dance.contains("unknown variant"), "{dance}");
    }
}
