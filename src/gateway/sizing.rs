//! The memory and the file descriptors that a gateway of a configuration needs; docs/sizing.md explains the figures.
//!
//! Invariant: each figure was measured, or is a bound that a test keeps. Deliberately not here: memory that depends on files and not on
//! settings (registers, CRLs), the sum of what TPPs add, whose number no setting has, and the kernel's buffers.

use super::descriptors;
use crate::{
    config::{ClientAuth, Settings},
    trust::MAX_PRESENTED,
};

/// The process after its start, in KiB (benches/memory).
const START: u64 = 33_404;

/// A connection on which no signature has verified, with all the requests that it may have open (`memory::open_requests`).
const CONNECTION: u64 = 256;

/// What a connection keeps of a client's certificates besides, in KiB: its chain, as rustls has it and as the gateway has it.
const CLIENT_CHAIN: u64 = 2 * 16;
const _: () = assert!(MAX_PRESENTED == 16 * 1024);

/// The same once a signature has verified, in MiB.
const SIGNED_MIB: u64 = 2;

/// A TPP that has called, in KiB (benches/memory).
const TPP: u64 = 9;

/// The page caches of SQLite, in KiB: 16 MiB each for the writer and the mover of the log, 4 MiB for each of four readers.
const CACHES: u64 = 48 * 1024;

/// Bytes of a PSU (benches/state), of a request id with the rest that a call leaves, and of a used-up quota.
const PSU: u64 = 874;
const REQUEST_ID: u64 = 100;
const QUOTA: u64 = 205;

/// Two lines: the memory, and the descriptors.
pub(super) fn describe(settings: &Settings) -> String {
    let fixed = &settings.fixed;
    let connections = whole(fixed.listener.limits.connections);
    let state = &fixed.state;
    let held = [
        (state.psus_in_memory, PSU),
        (whole(state.request_ids_in_memory), REQUEST_ID),
        (state.refusals_in_memory, QUOTA),
    ];
    let held = held
        .into_iter()
        .map(|(count, bytes)| count.saturating_mul(bytes));
    let held = held.fold(0, u64::saturating_add) / 1024;
    let connection = match fixed.listener.client_auth {
        ClientAuth::Off => CONNECTION,
        ClientAuth::Optional | ClientAuth::Required => CONNECTION + CLIENT_CHAIN,
    };
    let open = connections.saturating_mul(connection);
    let ahead = whole(fixed.listener.limits.read_ahead) / 1024;
    let sum = [START, CACHES, open, ahead, held]
        .into_iter()
        .fold(0, u64::saturating_add);
    let start = START.saturating_add(CACHES);
    let [sum, start, open, ahead, held] = [sum, start, open, ahead, held].map(mebibytes);
    let descriptors = descriptors::needed(&fixed.listener, &settings.reloadable.upstreams);
    format!(
        "{sum} MiB of memory: {start} for the process, {open} for {connections} connections ({connection} KiB each), {ahead} for answers to slow callers, {held} for PSUs, request ids and quotas; besides, at most {SIGNED_MIB} MiB for each connection on which a signature has verified, and {TPP} KiB for each TPP\n\
         at most {descriptors} file descriptors"
    )
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

const fn mebibytes(kibibytes: u64) -> u64 {
    kibibytes.div_ceil(1024)
}
