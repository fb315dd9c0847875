//! What comes back: one reply, or a stream of events.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde_json::Value;

use super::LONGEST_MESSAGE;
use super::connection::Connection;
use super::error::ClientError;
use super::sse::{SseEvent, SseReader};

/// A stream of messages from the server.
pub struct Events {
    body: Incoming,
    reader: SseReader,
    /// What had arrived before this stream.
    earlier_event_id: Option<String>,
    /// Keeps the connection from closing; events have one for themselves.
    _connection: Connection,
}

impl Events {
    pub(super) fn new(
        response: Response<Incoming>,
        connection: Connection,
        last_event_id: Option<&str>,
    ) -> Result<Self, ClientError> {
        if !is_stream(&response) {
            return Err(ClientError::NotMcp(
                "the response to GET is not an event stream".to_owned(),
            ));
        }
        Ok(Self {
            body: response.into_body(),
            reader: SseReader::new(LONGEST_MESSAGE),
            earlier_event_id: last_event_id.map(str::to_owned),
            _connection: connection,
        })
    }

    /// The next message; `None` when the server ended the stream as it should. Giving up waiting loses nothing.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        let Some(text) = self.next_text().await? else {
            return Ok(None);
        };
        let message =
            serde_json::from_str(&text).map_err(|_| ClientError::NotMcp("an event is not JSON".to_owned()))?;
        Ok(Some(message))
    }

    /// The next message, as it came.
    pub async fn next_text(&mut self) -> Result<Option<String>, ClientError> {
        let event = next_event(&mut self.body, &mut self.reader).await?;
        Ok(event.map(|event| event.data))
    }

    /// What to open the next stream with.
    pub fn last_event_id(&self) -> Option<&str> {
        self.reader.last_event_id().or(self.earlier_event_id.as_deref())
    }
}

/// Reads the answer to a `POST`, which other servers may send as a stream; `None` if there is none.
pub(super) async fn read_reply(response: Response<Incoming>) -> Result<Option<String>, ClientError> {
    if response.status() == StatusCode::ACCEPTED || response.status() == StatusCode::NO_CONTENT {
        read_all(response).await?;
        return Ok(None);
    }
    if !is_stream(&response) {
        let bytes = read_all(response).await?;
        let text = String::from_utf8(bytes.into())
            .map_err(|_| ClientError::NotMcp("the response is not valid UTF-8".to_owned()))?;
        return Ok(Some(text).filter(|text| !text.is_empty()));
    }
    let mut body = response.into_body();
    let mut reader = SseReader::new(LONGEST_MESSAGE);
    while let Some(event) = next_event(&mut body, &mut reader).await? {
        let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if message.get("result").is_some() || message.get("error").is_some() {
            return Ok(Some(event.data));
        }
    }
    Ok(None)
}

async fn read_all(response: Response<Incoming>) -> Result<Bytes, ClientError> {
    let body = Limited::new(response.into_body(), LONGEST_MESSAGE).collect().await;
    body.map(http_body_util::Collected::to_bytes)
        .map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(error) => ClientError::Lost(*error),
            Err(error) => ClientError::NotMcp(error.to_string()),
        })
}

async fn next_event(body: &mut Incoming, reader: &mut SseReader) -> Result<Option<SseEvent>, ClientError> {
    loop {
        while let Some(event) = reader.pop() {
            if event.name.as_deref().is_none_or(|name| name == "message") {
                return Ok(Some(event));
            }
        }
        let Some(frame) = body.frame().await else {
            return Ok(None);
        };
        if let Ok(data) = frame?.into_data() {
            reader
                .push(&data)
                .map_err(|error| ClientError::NotMcp(error.to_string()))?;
        }
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}
