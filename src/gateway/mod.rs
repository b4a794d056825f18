//! The public listener and the upstream client. Beside `upstreams`, the only module that depends on pingora.
//!
//! ```text
//! accept ─ TLS ─ stream ─ request_head ─ judge ─ forwarding ─ report
//! │              │                       │       ├ upstream: head and body go out, the head of the answer comes back
//! limit          deadlines, frames       │       ├ settle, core_head: calls and PSUs are settled, the head is cleaned
//!                                        │       └ relay: head and body go to the caller
//!                                        admission::{prove, authorise}
//! ```
//!
//! A refused request ends after `judge`, with an answer of the gateway. Forwarding requires the
//! [`Admitted`](crate::admission::Admitted) that `authorise` constructs: no other request can open a connection to the core
//! (SIG-11).

// Starting and stopping.
mod checked;
mod drain;
mod opened_state;
mod running;
mod server;
mod signals;
mod start_fault;

// Listening sockets: bound, inherited, and handed over to the next process.
mod sockets;
mod upgrade;

// A changed configuration, without a restart, and what its registers take from TPPs.
mod registrations;
mod reload;

// TLS: the gateway's certificates, client certificates (TLS-3), and the tickets of resumed sessions.
mod client_auth;
mod tickets;
mod tls;

// The control listener, as a service of pingora's server, and what it tells the service manager.
mod control_service;
mod watchdog;

// Overload: strangers are refused first.
mod overload;

// File descriptors: enough for all connections within the limits. What a configuration needs at most.
mod descriptors;
mod memory_limit;
mod sizing;

// The public listener, below HTTP: limits on the number, size and time of connections, heads and frames.
mod listener;

// The life of one request.
mod gate;

// One request's exchange: the facts of its begin, its record and its one outcome.
mod exchange;
mod opening;

// The incoming request: its head, its connection, its body, read once.
mod arrival;
mod closing;
mod delivery;
mod head_limits;
mod parse_fault;
mod request_body;
mod request_head;

// A saved request, judged like one that comes in, for `portvakt explain`.
pub(crate) mod saved;

// Forwarding an admitted request to the core, and the core's answer to the caller.
mod audited;
mod forwarding;
mod room;

// The head that goes to the core, and the assertion of the same facts.
pub(crate) mod assertion;
pub(crate) mod forward;

// The core: sending requests, and reading its answers, while the caller is connected.
mod caller_watch;
mod upstream;

// The core's answer: its head cleaned, inner addresses removed, quota and PSUs updated, its body passed on, and read on for slow callers.
mod core_head;
mod error_answer;
mod inner_address;
mod read_ahead;
mod relay;
mod settle;

// The gateway's own answers.
mod descriptions;
mod error_body;
mod failure;
mod refusals;
mod respond;

// Parts of every answer: its headers, the link of an SCA, the signature.
mod answer_head;
mod answer_signature;
mod deprecation;
mod sca_link;

pub use checked::{Checked, Ports};
pub use descriptors::DescriptorFault;
pub use running::{Running, start};
pub use server::{Startup, longest_stop, serve};
pub use sockets::Inherited;
pub use start_fault::{StartFault, StartFaults};

/// Writes the head that goes upstream, for the benchmarks: it is part of the cost of a request.
///
/// # Errors
/// A value is not a valid header value.
#[cfg(feature = "sandbox")]
pub fn upstream_head(
    admitted: &crate::admission::Admitted,
    host: &http::HeaderValue,
) -> pingora::Result<Box<pingora::http::RequestHeader>> {
    let fresh = crate::admission::Fresh::of_any_age(admitted);
    let head = forward::upstream_head(&fresh, host)?.release(&fresh);
    head.ok_or_else(|| pingora::Error::new(pingora::ErrorType::InternalError))
}
