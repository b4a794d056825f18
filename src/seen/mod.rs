//! The certificates by which requests were signed within 30 days, in a file: who would lose trust by another bundle of anchors.
//!
//! Invariants: only a [`VerifiedSignature`](crate::trust::VerifiedSignature) adds a certificate, so that strangers add none; the number of certificates is bounded, in all
//! and for each TPP; a request waits for no disk, and notes a certificate once a day. Deliberately not here: what a bundle trusts, which
//! `portvakt-lists show` judges by the file.

// The certificates in memory, and their bounds.
mod record;
// The same, shared by requests and the thread.
mod shared;
// The lines of the file.
mod file;
// The certificates that end soon.
mod ending;
// The thread that reads and writes the file.
mod keeper;

pub use ending::SeenEvent;
pub use file::file_beside;
pub use keeper::{LAST_WITHIN, SeenKeeper};
pub use shared::SeenCertificates;

#[cfg(test)]
mod tests;
