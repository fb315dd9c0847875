//! A proxy that adds the token.
//!
//! The MCP conformance suite cannot send custom headers, and the companion refuses every request without a token. The
//! suite's own `Host` and `Origin` headers must pass through unchanged, because one of its scenarios tests them.

use std::io::{self, Write};
use std::net::TcpStream;

use alongside_testing::http::{self, Request};

/// Sits in front of a companion and adds the bearer token to each request.
pub struct AuthorizingProxy {
    port: u16,
}

impl AuthorizingProxy {
    /// Starts a proxy for the companion on this port.
    pub fn start(companion: u16, token: &str) -> Self {
        let token = token.to_owned();
        let port = http::serve(move |stream, request| forward(stream, &request, companion, &token));
        Self { port }
    }

    /// The URL of the MCP endpoint through the proxy.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

fn forward(mut client: &TcpStream, request: &Request, companion: u16, token: &str) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", companion))?;
    let own_port = client.local_addr()?.port();
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    let mut add = |name: &str, value: &str| head.extend([name, ": ", value, "\r\n"]);
    for (name, value) in &request.headers {
        match name.to_ascii_lowercase().as_str() {
            "connection" | "transfer-encoding" | "content-length" | "authorization" => {}
            // Replace our own address with the companion's; leave any other unchanged.
            "host" => add(name, &value.replace(&format!(":{own_port}"), &format!(":{companion}"))),
            _ => add(name, value),
        }
    }
    add("authorization", &format!("Bearer {token}"));
    add("content-length", &request.body.len().to_string());
    add("connection", "close");
    head.push_str("\r\n");
    server.write_all(head.as_bytes())?;
    server.write_all(&request.body)?;
    io::copy(&mut server, &mut client).map(|_| ())
}
