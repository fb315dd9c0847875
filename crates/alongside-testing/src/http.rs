//! A minimal HTTP/1.1 server for known clients: one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// One request, its body read to the end.
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// `None` if the client closes the connection without a request.
    pub fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(io::Error::other(format!("no request line: {line:?}")));
        };
        let mut request = Self {
            method,
            target,
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            request.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        request.read_body(&mut reader)?;
        Ok(Some(request))
    }

    /// The name is case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    fn read_body(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        if self.header("transfer-encoding").is_some() {
            loop {
                let mut size = String::new();
                reader.read_line(&mut size)?;
                let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                reader.take(size).read_to_end(&mut self.body)?;
                reader.read_line(&mut String::new())?;
                if size == 0 {
                    return Ok(());
                }
            }
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        reader.take(length.unwrap_or(0)).read_to_end(&mut self.body)?;
        Ok(())
    }
}

/// Sends a response that ends the connection.
pub fn respond(mut stream: &TcpStream, content_type: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Starts a response of events, whose body ends with the connection.
pub fn start_stream(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

/// Listens on a free loopback port, and calls `answer` for every request, in a thread of its own. Returns the port.
///
/// The thread lives as long as the test program. A test has two or three of these.
pub fn serve<F>(answer: F) -> u16
where
    F: Fn(&TcpStream, Request) -> io::Result<()> + Send + Sync + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bind a loopback port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A client may close the connection at any time.
            thread::spawn(move || match Request::read(&stream) {
                Ok(Some(request)) => answer(&stream, request),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            });
        }
    });
    port
}
