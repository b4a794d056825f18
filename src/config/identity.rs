//! A certificate chain with its key, from the two files that a section names.

use super::pem;
use super::section::Section;
use super::value::Value;
use super::warning::{Condition, Folder, Period};
use crate::expiring::{Expiring, Level};
use crate::trust::{Validity, validity_of};
use openssl::x509::X509;
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

/// Reads the certificate of this kind and its key; reports the faults of both files, and combines them only if both are valid.
pub(super) fn identity(
    section: &mut Section<'_>,
    base: &Path,
    of: Expiring,
) -> Option<Arc<CertifiedKey>> {
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
        warn(&value, &path, &chain, of);
    }
    Some(Arc::new(identity))
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
