//! Trusted lists of the EU (ETSI TS 119 612, list versions 5 and 6): from the bytes of a signed list to trust anchors (CRT-13).
//!
//! Invariant: the bytes that are verified are the bytes that are read. One parser makes one tree; the signature is verified over that
//! tree, and the importer accepts only [`signature::Signed`], which only the verifier makes. Deliberately not here: the network (the
//! operator fetches the lists), and the gateway, which never links this crate.

// Why a list is refused, and where.
pub mod fault;

// One document, parsed once.
pub mod tree;

// The canonical form that is signed.
mod canonical;

// The certificates of those who sign lists.
pub mod certificate;

// The signature, verified: the only way to a list that is trusted.
pub mod signature;
// The same, and another program beside it.
pub mod second;

// A list, read from a tree that was verified.
pub mod list;
// Which certificates of a list are anchors.
pub mod anchors;
// Who may write what an import goes by.
mod own_way;
// From files to verified lists and anchors.
pub mod import;
// The dated folder of anchors.
pub mod bundle;
// The addresses to fetch from.
pub mod addresses;
// The TPPs that would lose trust by a bundle.
pub mod losses;
// A bundle for people.
pub mod show;
// The command line.
pub mod cli;

// Lists that the tests sign.
#[cfg(test)]
mod minting;
// What tests of several modules use.
#[cfg(test)]
mod for_tests;

pub use certificate::Certificate;
pub use fault::Refusal;
pub use signature::{Signed, verify};
pub use tree::{Document, Element};
