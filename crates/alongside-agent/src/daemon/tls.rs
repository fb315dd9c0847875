//! TLS to a daemon on this machine.
//!
//! Such a daemon has a certificate that its owner made, so whom to trust is said in one of two ways:
//!
//! - A file names certificates ([`super::ClientSettings::ca_file`]). Then nobody else is trusted: the daemon shows one of them, byte by byte,
//!   or one that the owner of one of them has signed. The first case has its own rule, because the usual self-signed certificate says
//!   that it is an authority, and as such it may not stand for a host.
//! - Otherwise those are trusted that the system trusts, such as a local authority that was installed for development.
//!
//! Only TLS 1.3 is spoken: every Node that runs the daemon speaks it.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::address::DaemonAddress;
use super::error::DaemonError;

/// The largest file with certificates that is read.
const LARGEST_FILE: u64 = 1024 * 1024;

/// What is needed to speak TLS to one daemon.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    pub(super) fn new(address: &DaemonAddress, ca_file: Option<&Path>) -> Result<Self, DaemonError> {
        let provider = Arc::new(ring::default_provider());
        let named = ca_file.map(read_certificates).transpose()?.unwrap_or_default();
        let mut roots = RootCertStore::empty();
        if ca_file.is_some() {
            // One that cannot be a root can still be shown as it is.
            roots.add_parsable_certificates(named.iter().cloned());
        } else {
            let system = rustls_native_certs::load_native_certs();
            for error in system.errors {
                tracing::debug!(%error, "some system certificates cannot be read");
            }
            roots.add_parsable_certificates(system.certs);
        }
        let signed = if roots.is_empty() {
            None
        } else {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
            Some(verifier.map_err(|error| DaemonError::Tls(error.to_string()))?)
        };
        let verifier = Verifier {
            named,
            signed,
            provider: Arc::clone(&provider),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| DaemonError::Tls(error.to_string()))?
            // It only ever trusts less than the usual one does, except for the certificate that a person has named.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let host = address.host();
        let name = match host.parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(host).map_err(|_| DaemonError::Unsendable("the name of the host"))?,
        };
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    pub(super) async fn connect(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, DaemonError> {
        let connected = self.connector.connect(self.name.clone(), stream).await;
        connected.map_err(|error| {
            let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            match tls {
                Some(Error::InvalidCertificate(reason)) => DaemonError::Untrusted(self.words(reason)),
                Some(Error::InvalidMessage(_)) => DaemonError::Tls("it does not speak TLS".to_owned()),
                Some(other) => DaemonError::Tls(other.to_string()),
                // It went away in the middle, as one that is restarted does.
                None => DaemonError::Lost(error.to_string()),
            }
        })
    }

    fn words(&self, reason: &CertificateError) -> String {
        match reason {
            CertificateError::UnknownIssuer => "it is not signed by a trusted authority".to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "it is not valid yet".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("it is not valid for {}", self.name.to_str())
            }
            // "CaUsedAsEndEntity" would tell nobody anything.
            CertificateError::Other(_) => "it is not a valid server certificate".to_owned(),
            other => other.to_string(),
        }
    }
}

/// The certificates of a file.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DaemonError> {
    let unreadable = |source| DaemonError::CaFile {
        path: path.to_owned(),
        source,
    };
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidData, message.to_owned());
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST_FILE {
        return Err(unreadable(invalid("it is too large to be a certificate file")));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| unreadable(invalid(&error.to_string())))?;
    if found.is_empty() {
        return Err(unreadable(invalid("it contains no PEM certificate")));
    }
    Ok(found)
}

/// Decides whether the certificate that the daemon shows will do.
#[derive(Debug)]
struct Verifier {
    /// Those that a person has named.
    named: Vec<CertificateDer<'static>>,
    /// Those that were signed by somebody who is trusted.
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // Who has its key is who a person meant: neither its names nor its dates say more than that.
        if self.named.iter().any(|named| named == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.signed {
            Some(signed) => signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
