//! The handshake's check of a client certificate (TLS-3): the client has the private key, and its chain is no longer than one in a header
//! may be (HTTP-9), because a connection keeps it. Nothing else is checked here.
//!
//! Each request is checked against the identity and the validity of the certificate, because only an answer to a request can
//! explain a refusal. rustls verifies the signature of the handshake, and a resumed session presents the certificate of its first
//! handshake.

use crate::{config::ClientAuth, trust::MAX_PRESENTED};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{
        WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::sync::Arc;

/// The verifier of client certificates; `None` if no certificate is requested.
pub(super) fn verifier(client_auth: ClientAuth) -> Option<Arc<dyn ClientCertVerifier>> {
    let required = match client_auth {
        ClientAuth::Off => return None,
        ClientAuth::Optional => false,
        ClientAuth::Required => true,
    };
    Some(Arc::new(Possession {
        required,
        algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
    }))
}

/// Accepts every certificate of up to [`MAX_PRESENTED`] bytes with its chain whose private key the client has.
#[derive(Debug)]
struct Possession {
    required: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Possession {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    /// Empty: a client that selects its certificate by such hints would have to know the name of each of our anchors.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let pool: usize = intermediates.iter().map(|der| der.len()).sum();
        if end_entity.len().saturating_add(pool) > MAX_PRESENTED {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
