//! A bundle: a dated folder of anchors in PEM, with `bundle.yaml`, which says where each comes from.
//!
//! Invariant: what comes after a bundle is checked against it. Deliberately not here: the lists.

// What bundle.yaml holds.
mod document;

// What may follow a bundle.
mod check;
// What changed.
mod diff;
// The anchors of a bundle, to judge by.
mod trust;
// On disk.
mod folder;

pub use check::{Regression, check};
pub use diff::{describe, diff, withdrawn};
pub use document::{
    AnchorEntry, BundleDocument, Count, LeftOutEntry, ListEntry, ServiceEntry, Use,
};
pub use folder::{BundleFolder, CURRENT, dated, read};
pub use portvakt_trust::bundle::DOCUMENT;
pub use trust::{BundleTrust, Deciding, GatewayConfig, Standing};

#[cfg(test)]
mod tests;
