//! Request lines and headers: methods, hosts, origins, tokens, framing.

use super::Expect::{self, Status, StatusOrClosed};
use super::Port::{self, Agents, Commands, Page};
use super::Row;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A request as it is written here, with `\n` for line ends.
fn raw(name: &'static str, port: Port, request: &str, expect: Expect) -> Row {
    let request = request.replace('\n', "\r\n").into_bytes();
    Row {
        name,
        port,
        request,
        ends: false,
        expect,
    }
}

/// A request that is not complete.
fn cut(name: &'static str, port: Port, request: &str) -> Row {
    Row {
        ends: true,
        ..raw(name, port, request, REFUSED)
    }
}

/// A `POST /mcp` that would be good with the given lines in place of `Host` and `Authorization`.
fn post(name: &'static str, lines: &str, expect: Expect) -> Row {
    let length = PING.len();
    let request = format!(
        "POST /mcp HTTP/1.1\n{lines}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nMcp-Session-Id: nobody\nConnection: close\nContent-Length: {length}\n\n{PING}"
    );
    raw(name, Agents, &request, expect)
}

/// A WebSocket handshake that would be good with the given lines.
fn handshake(name: &'static str, port: Port, lines: &str, expect: Expect) -> Row {
    let request = format!(
        "GET /front HTTP/1.1\n{lines}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"
    );
    raw(name, port, &request, expect)
}

/// A page's WebSocket opens for every client; what is sent on it before the login is not answered.
fn without_login() -> Row {
    const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"name":"x"}}"#;
    let mut row = handshake("no login", Page, "Host: {host}\nOrigin: http://{host}", Expect::Silence);
    // A text frame, masked with zeros.
    row.request
        .extend([0x81, 0x80 | u8::try_from(HELLO.len()).unwrap(), 0, 0, 0, 0]);
    row.request.extend(HELLO);
    Row { ends: true, ..row }
}

const TOKEN: &str = "Authorization: Bearer {token}";
const REFUSED: Expect = StatusOrClosed(&[400, 401, 403, 404, 405, 414, 426, 431]);

pub(super) fn rows() -> Vec<Row> {
    let tables = [targets(), framing(), credentials(), commands(), page()];
    tables.into_iter().flatten().collect()
}

/// Methods and targets.
#[rustfmt::skip]
fn targets() -> Vec<Row> {
    let long = "x".repeat(100_000);
    vec![
        raw("PUT", Agents, &format!("PUT /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[405])),
        raw("OPTIONS, as a preflight", Agents, "OPTIONS /mcp HTTP/1.1\nHost: {host}\nOrigin: http://evil.example\nAccess-Control-Request-Method: POST\nConnection: close\n\n", Status(&[403])),
        raw("TRACE echoes nothing", Agents, &format!("TRACE /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\n\n"), Status(&[405])),
        raw("CONNECT", Agents, "CONNECT evil.example:443 HTTP/1.1\nHost: evil.example:443\n\n", REFUSED),
        raw("unknown method", Agents, &format!("BREW /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\n\n"), Status(&[405])),
        raw("lower-case method", Agents, &format!("post /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[400, 405])),
        raw("method with a NUL", Agents, "PO\0ST /mcp HTTP/1.1\nHost: {host}\n\n", REFUSED),
        raw("no version", Agents, "GET /mcp\nHost: {host}\n\n", REFUSED),
        cut("HTTP/0.9", Agents, "GET /mcp\n"),
        raw("HTTP/1.0 without Host", Agents, &format!("GET /mcp HTTP/1.0\n{TOKEN}\nAccept: text/event-stream\n\n"), Status(&[403])),
        cut("HTTP/2 preface", Agents, "PRI * HTTP/2.0\n\nSM\n\n"),
        raw("HTTP/9.9", Agents, "GET /mcp HTTP/9.9\nHost: {host}\n\n", REFUSED),
        cut("TLS hello", Agents, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}"),
        cut("garbage", Agents, "\0\0\0\0\0\0\0\0"),
        cut("only line ends", Agents, "\n\n\n\n"),
        cut("nothing", Agents, ""),
        cut("half a request line", Agents, "POST /mc"),
        cut("half a head", Agents, "POST /mcp HTTP/1.1\nHost: {host}\nAuthoriz"),
        raw("request line of 100 kB", Agents, &format!("GET /{long} HTTP/1.1\nHost: {{host}}\n\n"), REFUSED),
        raw("header of 100 kB", Agents, &format!("GET /mcp HTTP/1.1\nHost: {{host}}\nX: {long}\n\n"), REFUSED),
        raw("200 headers", Agents, &format!("GET /mcp HTTP/1.1\nHost: {{host}}\n{}\n", "X: y\n".repeat(200)), REFUSED),
        raw("another path", Agents, &format!("POST /mcp/../admin HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[404])),
        raw("a path that begins like ours", Agents, &format!("POST /mcpx HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[404])),
        raw("an encoded path", Agents, &format!("POST /%6dcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[404])),
        raw("a doubled slash", Agents, &format!("POST //mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[404])),
        raw("the commands' path on the agents' port", Agents, &format!("GET /front HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"), Status(&[404])),
        raw("absolute target on another host", Agents, &format!("POST http://evil.example/mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\nContent-Length: 0\n\n"), Status(&[403])),
        raw("a space before the colon", Agents, &format!("POST /mcp HTTP/1.1\nHost : {{host}}\n{TOKEN}\n\n"), REFUSED),
        raw("a folded header", Agents, "POST /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer\n {token}\n\n", REFUSED),
        raw("a header without a name", Agents, "POST /mcp HTTP/1.1\nHost: {host}\n: x\n\n", REFUSED),
        raw("a NUL in a header", Agents, "POST /mcp HTTP/1.1\nHost: {host}\nX: a\0b\n\n", REFUSED),
        raw("GET without Accept", Agents, &format!("GET /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nMcp-Session-Id: nobody\nConnection: close\n\n"), Status(&[406])),
        raw("GET without a session", Agents, &format!("GET /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nAccept: text/event-stream\nConnection: close\n\n"), Status(&[400])),
        raw("DELETE of an unknown session", Agents, &format!("DELETE /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nMcp-Session-Id: nobody\nConnection: close\n\n"), Status(&[404])),
        raw("DELETE without a session", Agents, &format!("DELETE /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: close\n\n"), Status(&[400])),
    ]
}

/// Framing that two parsers could read differently.
#[rustfmt::skip]
fn framing() -> Vec<Row> {
    vec![
        raw("two lengths", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 40\nContent-Length: 2\n\n{PING}"), REFUSED),
        raw("a list of lengths", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 40, 2\n\n{PING}"), REFUSED),
        raw("a negative length", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: -1\n\n{PING}"), REFUSED),
        raw("a length with a plus", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: +40\n\n{PING}"), REFUSED),
        raw("a hexadecimal length", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 0x28\n\n{PING}"), REFUSED),
        raw("a length beyond 64 bits", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 99999999999999999999\n\n{PING}"), REFUSED),
        raw("a length of 33 MiB", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 34603008\n\n{PING}"), Status(&[413])),
        raw("a length and chunks", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\nGET /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\n\n"), REFUSED),
        raw("chunked twice", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nTransfer-Encoding: chunked, chunked\nConnection: close\n\n0\n\n"), REFUSED),
        raw("another transfer encoding", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nTransfer-Encoding: gzip\nConnection: close\n\n0\n\n"), REFUSED),
        raw("a chunk size that is none", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nxyz\n{PING}\n0\n\n"), REFUSED),
        raw("a chunk size beyond 64 bits", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nfffffffffffffffff\n{PING}\n0\n\n"), REFUSED),
        cut("a body that is cut off", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nContent-Length: 4000\n\n{PING}")),
        cut("chunks that are cut off", Agents, &format!("POST /mcp HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n28\n{PING}")),
    ]
}

/// Who may come in.
#[rustfmt::skip]
fn credentials() -> Vec<Row> {
    vec![
        post("no token", "Host: {host}", Status(&[401])),
        post("empty token", "Host: {host}\nAuthorization: Bearer ", Status(&[401])),
        post("wrong token", "Host: {host}\nAuthorization: Bearer 0000000000000000000000000000000000000000000000000000000000000000", Status(&[401])),
        post("the token and more", "Host: {host}\nAuthorization: Bearer {token}0", Status(&[401])),
        post("another scheme", "Host: {host}\nAuthorization: Basic {token}", Status(&[401])),
        post("no scheme", "Host: {host}\nAuthorization: {token}", Status(&[401])),
        post("the token in a cookie", "Host: {host}\nCookie: token={token}", Status(&[401])),
        post("the token in a proxy's header", "Host: {host}\nProxy-Authorization: Bearer {token}", Status(&[401])),
        post("two tokens, the good one last", "Host: {host}\nAuthorization: Bearer x\nAuthorization: Bearer {token}", Status(&[401])),
        post("two tokens, the good one first", "Host: {host}\nAuthorization: Bearer {token}\nAuthorization: Bearer x", Status(&[401])),
        post("the good token twice", "Host: {host}\nAuthorization: Bearer {token}\nAuthorization: Bearer {token}", Status(&[401])),
        post("no Host", TOKEN, Status(&[400, 403])),
        post("another Host", "Host: evil.example:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        post("a rebound name", "Host: 127.0.0.1.evil.example:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        post("Host without the port", "Host: 127.0.0.1\nAuthorization: Bearer {token}", Status(&[403])),
        post("Host with another port", "Host: 127.0.0.1:1\nAuthorization: Bearer {token}", Status(&[403])),
        post("Host in decimal", "Host: 2130706433:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        post("Host with a user", "Host: a@127.0.0.1:{port}\nAuthorization: Bearer {token}", Status(&[400, 403])),
        post("another loopback address", "Host: 127.0.0.2:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        post("the unspecified address", "Host: 0.0.0.0:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        post("Host twice, the good one last", "Host: evil.example\nHost: {host}\nAuthorization: Bearer {token}", Status(&[400, 403])),
        post("Host twice, the good one first", "Host: {host}\nHost: evil.example\nAuthorization: Bearer {token}", Status(&[400, 403])),
        post("X-Forwarded-Host does not count", "Host: evil.example\nX-Forwarded-Host: {host}\nAuthorization: Bearer {token}", Status(&[403])),
        post("an Origin", "Host: {host}\nOrigin: http://evil.example\nAuthorization: Bearer {token}", Status(&[403])),
        post("an Origin of our own", "Host: {host}\nOrigin: http://{host}\nAuthorization: Bearer {token}", Status(&[403])),
        post("Origin null", "Host: {host}\nOrigin: null\nAuthorization: Bearer {token}", Status(&[403])),
        post("an empty Origin", "Host: {host}\nOrigin: \nAuthorization: Bearer {token}", Status(&[403])),
        post("Origin twice", "Host: {host}\nOrigin: http://{host}\nOrigin: http://evil.example\nAuthorization: Bearer {token}", Status(&[403])),
        post("a session id of 10 kB", &format!("Host: {{host}}\n{TOKEN}\nMcp-Session-Id: {}", "s".repeat(10_000)), Status(&[400, 431])),
    ]
}

#[rustfmt::skip]
fn commands() -> Vec<Row> {
    let long = "x".repeat(100_000);
    vec![
        handshake("no token", Commands, "Host: {host}", Status(&[401])),
        handshake("wrong token", Commands, "Host: {host}\nAuthorization: Bearer wrong", Status(&[401])),
        handshake("the token in the query", Commands, "Host: {host}\nX: ?token={token}", Status(&[401])),
        handshake("two tokens, the good one first", Commands, "Host: {host}\nAuthorization: Bearer {token}\nAuthorization: Bearer x", Status(&[401])),
        handshake("two tokens, the good one last", Commands, "Host: {host}\nAuthorization: Bearer x\nAuthorization: Bearer {token}", Status(&[401])),
        handshake("the good token twice", Commands, "Host: {host}\nAuthorization: Bearer {token}\nAuthorization: Bearer {token}", Status(&[401])),
        handshake("no Host", Commands, TOKEN, Status(&[400, 403])),
        handshake("another Host", Commands, "Host: evil.example:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        handshake("Host twice, the good one first", Commands, "Host: {host}\nHost: evil.example\nAuthorization: Bearer {token}", Status(&[400, 403])),
        handshake("Host twice, the good one last", Commands, "Host: evil.example\nHost: {host}\nAuthorization: Bearer {token}", Status(&[400, 403])),
        handshake("a container's name", Commands, "Host: host.docker.internal:{port}\nAuthorization: Bearer {token}", Status(&[403])),
        handshake("an Origin", Commands, "Host: {host}\nOrigin: http://evil.example\nAuthorization: Bearer {token}", Status(&[403])),
        handshake("an Origin of our own", Commands, "Host: {host}\nOrigin: http://{host}\nAuthorization: Bearer {token}", Status(&[403])),
        raw("another path", Commands, &format!("GET /fronts HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"), Status(&[404])),
        raw("no upgrade", Commands, &format!("GET /front HTTP/1.1\nHost: {{host}}\n{TOKEN}\n\n"), REFUSED),
        raw("POST in place of an upgrade", Commands, &format!("POST /front HTTP/1.1\nHost: {{host}}\n{TOKEN}\nContent-Length: 2\n\n{{}}"), REFUSED),
        raw("an old version", Commands, &format!("GET /front HTTP/1.1\nHost: {{host}}\n{TOKEN}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 8\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"), REFUSED),
        cut("garbage", Commands, "\0\0\0\0\0\0\0\0\n\n"),
        cut("nothing", Commands, ""),
        cut("half a head", Commands, "GET /front HTTP/1.1\nHost: {ho"),
        raw("header of 100 kB", Commands, &format!("GET /front HTTP/1.1\nHost: {{host}}\nX: {long}\n\n"), REFUSED),
    ]
}

/// The page's WebSocket, its files, and everything that is none.
#[rustfmt::skip]
fn page() -> Vec<Row> {
    let mut rows = vec![
        without_login(),
        handshake("no Origin", Page, "Host: {host}", REFUSED),
        raw("an old version", Page, "GET /front HTTP/1.1\nHost: {host}\nOrigin: http://{host}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 8\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n", REFUSED),
        handshake("another Origin", Page, "Host: {host}\nOrigin: http://evil.example", Status(&[403])),
        handshake("Origin null", Page, "Host: {host}\nOrigin: null", Status(&[403])),
        handshake("Origin with another port", Page, "Host: {host}\nOrigin: http://127.0.0.1:1", Status(&[403])),
        handshake("https Origin", Page, "Host: {host}\nOrigin: https://{host}", Status(&[403])),
        handshake("localhost's Origin for 127.0.0.1", Page, "Host: {host}\nOrigin: http://localhost:{port}", Status(&[403])),
        handshake("Origin twice", Page, "Host: {host}\nOrigin: http://{host}\nOrigin: http://evil.example", Status(&[403])),
        handshake("Host twice", Page, "Host: {host}\nHost: evil.example\nOrigin: http://{host}", Status(&[400, 403])),
        handshake("the agents' token", Page, "Host: {host}\nAuthorization: Bearer {token}", REFUSED),
    ];
    let targets: [(&'static str, &str); 14] = [
        ("dots", "/../../../../etc/passwd"),
        ("encoded dots", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd"),
        ("doubly encoded dots", "/%252e%252e/%252e%252e/etc/passwd"),
        ("encoded slashes", "/..%2f..%2f..%2fetc%2fpasswd"),
        ("backslashes", "/..\\..\\..\\etc\\passwd"),
        ("dots in the middle", "/assets/../../../etc/passwd"),
        ("an absolute path", "//etc/passwd"),
        ("a file URL", "/file:///etc/passwd"),
        ("an encoded NUL", "/index.html%00.js"),
        ("the workspace", "/{secret}"),
        ("a dot file", "/.git/config"),
        ("overlong UTF-8", "/%c0%ae%c0%ae/etc/passwd"),
        ("a wrong login key", "/login?key=0000000000000000000000000000000000000000000000000000000000000000"),
        ("the agents' token as a login key", "/login?key={token}"),
    ];
    for (name, target) in targets {
        rows.push(raw(name, Page, &format!("GET {target} HTTP/1.1\nHost: {{host}}\nConnection: close\n\n"), REFUSED));
    }
    for (name, method) in [("POST", "POST"), ("PUT", "PUT"), ("DELETE", "DELETE"), ("TRACE", "TRACE"), ("OPTIONS", "OPTIONS")] {
        rows.push(raw(name, Page, &format!("{method} / HTTP/1.1\nHost: {{host}}\nConnection: close\nContent-Length: 0\n\n"), REFUSED));
    }
    for (name, host) in [("another Host", "evil.example:{port}"), ("Host without the port", "127.0.0.1"), ("a container's name", "host.docker.internal:{port}")] {
        rows.push(raw(name, Page, &format!("GET / HTTP/1.1\nHost: {host}\nConnection: close\n\n"), Status(&[403])));
    }
    rows
}

pub(super) fn good_rows() -> Vec<Row> {
    let head = format!("Host: {{host}}\n{TOKEN}");
    vec![
        post("a ping", &head, Status(&[200])),
        Row {
            ends: true,
            ..handshake("a front end", Commands, &head, Status(&[101]))
        },
    ]
}
