//! What comes back: one response, or an event stream.

use alongside_wire::http::{BodyChunks, BodyError, HttpResponse};
use alongside_wire::rpc::Envelope;
use alongside_wire::sse::{SseEvent, SseReader};
use hyper::StatusCode;
use serde_json::Value;

use super::MAX_MESSAGE_BYTES;
use super::error::ClientError;

/// A stream of messages from the server.
pub struct Events {
    stream: MessageStream,
    /// Where the stream was resumed.
    resumed_from: Option<String>,
}

impl Events {
    pub(super) fn new(response: HttpResponse, last_event_id: Option<&str>) -> Result<Self, ClientError> {
        if !response.is_event_stream() {
            return Err(ClientError::NotMcp(
                "the response to GET is not an event stream".to_owned(),
            ));
        }
        Ok(Self {
            stream: MessageStream::new(response),
            resumed_from: last_event_id.map(str::to_owned),
        })
    }

    /// The next message; `None` when the server ended the stream properly. Dropping this while it waits loses nothing.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        let Some(text) = self.next_text().await? else {
            return Ok(None);
        };
        let message =
            serde_json::from_str(&text).map_err(|_| ClientError::NotMcp("an event is not JSON".to_owned()))?;
        Ok(Some(message))
    }

    /// The next message as it came.
    pub async fn next_text(&mut self) -> Result<Option<String>, ClientError> {
        let event = self.stream.next().await?;
        Ok(event.map(|event| event.data))
    }

    /// The id to resume from.
    pub fn last_event_id(&self) -> Option<&str> {
        self.stream.reader.last_event_id().or(self.resumed_from.as_deref())
    }
}

/// The events of a body that are messages.
struct MessageStream {
    chunks: BodyChunks,
    reader: SseReader,
}

impl MessageStream {
    fn new(response: HttpResponse) -> Self {
        Self {
            chunks: response.into_chunks(),
            reader: SseReader::new(MAX_MESSAGE_BYTES),
        }
    }

    async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            while let Some(event) = self.reader.pop() {
                if event.name.as_deref().is_none_or(|name| name == "message") {
                    return Ok(Some(event));
                }
            }
            let Some(chunk) = self.chunks.next().await else {
                return Ok(None);
            };
            self.reader
                .push(&chunk?)
                .map_err(|error| ClientError::NotMcp(error.to_string()))?;
        }
    }
}

/// Reads the response to a `POST`, which other servers may send as a stream; `None` if there is none.
pub(super) async fn read_response(response: HttpResponse) -> Result<Option<String>, ClientError> {
    let status = response.status();
    if response.is_event_stream() && status != StatusCode::ACCEPTED && status != StatusCode::NO_CONTENT {
        let mut stream = MessageStream::new(response);
        while let Some(event) = stream.next().await? {
            if Envelope::parse(&event.data).is_ok_and(|message| message.is_response()) {
                return Ok(Some(event.data));
            }
        }
        return Ok(None);
    }
    let body = response.read(MAX_MESSAGE_BYTES).await.map_err(|error| match error {
        BodyError::Lost(error) => ClientError::Lost(error),
        BodyError::TooLarge(_) => ClientError::NotMcp(error.to_string()),
    })?;
    if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT || body.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(body.into())
        .map_err(|_| ClientError::NotMcp("the response is not valid UTF-8".to_owned()))?;
    Ok(Some(text))
}
