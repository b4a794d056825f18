//! What a person runs by hand.

// A TPP's side of the interface: signing a request as a TPP does, and sending it.
pub mod tpp;
