//! From the file that an operator writes to the objects that the gateway runs on.
//!
//! There are two worlds, and one step between them. The raw one is YAML in which everything knows its line: a `Document` is walked
//! `Section` by `Section`, `Value` by `Value`, and whatever is wrong goes to one `Inspection`. The ready one is `Settings`:
//! addresses, durations, a TLS identity whose key fits its certificate, a `Snapshot` to judge requests by. Invariants: every fault of
//! the file, and of each file that it names, is reported at once with file, line and column; an unknown key is a fault; and what was
//! loaded can be started without looking at the disk again. Deliberately not here: binding addresses, the time (whether a certificate
//! has expired is judged where it is used), and the moment of a reload (`gateway` loads anew and takes the new snapshot whole).

// What is wrong, and where.
mod fault;

// The file as written: a tree with positions, and how it is asked.
mod amount;
mod authority;
mod document;
mod secret;
mod section;
mod tree;
mod value;

// The files that it names, and the ready objects.
mod control;
mod endpoints;
mod limits;
mod operations;
mod pem;
mod policy;
mod registers;
mod revocation;
mod root;
mod sca;
mod settings;
#[cfg(test)]
mod settings_tests;
mod signing;
mod state;
mod trust;

pub use authority::{Authority, Host};
pub use control::{ClientCa, ControlAccess, ControlAddress, ControlTls};
pub use document::Document;
pub use endpoints::{ClientAuth, Listener, ListenerLimits, Upstream};
pub use fault::{Fault, Faults, FilePosition, Inspection};
pub(crate) use pem::folder as certificates_in;
pub use secret::Secret;
pub use section::Section;
pub use settings::{Fixed, Log, ReadFiles, Reloadable, Settings};
pub use trust::TrustFiles;
pub use value::Value;
