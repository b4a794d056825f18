//! The interface as data and pure rules: its operations, the form of a request, and the refusal for each fault.
//!
//! Nothing here does I/O, reads a clock or depends on the proxy; every function can be tested with a value. The crate knows no certificate, no
//! state and no runtime:
//!
//! ```compile_fail,E0432
//! use portvakt_trust::Trust;
//! ```
//!
//! ```compile_fail,E0432
//! use portvakt_state::StateStore;
//! ```
//!
//! ```compile_fail,E0432
//! use tokio::net::TcpStream;
//! ```
//!
//! ```compile_fail,E0432
//! use pingora::Error;
//! ```

// The closed vocabulary of error codes.
pub mod code;
// Every reason for a refusal.
pub mod reason;
// A refused request, with its faults.
pub mod refusal;
// The meaning of each reason, and its remedy.
pub mod guide;

// The catalogue of operations.
pub mod operations;
// Paths and their ids.
pub mod path;

// The identity of a TPP in its certificate.
pub mod tpp_id;

// Texts of faults about characters and base64 (ERR-10).
pub mod base64_fault;
pub mod character;
// Tokens of HTTP.
pub mod token;
// Names that some servers read as other names.
pub mod fold;
// Names that look like a name that is missing (ERR-10).
pub mod similar;
// Days as queries and bodies write them.
pub mod day;
// Query parameters, by the declaration of an operation.
pub mod query;
// The framing of chunked bodies.
pub mod chunks;
// Bodies, read once and judged by the schema of the operation.
pub mod payload;

// The interface's header table, and one file per header with rules of its own.
pub mod headers;

// The interface as an OpenAPI description.
pub mod openapi;

pub use code::Code;
pub use reason::{Reason, Side};
pub use refusal::{Fault, FaultPlace, QuotaLeft, Refusal};
pub use tpp_id::{Forbidden, ForbiddenTpp, Permitted, PermittedTpp, Registered, TppId};
