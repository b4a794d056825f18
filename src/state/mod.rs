//! What outlives a request: the PSU's binding, sessions and consents, the quota, request ids.
//!
//! [`Store`] is an enum over its kinds, so that the request's path needs no boxed future. There is one kind yet: none.
//! The SQLite one and the Redis one become variants of it, and with them its two verbs on the request's path: to look
//! up a PSU, and to claim a request id and a call of the quota in one step. It knows nothing of admission, which turns
//! what a store says into evidence.

/// Where state is kept.
#[derive(Debug, Default)]
pub enum Store {
    /// Nothing is kept, so nothing can be looked up or claimed.
    #[default]
    Stateless,
}
