//! A certificate chain with its key, from the two files that a section names.

use super::pem;
use super::section::Section;
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

/// Reads certificate and key; reports the faults of both files, and combines them only if both are valid.
pub(super) fn identity(section: &mut Section<'_>, base: &Path) -> Option<Arc<CertifiedKey>> {
    let certificate = section.required("certificate");
    let chain = certificate.and_then(|value| {
        let found = pem::certificates(&value.path(base)?);
        found.map_err(|text| value.fault(text)).ok()
    });
    let key = section.required("key");
    let signing_key = key.as_ref().and_then(|value| {
        let found = pem::private_key(&value.path(base)?);
        found.map_err(|text| value.fault(text)).ok()
    });
    pem::identity(&chain?, signing_key?)
        .map_err(|text| key.map(|value| value.fault(text)))
        .ok()
        .map(Arc::new)
}
