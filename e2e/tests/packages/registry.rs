//! A package registry for npm with nothing but our packages.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::{json, packages};

pub(crate) struct Registry {
    address: String,
    downloaded: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// Serves until the test ends.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("open a port");
        let address = format!("http://{}", listener.local_addr().expect("it has an address"));
        let downloaded = Arc::default();
        let server = Arc::new(Server {
            packages: read_packages(&address),
            downloaded: Arc::clone(&downloaded),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                thread::spawn(move || server.answer(stream));
            }
        });
        Self { address, downloaded }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The names of the tarballs that were requested.
    pub(crate) fn downloaded(&self) -> Vec<String> {
        self.downloaded.lock().expect("no test panicked").clone()
    }
}

struct Server {
    /// What npm is told about each package, by its name.
    packages: BTreeMap<String, Value>,
    downloaded: Arc<Mutex<Vec<String>>>,
}

/// npm's packages.
pub(crate) fn tarballs() -> Vec<PathBuf> {
    let entries = fs::read_dir(packages()).expect("read the packages");
    let paths = entries.map(|entry| entry.expect("read the packages").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .collect()
}

pub(crate) fn manifest(tarball: &Path) -> Value {
    json(
        Command::new("tar")
            .arg("-xzOf")
            .arg(tarball)
            .arg("package/package.json"),
    )
}

fn read_packages(address: &str) -> BTreeMap<String, Value> {
    tarballs().iter().map(|path| describe(path, address)).collect()
}

fn describe(tarball: &Path, address: &str) -> (String, Value) {
    let mut manifest = manifest(tarball);
    let (name, version) = (manifest["name"].clone(), manifest["version"].clone());
    let (name, version) = (
        name.as_str().expect("it has a name"),
        version.as_str().expect("it has a version"),
    );
    let file = tarball.file_name().expect("it has a name").to_string_lossy();
    manifest["dist"] = serde_json::json!({ "tarball": format!("{address}/-/{file}") });
    let description =
        serde_json::json!({ "name": name, "dist-tags": { "latest": version }, "versions": { version: manifest } });
    (name.to_owned(), description)
}

impl Server {
    fn answer(&self, mut stream: TcpStream) {
        let Some(path) = requested(&stream) else { return };
        let name = path.trim_start_matches('/').replace("%2f", "/").replace("%2F", "/");
        let content = if let Some(tarball) = name.strip_prefix("-/") {
            self.downloaded
                .lock()
                .expect("no test panicked")
                .push(tarball.to_owned());
            fs::read(packages().join(tarball)).ok()
        } else {
            self.packages
                .get(&name)
                .map(|description| description.to_string().into_bytes())
        };
        let (status, content) = content.map_or(("404 Not Found", b"{}".to_vec()), |content| ("200 OK", content));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            content.len()
        );
        let _ = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&content));
    }
}

/// The path of a request, after its head was read.
fn requested(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    first.split(' ').nth(1).map(str::to_owned)
}
