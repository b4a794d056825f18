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

/// The memory by its parts, in KiB.
struct Memory {
    connections: u64,
    /// That of each connection.
    connection: u64,
    open: u64,
    ahead: u64,
    held: u64,
}

impl Memory {
    fn of(settings: &Settings) -> Self {
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
        let connection = match fixed.listener.client_auth {
            ClientAuth::Off => CONNECTION,
            ClientAuth::Optional | ClientAuth::Required => CONNECTION + CLIENT_CHAIN,
        };
        Self {
            connections,
            connection,
            open: connections.saturating_mul(connection),
            ahead: whole(fixed.listener.limits.read_ahead) / 1024,
            held: held.fold(0, u64::saturating_add) / 1024,
        }
    }

    fn sum(&self) -> u64 {
        [START, CACHES, self.open, self.ahead, self.held]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Two lines: the memory, and the descriptors.
pub(super) fn describe(settings: &Settings) -> String {
    let memory = Memory::of(settings);
    let Memory {
        connections,
        connection,
        open,
        ahead,
        held,
    } = memory;
    let start = START.saturating_add(CACHES);
    let [sum, start, open, ahead, held] = [memory.sum(), start, open, ahead, held].map(mebibytes);
    let descriptors = descriptors::needed(&settings.fixed.listener, &settings.reloadable.upstreams);
    format!(
        "{sum} MiB of memory: {start} for the process, {open} for {connections} connections ({connection} KiB each), {ahead} for answers to slow callers, {held} for PSUs, request ids and quotas; besides, at most {SIGNED_MIB} MiB for each connection on which a signature has verified, and {TPP} KiB for each TPP\n\
         at most {descriptors} file descriptors"
    )
}

/// Warns where the kernel ends the process before it has the memory that strangers can make it use. `limit` is in bytes.
pub(super) fn beyond(settings: &Settings, limit: Option<u64>) -> Option<String> {
    let (sum, limit) = (mebibytes(Memory::of(settings).sum()), limit? >> 20);
    (sum > limit).then(|| {
        format!(
            "the memory limit of this process's control group is {limit} MiB, and this configuration needs up to {sum} MiB: raise the limit, or lower listener.max_connections, listener.read_ahead, or the limits of the state (docs/sizing.md)"
        )
    })
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

const fn mebibytes(kibibytes: u64) -> u64 {
    kibibytes.div_ceil(1024)
}
