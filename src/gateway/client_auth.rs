//! What the handshake asks of a caller's certificate (TLS-3): that its key is the caller's, and nothing else.
//!
//! Whose certificate it is, and whether it holds, is judged at every request, where a refusal can say so. rustls verifies the
//! signature of the handshake, and a resumed session shows the certificate that its first handshake did.

use crate::config::ClientAuth;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{
        WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::sync::Arc;

/// What asks for certificates; `None` where none is asked for.
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

/// Takes every certificate whose key the caller has.
#[derive(Debug)]
struct Possession {
    required: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Possession {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    /// None: a client that chooses its certificate by such hints would have to know each of our anchors' names.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
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
