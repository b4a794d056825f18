//! The configuration: from the operator's file to the objects that the gateway runs on.
//!
//! The raw form is YAML with positions: the code reads a `Document` by `Section` and `Value`, and reports each fault to one
//! `Inspection`. The typed form is `Settings`: addresses, durations, a TLS identity whose key fits its certificate, and a
//! `Snapshot` that judges requests. Invariants: all faults of the file and of each file that it names are reported at once,
//! with file, line and column; an unknown key is a fault; and loaded settings can be started without further access to the
//! disk. Deliberately not here: binding addresses, the current time (expired certificates are found where they are used), and
//! the reload (`gateway` loads the file again and replaces the snapshot).

// Faults and their positions.
mod fault;

// The file: a tree with positions, and its readers.
mod amount;
mod authority;
mod document;
mod secret;
mod section;
mod tree;
mod value;

// The sections, the files that they name, and the settings.
mod answer_sizes;
mod control;
mod endpoints;
mod identity;
mod limits;
mod load;
mod operations;
mod pem;
mod policy;
mod proxies;
mod registers;
mod revocation;
mod root;
mod sca;
mod server_certificates;
mod settings;
#[cfg(test)]
mod settings_tests;
mod signing;
mod state;
mod ticket_keys;
mod trust;

pub use answer_sizes::AnswerSizes;
pub use authority::{Authority, Host};
pub use control::{ClientCa, ControlAccess, ControlAddress, ControlTls};
pub use document::Document;
pub use endpoints::{ClientAuth, Listener, ListenerLimits, Upstream};
pub use fault::{ConfigFault, ConfigFaults, FilePosition, Inspection};
pub(crate) use pem::folder as certificates_in;
pub use proxies::{ClientAddress, Proxies};
pub use secret::Secret;
pub use section::Section;
pub use server_certificates::ServerCertificates;
pub use settings::{Fixed, Log, ReadFiles, Reloadable, Settings};
pub use ticket_keys::{TICKET_KEY_ID, TicketKeys};
pub use trust::TrustFiles;
pub use value::Value;
