//! The listener and the way to the upstream: the only place that knows pingora.
//!
//! ```text
//! accept ─ TLS ─ door ─ read_head ─ judge ─ forward ─ log
//!                │                  │       └ guarded by Admitted: head and body go out, the answer comes in, is
//!                limit, slot        │         settled, goes back
//!                                   admission::{prove, authorise}
//! ```
//!
//! A refused request ends after `judge`. The way from there borrows the [`Admitted`](crate::admission::Admitted)
//! that `authorise` left in the exchange, or fails: should a filter ever let another request go on, no connection is opened
//! for it (SIG-11). What goes upstream is written by [`forward::upstream_head`], which takes nothing else:
//!
//! ```compile_fail,E0308
//! use portvakt::gateway::forward;
//! use http::HeaderValue;
//! fn smuggle(head: &pingora::http::RequestHeader, host: &HeaderValue) { let _ = forward::upstream_head(head, host); }
//! ```
//!
//! ```
//! use portvakt::{admission::Admitted, gateway::forward};
//! use http::HeaderValue;
//! fn pass(admitted: &Admitted, host: &HeaderValue) { let _ = forward::upstream_head(admitted, host); }
//! ```

// TLS: the gateway's own certificate, and what is kept per connection.
mod tls;

// A changed configuration, without a restart.
mod reload;

// The certificates of callers (TLS-3).
mod client_auth;

// The public listener: it says when it accepts.
mod public;

// The door in front of HTTP: the limit on connections, and a watch on what the HTTP layer answers by itself.
mod door;

// The life of one request.
mod proxy;

// The body of a request, read once.
mod body;

// The head that goes upstream.
pub mod forward;

// The same facts, signed.
pub(crate) mod assertion;

// The way to the upstream, and back.
mod upstream;

// The head of its answer.
mod answer;

// Addresses in it that lead into the bank's network.
mod inner_address;

// A connection to the upstream.
mod connection;

// Connections to the upstream that wait.
mod pool;

// What is settled once the upstream has answered.
mod settle;

// SCA that the core demands.
mod demand;

// Answers of the gateway itself.
mod respond;

// What an answer says of an operation that is about to go.
mod deprecation;

// Starting.
mod server;

// The control listener, as a service beside the public one.
mod control_service;

// Stopping.
mod drain;

pub use proxy::{Exchange, Gate, GateSettings};
pub use server::{Running, StartFault, serve, start};
