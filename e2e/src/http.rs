//! A minimal HTTP/1.1 server for known loopback clients: one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// One request, with its complete body.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads a request. `None` if the client disconnected without sending one.
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
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

    /// The value of a header; names ignore case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
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

/// Responds to a request and closes the connection.
pub(crate) fn respond(mut stream: &TcpStream, content_type: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Listens on a free loopback port, and passes every request to `answer` in its own thread.
///
/// The accepting thread lives as long as the test process: a test has two or three of these, and they cost little.
pub(crate) fn serve<F>(answer: F) -> u16
where
    F: Fn(&TcpStream, Request) -> io::Result<()> + Send + Sync + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bind a loopback port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A client that disconnects early is not our problem.
            thread::spawn(move || match Request::read(&stream) {
                Ok(Some(request)) => answer(&stream, request),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            });
        }
    });
    port
}
