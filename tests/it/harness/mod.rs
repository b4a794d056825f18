//! The world around a gateway.
//!
//! A test starts a [`Gate`] (gateway and upstream, on ports of their own), makes a [`Call`] (a request as a recipe, signed anew each
//! time it is sent) and hands both to [`accepted`] or [`refused`], which look at both ends of the gateway.

/// Requests as recipes.
mod call;
/// Numbers that look random.
mod dice;
/// Certificates that no CA should make, made by editing good ones.
mod forge;
/// A client that speaks HTTP/2 frame by frame.
mod frames;
/// A gateway with an upstream behind it.
mod gate;
/// A client that speaks HTTP/1.1 over TLS, byte by byte.
mod h1;
/// A client that speaks HTTP/2 over TLS.
mod h2;
/// What must hold of an answer and of the upstream.
mod judge;
/// CRLs, OCSP responders, and servers that answer what a test wants.
mod revocation;
/// The upstream that records.
mod upstream;
/// HTTP/1.1 messages off a stream.
mod wire;
/// Authorities and TPPs.
mod world;

use std::io::Write;

pub(crate) use call::{Call, Protocol, Sealed};
pub(crate) use dice::Dice;
pub(crate) use forge::{Forged, identified, resigned};
pub(crate) use frames::{Frames, block, field, frame, string};
pub(crate) use gate::{Gate, GateBuilder, Program};
pub(crate) use h1::{Connection, Tls, chunk, chunked, render, render_head};
pub(crate) use h2::{Manner, exchange_as, exchange_by};
pub(crate) use judge::{Passage, accepted, check_error, needs_sca, refused};
pub(crate) use portvakt::development_pki as pki;
pub(crate) use revocation::{Crl, Responder, Said, Source, ocsp_answer, ocsp_answer_for};
pub(crate) use upstream::{Reply, Seen, Upstream};
pub(crate) use wire::{Answer, Wire};
pub(crate) use world::{Tpp, World, issuing_spec, rsa_key, world};

/// Says that a test does without a tool: one that .ci/needs.sh installs, or that comes from PyPI or npm. On CI (`CI=true`) that fails the
/// test: what is skipped there is skipped for good, and nobody reads that it was.
pub(crate) fn missing(what: &str) {
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(
        !is_ci,
        "{what}; CI=true, so that no suite is skipped: .ci/needs.sh tests installs it, or says what to run"
    );
    skipped(what);
}

/// Says that a test does without what this machine does not have. It is said past the capture of a test that passes, so
/// that nobody takes what was skipped for shown.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
