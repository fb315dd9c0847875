//! A daemon that speaks TLS, and whose certificate will do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conversation::Chat;
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::daemon::{
    ClientSettings, DaemonAddress, DaemonClient, DaemonError, DaemonSessionClient, NewSession,
};
use alongside_agent::{AgentEvent, DisconnectKind};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::fake::{FakeDaemon, ids, read_until};

struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
    /// What a person puts into a file.
    pem: String,
}

/// As most people make one: it signs itself, and says that it is an authority.
fn self_signed(names: &[&str]) -> Certificate {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Certificate {
        chain: vec![certificate.der().clone()],
        key,
        pem: certificate.pem(),
    }
}

/// Signed by an authority of one's own; what goes into the file is that of the authority.
fn signed(names: &[&str]) -> Certificate {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    Certificate {
        chain: vec![certificate.der().clone()],
        key,
        pem: authority.pem(),
    }
}

async fn daemon(certificate: &Certificate) -> FakeDaemon {
    let key = PrivateKeyDer::try_from(certificate.key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificate.chain.clone(), key)
        .unwrap();
    FakeDaemon::start_with(TlsAcceptor::from(Arc::new(config))).await
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(&self, text: &str) -> PathBuf {
        let path = self.0.path().join("ca.pem");
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn address(daemon: &FakeDaemon, host: &str) -> DaemonAddress {
    DaemonAddress::parse(&format!("https://{host}:{}", daemon.port)).unwrap()
}

fn client(address: DaemonAddress, ca_file: Option<&Path>) -> Result<DaemonClient, DaemonError> {
    let settings = ClientSettings {
        ca_file: ca_file.map(Path::to_owned),
        ..ClientSettings::default()
    };
    DaemonClient::with_settings(address, None, &settings)
}

#[tokio::test]
async fn listed_self_signed_certificate_is_accepted() {
    let files = Files::new();
    for names in [&["127.0.0.1", "localhost"][..], &["somewhere.else"]] {
        let certificate = self_signed(names);
        let daemon = daemon(&certificate).await;
        let file = files.with(&certificate.pem);
        let client = client(address(&daemon, "127.0.0.1"), Some(&file)).unwrap();
        client.health().await.unwrap();
    }
}

#[tokio::test]
async fn stream_over_tls_survives_cuts() {
    let certificate = signed(&["localhost"]);
    let daemon = daemon(&certificate).await;
    let file = Files::new();
    let file = file.with(&certificate.pem);
    let client = client(address(&daemon, "localhost"), Some(&file)).unwrap();
    let session = DaemonSessionClient::create_or_attach(&client, &NewSession::default())
        .await
        .unwrap();
    for _ in 0..20 {
        daemon.say("word ");
    }
    daemon.with(|state| state.cuts = [Some(500), Some(900), None].into());
    let mut events = session.events().unwrap();
    let items = read_until(
        &mut events,
        |item| matches!(item, alongside_agent::daemon::StreamItem::Event(event) if event.id == Some(20)),
    )
    .await;
    assert_eq!(ids(&items), (1..=20).collect::<Vec<u64>>());
    assert_eq!(daemon.requests("/events").len(), 3);
}

#[tokio::test]
async fn untrusted_certificate_is_refused_with_hint() {
    let daemon = daemon(&self_signed(&["127.0.0.1"])).await;
    let error = client(address(&daemon, "127.0.0.1"), None)
        .unwrap()
        .health()
        .await
        .unwrap_err();
    assert!(matches!(error, DaemonError::Untrusted(_)), "{error:?}");
    assert!(!error.is_transient());
    assert!(error.hint().unwrap().contains("daemon.ca-file"));
    assert_eq!(
        daemon.requests("/").len(),
        0,
        "nothing was said to it, least of all a token"
    );
}

#[tokio::test]
async fn ca_file_with_other_certificate_is_refused() {
    let files = Files::new();
    let daemon = daemon(&signed(&["127.0.0.1"])).await;
    for other in [signed(&["127.0.0.1"]), self_signed(&["127.0.0.1"])] {
        let file = files.with(&other.pem);
        let error = client(address(&daemon, "127.0.0.1"), Some(&file))
            .unwrap()
            .health()
            .await
            .unwrap_err();
        assert!(matches!(error, DaemonError::Untrusted(_)), "{error:?}");
    }
}

#[tokio::test]
async fn signed_certificate_must_match_the_host() {
    let files = Files::new();
    let certificate = signed(&["localhost"]);
    let daemon = daemon(&certificate).await;
    let file = files.with(&certificate.pem);
    client(address(&daemon, "localhost"), Some(&file))
        .unwrap()
        .health()
        .await
        .unwrap();
    let error = client(address(&daemon, "127.0.0.1"), Some(&file))
        .unwrap()
        .health()
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with("it is not valid for 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn https_to_an_http_daemon_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 64];
        stream.read_exact(&mut hello).await.unwrap();
        // Node's response to a TLS handshake on an HTTP port.
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
    });
    let address = DaemonAddress::parse(&format!("https://127.0.0.1:{port}")).unwrap();
    let error = client(address, None).unwrap().health().await.unwrap_err();
    assert!(matches!(error, DaemonError::Tls(_)), "{error:?}");
    assert!(error.hint().unwrap().contains("http URL"));
}

#[test]
fn ca_file_without_certificate_is_refused() {
    let files = Files::new();
    let https = DaemonAddress::parse("https://localhost:4170").unwrap();
    let empty = files.with("nothing here\n");
    for (path, why) in [
        (empty.as_path(), "no PEM certificate"),
        (Path::new("/nowhere/ca.pem"), ""),
    ] {
        let error = client(https.clone(), Some(path)).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot use daemon.ca-file ") && error.contains("ca.pem") && error.contains(why),
            "{error}"
        );
    }
    // Without TLS the file is not read.
    let http = DaemonAddress::parse("http://localhost:4170").unwrap();
    client(http, Some(&empty)).unwrap();
}

#[tokio::test]
async fn conversation_over_tls_fails_after_certificate_change() {
    let files = Files::new();
    let certificate = self_signed(&["127.0.0.1"]);
    let daemon = daemon(&certificate).await;
    let options = DaemonOptions {
        address: address(&daemon, "127.0.0.1"),
        ca_file: Some(files.with(&certificate.pem)),
        ..DaemonOptions::default()
    };
    let (connection, mut events) = Chat::new();
    connection.connect(options.clone()).await.unwrap();
    daemon.say("hello");
    while !matches!(events.recv().await.unwrap(), AgentEvent::AssistantChunk { .. }) {}
    connection.disconnect().await;
    let end = events.recv().await.unwrap();
    assert!(
        matches!(
            end,
            AgentEvent::Disconnected {
                kind: DisconnectKind::Requested,
                ..
            }
        ),
        "{end:?}"
    );
    files.with(&self_signed(&["127.0.0.1"]).pem);
    let error = connection.connect(options).await.unwrap_err();
    assert!(error.hint().unwrap().contains("daemon.ca-file"));
}
