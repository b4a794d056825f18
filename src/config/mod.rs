//! The configuration as it is written: YAML with positions, read so that every fault of a file is reported at once.

mod amount;
mod document;
mod fault;
mod secret;
mod section;
mod tree;
mod value;

pub use document::Document;
pub use fault::{Fault, Faults, Inspection, Place};
pub use secret::Secret;
pub use section::Section;
pub use value::Value;
