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
mod inspection;
mod position;

// The file: a tree with positions, and its readers.
mod address;
mod amount;
mod authority;
mod document;
mod expected;
mod nested;
mod secret;
mod section;
mod syntax;
mod tree;
mod value;
mod warning;
mod writable;
mod written_paths;

// The sections, the files that they name, and the settings.
mod answer_sizes;
mod audit;
mod bundle;
mod control;
mod control_clients;
mod documentation;
mod endpoints;
mod hsm;
mod identity;
mod limits;
mod load;
mod log;
mod named_file;
mod observe;
mod operations;
mod pem;
mod policy;
mod postgres;
mod proxies;
mod reference;
mod registers;
mod revocation;
mod root;
mod sca;
mod schema;
mod server_certificates;
mod settings;
#[cfg(test)]
mod settings_tests;
mod show;
mod shutdown;
mod signing;
mod state;
mod state_folder;
mod ticket_keys;
mod traces;
mod trust;
mod upstreams;

pub use amount::duration;
pub use answer_sizes::AnswerSizes;
pub use audit::AuditSettings;
pub use authority::{Authority, Host};
pub use bundle::{GrantedService, GrantedServices, NextUpdate, TrustBundle};
pub use control::{ClientCa, ControlAccess, ControlAddress, ControlTls};
pub use control_clients::{ClientRoles, ControlRole};
pub use document::Document;
pub use endpoints::{ClientAuth, Listener, ListenerLimits};
pub use fault::{ConfigFault, ConfigFaults, FilePosition};
pub use inspection::Inspection;
pub use log::{Log, LogOutput};
pub(crate) use pem::{certificates as certificates_of, folder as certificates_in};
pub use proxies::{ClientAddress, Proxies};
pub use schema::schema;
pub use secret::Secret;
pub use section::Section;
pub use server_certificates::ServerCertificates;
pub use settings::{Fixed, ReadFiles, Reloadable, Settings, Shown};
pub use show::show;
pub use shutdown::Shutdown;
pub use ticket_keys::{TICKET_KEY_ID, TicketKeys};
pub use traces::{NoRatio, NoTraceEndpoint, Ratio, TraceEndpoint, TraceSettings};
pub use trust::TrustFiles;
pub use upstreams::{
    ActiveCheck, Ejection, UpstreamEndpoint, UpstreamGroup, UpstreamNetworks, UpstreamTls,
    Upstreams,
};
pub use value::Value;
pub use warning::Warning;
