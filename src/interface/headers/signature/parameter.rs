//! The parameters of a Signature header.

/// The four parameters, by their names.
pub(super) const PARAMETERS: [&str; 4] = ["keyId", "algorithm", "headers", "signature"];

/// The maximum number of listed names, more than the interface has headers. It bounds the search for repeated names.
pub const MAX_LISTED: usize = 64;

/// The names that later drafts of HTTP signatures added, of parameters and, in parentheses, of listed headers.
pub(super) const TIMES: [&str; 2] = ["created", "expires"];
