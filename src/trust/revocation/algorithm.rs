//! The signature algorithms that are accepted for CRLs and OCSP answers: none with MD5 or SHA-1 (CRT-10).

use x509_parser::{
    der_parser::{Oid, oid},
    signature_algorithm::SignatureAlgorithm,
    x509::AlgorithmIdentifier,
};

/// RSA (PKCS#1 v1.5), ECDSA and EdDSA, with SHA-256 or more.
const SOUND: [Oid<'static>; 8] = [
    oid!(1.2.840.113549.1.1.11),
    oid!(1.2.840.113549.1.1.12),
    oid!(1.2.840.113549.1.1.13),
    oid!(1.2.840.10045.4.3.2),
    oid!(1.2.840.10045.4.3.3),
    oid!(1.2.840.10045.4.3.4),
    oid!(1.3.101.112),
    oid!(1.3.101.113),
];

/// SHA-256, SHA-384 and SHA-512, as a parameter of RSASSA-PSS.
const HASHES: [Oid<'static>; 3] = [
    oid!(2.16.840.1.101.3.4.2.1),
    oid!(2.16.840.1.101.3.4.2.2),
    oid!(2.16.840.1.101.3.4.2.3),
];

/// Whether the algorithm is accepted.
pub(super) fn is_sound(algorithm: &AlgorithmIdentifier<'_>) -> bool {
    match SignatureAlgorithm::try_from(algorithm) {
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => {
            HASHES.contains(parameters.hash_algorithm_oid())
        }
        _ => SOUND.contains(&algorithm.algorithm),
    }
}
