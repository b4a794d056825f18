//! A certificate chain with its key, from the two files that a section names.

use super::hsm::{self, KeyInHsm};
use super::pem;
use super::section::Section;
use super::value::Value;
use super::warning::{Condition, Folder, Period};
use crate::expiring::{Expiring, Level};
use crate::hsm::Purpose;
use crate::trust::{Validity, validity_of};
use openssl::x509::X509;
use rustls::sign::{CertifiedKey, SigningKey};
use std::path::Path;
use std::sync::Arc;

/// A certificate chain with its key.
pub(super) struct Identity {
    /// The chain and the key.
    pub(super) certified: Arc<CertifiedKey>,
    /// The key's use in an HSM; `None` for a key in a file.
    pub(super) hsm: Option<KeyInHsm>,
}

/// Reads the certificate of this kind and its key; reports the faults of both, and combines them only if both are valid. Without a `purpose` the
/// key is in a file.
pub(super) fn identity(
    section: &mut Section<'_>,
    base: &Path,
    of: Expiring,
    purpose: Option<Purpose>,
) -> Option<Identity> {
    let certificate = section.required("certificate");
    let path = certificate.as_ref().and_then(|value| value.path(base));
    let chain = certificate.as_ref().zip(path.as_deref());
    let chain = chain.and_then(|(value, path)| {
        let found = pem::certificates(path);
        found.map_err(|text| value.fault(text)).ok()
    });
    let key = section.required("key");
    let (signing_key, hsm) = match key.as_ref().filter(|value| value.is_mapping()) {
        Some(value) => in_hsm(value, base, chain.as_deref(), purpose).unzip(),
        None => (key.as_ref().and_then(|value| in_file(value, base)), None),
    };
    let chain = chain?;
    let identity = pem::identity(&chain, signing_key?)
        .map_err(|text| key.map(|value| value.fault(text)))
        .ok()?;
    if let Some((value, path)) = certificate.zip(path) {
        warn(&value, &path, &chain, of);
    }
    Some(Identity {
        certified: Arc::new(identity),
        hsm,
    })
}

fn in_file(key: &Value<'_>, base: &Path) -> Option<Arc<dyn SigningKey>> {
    let found = pem::private_key(&key.secret_path(base)?);
    found.map_err(|text| key.fault(text)).ok()
}

fn in_hsm(
    key: &Value<'_>,
    base: &Path,
    chain: Option<&[X509]>,
    purpose: Option<Purpose>,
) -> Option<(Arc<dyn SigningKey>, KeyInHsm)> {
    let Some(purpose) = purpose else {
        key.fault("a key in an HSM (pkcs11) is not used here; name a file");
        return None;
    };
    let written = hsm::read(key, base)?;
    let leaf = chain?.first()?;
    let public = leaf.public_key().ok();
    if let Some(text) = public.and_then(|public| pem::fault_of_size(&public)) {
        key.fault(format!("the key in the HSM is {text}"));
        return None;
    }
    written.open(leaf, purpose)
}

/// Warns while certificates of this kind that `value` names are not valid, or end within 30 days. `shown` is the folder or file,
/// `consequence` that of none being valid.
pub(super) fn warn_of_all(
    value: &Value<'_>,
    of: Expiring,
    shown: String,
    certificates: &[X509],
    consequence: &'static str,
) {
    let periods = certificates.iter().filter_map(|one| validity_of(one).ok());
    value.warn_while(Condition::Folder(Folder {
        of,
        shown,
        periods: periods.collect(),
        consequence,
        counts_each: true,
    }));
}

/// Warns of a certificate that no client accepts, now or within 30 days, and of a chain that some clients cannot follow.
pub(super) fn warn(value: &Value<'_>, path: &Path, chain: &[X509], of: Expiring) {
    if let Some(validity) = chain.first().and_then(|leaf| validity_of(leaf).ok()) {
        let Validity {
            not_before,
            not_after,
        } = validity;
        let texts = [
            format!(
                "the certificate is not valid before {not_before}; no client accepts it until then"
            ),
            format!("the certificate ends at {not_after}, within 30 days: get the next one"),
            format!("the certificate ended at {not_after}; no client accepts it"),
        ];
        value.warn_while(Condition::Period(Period {
            of,
            validity,
            at_end: Level::at_end(of.stops_requests()),
            texts,
        }));
    }
    if let Some((_, sent @ [_, ..])) = chain.split_first() {
        let shown = format!("the chain of {}", path.display());
        warn_of_all(value, of, shown, sent, "");
    }
    if let Some(position) = pem::misplaced(chain) {
        value.warn(format!(
            "certificate {position} of the file did not issue the one before it: write the chain in its order, the gateway's own certificate first, then its CA, and so on"
        ));
    }
}
