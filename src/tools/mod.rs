//! What a person runs by hand.

// A TPP's side of the interface: signing a request as a TPP does, sending it, checking what was saved.
pub mod tpp;

// What the gateway thinks of a request, and what its reasons mean.
pub mod explain;
// What the gateway thinks of a certificate.
pub mod cert;

// The keys of SCA links; the PSUs of before.
pub mod psu;
pub mod sca;

// Looking after the state of a gateway.
pub mod state;

// What the tools read: files, moments, certificates in any spelling, saved requests and answers.
mod input;
mod moment;
mod presented;
mod saved;

// How the tools show bytes that a terminal would hide.
mod visible;
