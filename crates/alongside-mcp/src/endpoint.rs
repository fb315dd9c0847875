//! `/mcp` and its three methods: from HTTP to messages and back, with the status codes that agents expect. `/` is a WebSocket.

use std::sync::Arc;

use alongside_core::SessionKey;
use alongside_core::dialect::{ClientInfo, Transport};
use alongside_loopback::{Answer, Closing, Guard, GuardError, Seat, TokenHeader, websocket_upgrade};
use alongside_wire::rpc::{
    self, INVALID_REQUEST, InvalidMessage, METHOD_NOT_FOUND, Message, PARSE_ERROR, Payload, RpcError,
};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use parking_lot::Mutex;
use serde_json::json;

use crate::bodies::{Bodies, BodyError};
use crate::companion::{Companion, parse_session};
use crate::config::{Limits, Timing};
use crate::protocol;
use crate::registry::{Registry, StartError};
use crate::session::SessionError;
use crate::stream::EventStream;
use crate::tools::{self, ToolCall};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const COPILOT_SESSION_ID: HeaderName = HeaderName::from_static("x-copilot-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Where Claude Code and opencode send the token.
const SOCKET_TOKEN: TokenHeader = TokenHeader::Own("x-claude-code-ide-authorization");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Reply = Response<Full<Bytes>>;

/// Responds to requests; shared by all connections.
pub(crate) struct Endpoint<C> {
    pub(crate) companion: Arc<C>,
    pub(crate) registry: Arc<Registry>,
    /// HTTP on the port or on the socket. A WebSocket begins as HTTP on the port.
    pub(crate) transport: Transport,
    pub(crate) guard: Guard,
    pub(crate) bodies: Bodies,
    pub(crate) limits: Limits,
    pub(crate) timing: Timing,
    pub(crate) closing: Closing,
}

impl<C: Companion> Endpoint<C> {
    /// `upgrade` is set if the connection becomes a WebSocket after the response.
    pub(crate) async fn respond(
        &self,
        seat: &Seat,
        request: Request<Incoming>,
        upgrade: &Mutex<Option<OnUpgrade>>,
    ) -> Answer<Full<Bytes>, EventStream> {
        let is_port = self.transport == Transport::Http;
        if is_port && request.uri().path() == "/" && request.headers().contains_key(UPGRADE) {
            let reply = self.open_socket(seat, request, upgrade);
            return Answer::Response(reply.unwrap_or_else(|failure| *failure));
        }
        let (head, body) = request.into_parts();
        let token_header = if is_port {
            TokenHeader::Bearer
        } else {
            TokenHeader::Nonce
        };
        let admitted = self.guard.admit(seat, &head.headers, &head.uri, token_header);
        let answer = match admitted {
            Err(error) => Err(refused(error)),
            Ok(()) if head.uri.path() != "/mcp" => {
                Err(failure(StatusCode::NOT_FOUND, "Not found; the MCP endpoint is /mcp."))
            }
            Ok(()) => self.route(&head, body).await,
        };
        answer.unwrap_or_else(|failure| Answer::Response(*failure))
    }

    fn open_socket(
        &self,
        seat: &Seat,
        mut request: Request<Incoming>,
        upgrade: &Mutex<Option<OnUpgrade>>,
    ) -> Result<Reply, Box<Reply>> {
        self.guard
            .admit(seat, request.headers(), request.uri(), SOCKET_TOKEN)
            .map_err(refused)?;
        let handshake = websocket_upgrade(&mut request)
            .ok_or_else(|| failure(StatusCode::NOT_FOUND, "Not found; the MCP endpoint is /mcp."))?;
        let mut reply = empty(StatusCode::SWITCHING_PROTOCOLS);
        reply.headers_mut().extend(handshake.headers);
        // Claude Code disconnects unless its subprotocol is there, and opencode, which offers none, if one is.
        if offers_mcp(request.headers()) {
            reply
                .headers_mut()
                .insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
        }
        *upgrade.lock() = Some(handshake.upgrading);
        Ok(reply)
    }

    async fn route(&self, head: &Parts, body: Incoming) -> Result<Answer<Full<Bytes>, EventStream>, Box<Reply>> {
        self.registry.ready().await;
        match head.method {
            Method::POST => self.post(head, body).await.map(Answer::Response),
            Method::GET => self.get(head).map(Answer::Takeover),
            Method::DELETE => self.delete(head).map(Answer::Response),
            _ => Err(with_header(
                failure(StatusCode::METHOD_NOT_ALLOWED, "Use POST, GET or DELETE."),
                ALLOW,
                HeaderValue::from_static("GET, POST, DELETE"),
            )),
        }
    }

    async fn post(&self, head: &Parts, body: Incoming) -> Result<Reply, Box<Reply>> {
        check_accept(&head.headers, "application/json", true)?;
        check_content_type(&head.headers)?;
        let session = self.session_of(&head.headers).ok();
        let _active = session.map(|session| self.registry.begin_request(session));
        let body = self.bodies.read(body).await.map_err(|error| unreadable(&error))?;
        let text = std::str::from_utf8(body.bytes())
            .map_err(|_| invalid(&InvalidMessage::new(None, PARSE_ERROR, "the body is not valid UTF-8")))?;
        if let Some(call) = ToolCall::parse(text) {
            let session = self.session(head)?;
            return Ok(json_reply(StatusCode::OK, tools::call(self, &session, call).await));
        }
        let payload = Payload::parse_strict(text).map_err(|error| invalid(&error))?;

        if let Payload::One(Message::Request(request)) = &payload
            && request.method == "initialize"
        {
            return self.initialize(head, request).await;
        }
        // Copilot CLI asks this first, and goes on with `initialize` after an error.
        if let Payload::One(Message::Request(request)) = &payload
            && request.method == "server/discover"
        {
            let error = RpcError::new(METHOD_NOT_FOUND, "Unknown method server/discover.");
            return Ok(json_reply(StatusCode::OK, request.error(&error)));
        }
        let session = self.session(head)?;
        match payload {
            Payload::One(Message::Request(request)) => {
                let reply = protocol::respond(self, &session, &request).await;
                Ok(json_reply(StatusCode::OK, reply))
            }
            Payload::One(Message::Notification(_) | Message::Response(_)) => Ok(empty(StatusCode::ACCEPTED)),
            Payload::Batch(messages) => self.batch(&session, messages).await,
        }
    }

    /// Responds to a batch with an array, or with nothing if it has no requests.
    async fn batch(
        &self,
        session: &SessionKey,
        messages: Vec<Result<Message<'_>, InvalidMessage<'_>>>,
    ) -> Result<Reply, Box<Reply>> {
        if messages.len() > self.limits.batch {
            return Err(invalid(&InvalidMessage::new(
                None,
                INVALID_REQUEST,
                "the batch is too long",
            )));
        }
        let mut replies = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) if request.method == "initialize" => {
                    let error = RpcError::new(INVALID_REQUEST, "initialize must not be part of a batch");
                    replies.push(request.error(&error));
                }
                Ok(Message::Request(request)) => replies.push(protocol::respond(self, session, &request).await),
                Ok(Message::Notification(_) | Message::Response(_)) => {}
                Err(invalid) => replies.push(invalid.to_response()),
            }
        }
        if replies.is_empty() {
            return Ok(empty(StatusCode::ACCEPTED));
        }
        Ok(json_reply(StatusCode::OK, format!("[{}]", replies.join(","))))
    }

    async fn initialize(&self, head: &Parts, request: &rpc::Request<'_>) -> Result<Reply, Box<Reply>> {
        let params = match protocol::initialize_params(request) {
            Ok(params) => params,
            Err(error) => return Ok(json_reply(StatusCode::OK, request.error(&error))),
        };
        let version = params.version;
        let own = match self.transport {
            Transport::Socket => Some(self.session_of(&head.headers)?),
            Transport::Http | Transport::WebSocket => None,
        };
        let is_ours = own.is_none();
        let session = self
            .registry
            .start(self.transport, params.client, own)
            .map_err(|error| unavailable(&error))?;
        // Before the agent can be answered, it must be known to a companion that is restarted.
        self.registry.caught_up().await;
        tracing::debug!(%session, version, "session started");
        let id = HeaderValue::from_str(session.id().as_str())
            .map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, "The session id cannot be sent."))?;
        let reply = json_reply(StatusCode::OK, protocol::initialize_reply(request, version));
        if !is_ours {
            return Ok(reply);
        }
        Ok(*with_header(Box::new(reply), SESSION_ID, id))
    }

    fn get(&self, head: &Parts) -> Result<EventStream, Box<Reply>> {
        check_accept(&head.headers, "text/event-stream", false)?;
        if head.version != Version::HTTP_11 {
            let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
            return Err(failure(status, "An event stream needs HTTP/1.1."));
        }
        let session = self.session(head)?;
        let last_event_id = head.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
        EventStream::open(self.registry.clone(), session, last_event_id, &self.timing)
            .ok_or_else(|| failure(StatusCode::NOT_FOUND, "The session has just ended."))
    }

    fn delete(&self, head: &Parts) -> Result<Reply, Box<Reply>> {
        let session = self.session_of(&head.headers)?;
        if self.transport == Transport::Socket {
            // Copilot CLI fails if there is no content. Its other connections have the same session, which ends with the last one.
            return Ok(json_reply(StatusCode::OK, "{}".to_owned()));
        }
        if self.registry.delete(&session) {
            Ok(empty(StatusCode::NO_CONTENT))
        } else {
            Err(failure(StatusCode::NOT_FOUND, "Unknown session."))
        }
    }

    /// The session that a request names.
    fn session_of(&self, headers: &HeaderMap) -> Result<SessionKey, Box<Reply>> {
        match self.transport {
            Transport::Http | Transport::WebSocket => session_headers(headers),
            // Copilot CLI connects up to three times when it starts, always with the same id: one session for all of them.
            Transport::Socket => headers
                .get(COPILOT_SESSION_ID)
                .and_then(|id| parse_session(id.to_str().ok()?))
                .map(SessionKey::Connection)
                .ok_or_else(|| failure(StatusCode::BAD_REQUEST, "The x-copilot-session-id header is missing.")),
        }
    }

    /// The session of a request. An unknown one is from before a restart and is resumed: refusing it would disconnect the
    /// agent.
    fn session(&self, head: &Parts) -> Result<SessionKey, Box<Reply>> {
        let session = self.session_of(&head.headers)?;
        let known = self.registry.touch(&session);
        if !known.map_err(|error| unavailable(&StartError::Session(error)))? {
            let client = self.companion.known_client(&session);
            let resumed = match self.transport {
                Transport::Socket => {
                    let client = client.unwrap_or_else(ClientInfo::copilot);
                    let started = self.registry.start(self.transport, client, Some(session.clone()));
                    started.map(drop)
                }
                Transport::Http | Transport::WebSocket => self.registry.resume(&session, client),
            };
            resumed.map_err(|error| unavailable(&error))?;
            tracing::debug!(%session, "session resumed");
        }
        Ok(session)
    }
}

/// The session of a request after `initialize`. A version header must name a supported version.
fn session_headers(headers: &HeaderMap) -> Result<SessionKey, Box<Reply>> {
    let bad = |sentence: &str| failure(StatusCode::BAD_REQUEST, sentence);
    let session = headers
        .get(SESSION_ID)
        .ok_or_else(|| bad("The mcp-session-id header is missing; start with initialize."))?;
    let session = session
        .to_str()
        .ok()
        .and_then(parse_session)
        .map(SessionKey::Mcp)
        .ok_or_else(|| bad("The mcp-session-id header is not a session id."))?;
    let is_supported = |version: &HeaderValue| version.to_str().ok().and_then(protocol::supported_version).is_some();
    if !headers.get(PROTOCOL_VERSION).is_none_or(is_supported) {
        return Err(bad(
            "The mcp-protocol-version header names a version that is not supported.",
        ));
    }
    Ok(session)
}

fn offers_mcp(headers: &HeaderMap) -> bool {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    offered
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .any(|protocol| protocol.trim() == "mcp")
}

fn check_accept(headers: &HeaderMap, wanted: &str, lenient: bool) -> Result<(), Box<Reply>> {
    let mut media_types = headers
        .get_all(ACCEPT)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .map(essence)
        .peekable();
    let anything = lenient && media_types.peek().is_none();
    let accepted = anything
        || media_types.any(|media_type| {
            media_type.eq_ignore_ascii_case(wanted)
                || lenient && (media_type == "*/*" || media_type.eq_ignore_ascii_case("application/*"))
        });
    if accepted {
        Ok(())
    } else {
        let sentence = format!("The Accept header must allow {wanted}.");
        Err(failure(StatusCode::NOT_ACCEPTABLE, &sentence))
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Box<Reply>> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if value.is_some_and(|value| essence(value).eq_ignore_ascii_case("application/json")) {
        Ok(())
    } else {
        Err(closing_failure(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The Content-Type must be application/json.",
        ))
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn unreadable(error: &BodyError) -> Box<Reply> {
    let status = match error {
        BodyError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooMany => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Stalled => StatusCode::REQUEST_TIMEOUT,
        BodyError::CutOff => StatusCode::BAD_REQUEST,
    };
    closing_failure(status, &error.to_string())
}

fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = status;
    reply
}

fn json_reply(status: StatusCode, body: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}

// Failures are boxed because a response is large and failures are rare.

fn failure(status: StatusCode, sentence: &str) -> Box<Reply> {
    Box::new(json_reply(status, json!({ "error": sentence }).to_string()))
}

/// A failure with part of the request unread, so that the connection cannot be reused.
fn closing_failure(status: StatusCode, sentence: &str) -> Box<Reply> {
    with_header(failure(status, sentence), CONNECTION, HeaderValue::from_static("close"))
}

fn invalid(message: &InvalidMessage<'_>) -> Box<Reply> {
    Box::new(json_reply(StatusCode::BAD_REQUEST, message.to_response()))
}

fn refused(error: GuardError) -> Box<Reply> {
    if error != GuardError::Token {
        return closing_failure(error.status(), error.message());
    }
    let reply = closing_failure(
        error.status(),
        "The bearer token is missing or wrong; it is in the companion's discovery file.",
    );
    with_header(reply, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn unavailable(error: &StartError) -> Box<Reply> {
    match error {
        StartError::Session(SessionError::Full) => failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many agents are connected; close one and try again.",
        ),
        StartError::Session(SessionError::Deleted) => failure(StatusCode::NOT_FOUND, "The session was ended."),
        StartError::Random(error) => {
            tracing::error!(%error, "cannot get random bytes for a session id");
            failure(StatusCode::INTERNAL_SERVER_ERROR, "Cannot start a session.")
        }
    }
}

fn with_header(mut reply: Box<Reply>, name: HeaderName, value: HeaderValue) -> Box<Reply> {
    reply.headers_mut().insert(name, value);
    reply
}
