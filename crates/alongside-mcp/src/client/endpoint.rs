//! Requests to one companion: where it is, the headers they all have, and what its errors say.

use std::io;

use alongside_wire::http::{Connect, HttpClient, HttpError, HttpResponse};
use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::net::TcpStream;

use super::error::ClientError;

/// The longest error response that is read.
const MAX_ERROR_BYTES: usize = 4096;

pub(super) struct Endpoint {
    http: HttpClient<Address>,
    host: HeaderValue,
    authorization: HeaderValue,
}

struct Address {
    host: String,
    port: u16,
}

impl Connect for Address {
    type Stream = TcpStream;
    type Error = io::Error;

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Endpoint {
    pub(super) fn new(host: &str, port: u16, token: &str) -> Result<Self, ClientError> {
        let authority = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| ClientError::Unsendable("the token".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self {
            http: HttpClient::new(Address {
                host: host.to_owned(),
                port,
            }),
            host: HeaderValue::from_str(&authority)
                .map_err(|_| ClientError::Unsendable("the name of the host".to_owned()))?,
            authorization,
        })
    }

    /// Connects ahead of the first request.
    pub(super) async fn warm_up(&self) -> Result<(), ClientError> {
        self.http.warm_up().await.map_err(|error| self.failed(error))
    }

    /// A request with the headers that all of them have.
    pub(super) fn request(&self, method: Method, body: String) -> Result<Request<Bytes>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header(HOST, &self.host)
            .header(AUTHORIZATION, &self.authorization);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request
            .body(Bytes::from(body))
            .map_err(|error| ClientError::Unsendable(error.to_string()))
    }

    /// Sends a request; a response that is not a success is an error.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse, ClientError> {
        let response = self.http.send(request).await.map_err(|error| self.failed(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.read(MAX_ERROR_BYTES).await.unwrap_or_default();
        let sentence = sentence(&String::from_utf8_lossy(&body));
        Err(match status {
            StatusCode::UNAUTHORIZED => ClientError::Unauthorized { sentence },
            StatusCode::FORBIDDEN => ClientError::Forbidden { sentence },
            status => ClientError::Status {
                status: status.as_u16(),
                sentence,
            },
        })
    }

    fn failed(&self, error: HttpError<io::Error>) -> ClientError {
        match error {
            HttpError::Connect(source) => {
                let Address { host, port } = self.http.connector();
                ClientError::Refused {
                    address: format!("{host}:{port}"),
                    source,
                }
            }
            HttpError::Lost(error) => ClientError::Lost(error),
        }
    }
}

/// What an error response says: `{"error": "…"}`, a JSON-RPC error, or plain text.
fn sentence(text: &str) -> String {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &json["error"];
    let sentence = error.as_str().or_else(|| error["message"].as_str()).unwrap_or(text);
    sentence.trim().chars().take(300).collect()
}
