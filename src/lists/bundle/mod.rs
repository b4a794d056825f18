//! A bundle: a dated folder of anchors in PEM, with `bundle.yaml`, which says where each comes from.
//!
//! Invariant: what comes after a bundle is checked against it. Deliberately not here: the lists.

// What an import writes into bundle.yaml.
mod document;

// What may follow a bundle.
mod check;
// What changed.
mod diff;
// The anchors of a bundle, to judge by.
mod trust;
// On disk.
mod folder;

pub use check::{Regression, check, known};
pub use diff::{describe, diff, withdrawn};
pub use document::describe_import;
pub use folder::{BundleFolder, dated, newest, read};
pub use portvakt_trust::bundle::{
    AnchorEntry, BundleDocument, CURRENT, Count, DOCUMENT, EarlierList, LeftOutEntry, ListEntry,
    NamedEntry, ServiceEntry, Use,
};
pub use trust::{BundleTrust, Deciding, GatewayConfig, Standing};

#[cfg(test)]
mod tests;
