//! A bundle of trust anchors that `portvakt-lists import` writes (CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and `websites`.
//!
//! Invariant: `portvakt-lists` and the gateway read a bundle by the same code, so that both refuse the same ones, in the same words.
//! Deliberately not here: the lists, and how a bundle is written.

// bundle.yaml: what may be wrong with it, the forms of its values, its schema, and how it is read.
mod document;
mod fault;
mod forms;
mod parse;
// Where it contradicts itself, and the lines of its parts.
mod contradiction;
mod lines;
mod reading;
// Its files, and who may write them.
mod files;
// The way to it, and who may write there.
mod place;
// The bundles beside it.
mod beside;
// All of it, as it is loaded.
mod load;

pub use beside::{dated_bundles, read_document_of};
pub use document::{
    AnchorEntry, BundleDocument, Count, EarlierList, LeftOutEntry, ListEntry, NamedEntry,
    ServiceEntry, Use,
};
pub use fault::{
    CURRENT, DOCUMENT, DocumentFault, FORMAT, MAX_ANCHOR_BYTES, MAX_ANCHORS, MAX_DOCUMENT_BYTES,
    MAX_EVENTS, MAX_NESTING, MAX_NODES,
};
pub use load::{LoadedBundle, load};

// Documents that are read whole.
#[cfg(test)]
mod tests;
