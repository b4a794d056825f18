//! What every crate of Portvakt may use: time as a value, private files, the one writer to a terminal, small formats, and enums with names.
//!
//! The crate knows nothing of the interface, of TLS or of HTTP. Code that only one other crate needs does not belong here:
//!
//! ```compile_fail,E0432
//! use portvakt_interface::TppId;
//! ```
//!
//! ```compile_fail,E0432
//! use rustls::ServerConfig;
//! ```

// Time as a value; the only module that reads the machine's clocks.
pub mod clock;
// Files of keys and of state, readable by their owner only.
pub mod private_file;
// The way to a file, and who may lead it elsewhere.
pub mod way;
// The standard streams, escaped.
pub mod terminal;

// The causes of an error, for operators.
pub mod causes;
// Bytes in hexadecimal digits.
pub mod hex;
// A row of a CSV file, read strictly.
pub mod csv_row;
// Networks of IP addresses.
pub mod network;
// Why a file cannot be written.
pub mod write_fault;
// Enums whose values have names.
mod values;
