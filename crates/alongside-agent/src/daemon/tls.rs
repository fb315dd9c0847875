//! TLS to a daemon on this machine.
//!
//! Such a daemon usually has a self-signed certificate, so trust is configured in one of two ways:
//!
//! - A file lists certificates ([`super::ClientSettings::ca_file`]). Then only these are trusted: the daemon presents exactly one of them,
//!   or one signed by one of them. The first case has its own rule, because the usual self-signed certificate claims to be a CA, and
//!   the standard rules do not accept a CA as a server certificate.
//! - Otherwise the system's certificates are trusted, such as a local CA installed for development.
//!
//! Only TLS 1.3 is enabled: every version of Node that runs the daemon supports it.

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

const MAX_FILE_BYTES: u64 = 1024 * 1024;

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
            // A certificate that cannot be a root can still be presented as it is.
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
            // It trusts less than the default verifier, except for the certificates in the user's file.
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
                Some(Error::InvalidCertificate(reason)) => DaemonError::Untrusted(self.describe(reason)),
                Some(Error::InvalidMessage(_)) => DaemonError::Tls("it does not speak TLS".to_owned()),
                Some(other) => DaemonError::Tls(other.to_string()),
                // The connection was closed, as by a restart.
                None => DaemonError::Lost(error.to_string()),
            }
        })
    }

    fn describe(&self, reason: &CertificateError) -> String {
        match reason {
            CertificateError::UnknownIssuer => "it is not signed by a trusted authority".to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "it is not valid yet".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("it is not valid for {}", self.name.to_str())
            }
            // "CaUsedAsEndEntity" is not helpful.
            CertificateError::Other(_) => "it is not a valid server certificate".to_owned(),
            other => other.to_string(),
        }
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DaemonError> {
    let unreadable = |source| DaemonError::CaFile {
        path: path.to_owned(),
        source,
    };
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidData, message.to_owned());
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > MAX_FILE_BYTES {
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

#[derive(Debug)]
struct Verifier {
    /// The certificates in the user's file.
    named: Vec<CertificateDer<'static>>,
    /// Accepts certificates signed by a trusted one.
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
        // The user listed exactly this certificate, so its names and dates do not matter.
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
