//! A bundle of trust anchors that `portvakt-lists import` writes (CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and `websites`.
//!
//! Invariant: `portvakt-lists` and the gateway read a bundle by the same code, so that both refuse the same ones, in the same words.
//! Deliberately not here: the lists, and how a bundle is written.

// bundle.yaml: what may be wrong with it, the forms of its values, and its schema.
mod document;
mod fault;
mod forms;
// Its files, and who may write them.
mod files;
// The way to it, and who may write there.
mod place;
// All of it, as it is loaded.
mod load;

pub use document::{
    AnchorEntry, BundleDocument, Count, EarlierList, LeftOutEntry, ListEntry, NamedEntry,
    ServiceEntry, Use,
};
pub use fault::{
    CURRENT, DOCUMENT, DescribedBundle, DescribedList, DocumentFault, FORMAT, MAX_ANCHOR_BYTES,
    MAX_ANCHORS, MAX_DOCUMENT_BYTES, MAX_EVENTS, MAX_NESTING, MAX_NODES, judge_document,
};
pub use load::{LoadedBundle, load};

// Documents that are read whole.
#[cfg(test)]
mod tests;
