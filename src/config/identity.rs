//! A certificate chain with its key, from the two files that a section names.

use super::pem;
use super::section::Section;
use super::value::Value;
use crate::clock::Timestamp;
use crate::trust::{end_of, validity_of};
use openssl::x509::X509;
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

/// Reads certificate and key; reports the faults of both files, and combines them only if both are valid.
pub(super) fn identity(section: &mut Section<'_>, base: &Path) -> Option<Arc<CertifiedKey>> {
    let certificate = section.required("certificate");
    let path = certificate.as_ref().and_then(|value| value.path(base));
    let chain = certificate.as_ref().zip(path.as_deref());
    let chain = chain.and_then(|(value, path)| {
        let found = pem::certificates(path);
        found.map_err(|text| value.fault(text)).ok()
    });
    let key = section.required("key");
    let signing_key = key.as_ref().and_then(|value| {
        let found = pem::private_key(&value.secret_path(base)?);
        found.map_err(|text| value.fault(text)).ok()
    });
    let chain = chain?;
    let identity = pem::identity(&chain, signing_key?)
        .map_err(|text| key.map(|value| value.fault(text)))
        .ok()?;
    if let Some((value, path)) = certificate.zip(path) {
        warn(&value, &path, &chain);
    }
    Some(Arc::new(identity))
}

/// The end of the certificate of a chain that ends first, the CAs that are sent with it included.
pub(super) fn first_end(identity: &CertifiedKey) -> Option<Timestamp> {
    identity.cert.iter().filter_map(|der| end_of(der)).min()
}

/// The end of the certificate that ends first.
pub(super) fn first_of(certificates: &[X509]) -> Option<Timestamp> {
    let periods = certificates.iter().filter_map(|one| validity_of(one).ok());
    periods.map(|period| period.not_after).min()
}

/// Warns while certificates that `value` names are not valid, or end within 30 days. `shown` is the folder or file, `consequence` that of
/// none being valid.
pub(super) fn warn_of_all(
    value: &Value<'_>,
    shown: String,
    certificates: &[X509],
    consequence: &'static str,
) {
    let periods = certificates.iter().filter_map(|one| validity_of(one).ok());
    let (place, periods) = (value.place().clone(), periods.collect());
    value
        .inspection()
        .warn_of_folder(place, shown, periods, consequence);
}

/// Warns of a certificate that no client accepts, now or within 30 days, and of a chain that some clients cannot follow.
fn warn(value: &Value<'_>, path: &Path, chain: &[X509]) {
    if let Some(period) = chain.first().and_then(|leaf| validity_of(leaf).ok()) {
        let before = format!(
            "the certificate is not valid before {}; no client accepts it until then",
            period.not_before
        );
        let after = format!(
            "the certificate ended at {}; no client accepts it",
            period.not_after
        );
        value.warn_outside(period, [before, after]);
        let soon = format!(
            "the certificate ends at {}, within 30 days: get the next one",
            period.not_after
        );
        let place = value.place().clone();
        value.inspection().warn_soon(place, period, soon);
    }
    if let Some((_, sent @ [_, ..])) = chain.split_first() {
        let shown = format!("the chain of {}", path.display());
        warn_of_all(value, shown, sent, "");
    }
    if let Some(position) = pem::misplaced(chain) {
        value.warn(format!(
            "certificate {position} of the file did not issue the one before it: write the chain in its order, the gateway's own certificate first, then its CA, and so on"
        ));
    }
}
