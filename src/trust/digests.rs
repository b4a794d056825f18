//! The digests by which certificates are looked up.

use aws_lc_rs::digest::{Context, SHA256};

/// The SHA-256 of a certificate's DER; for a certificate with its pool, the SHA-256 of all their digests.
pub(super) type Digest = [u8; 32];

/// The cache keys of the certificates in a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digests {
    pub(super) leaf: Digest,
    /// For refusals that depend on the pool.
    pub(super) with_pool: Digest,
}

impl Digests {
    pub(super) fn of(leaf: Digest, pool: &[Vec<u8>]) -> Self {
        let pool: Vec<_> = pool.iter().map(|der| sha256(&[der])).collect();
        let mut all: Vec<&[u8]> = vec![b"with its pool", &leaf];
        all.extend(pool.iter().map(|digest| digest.as_slice()));
        Self {
            with_pool: sha256(&all),
            leaf,
        }
    }
}

pub(super) fn sha256(parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut out = [0; 32];
    for (out, byte) in out.iter_mut().zip(context.finish().as_ref()) {
        *out = *byte;
    }
    out
}
