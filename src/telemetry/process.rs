//! Metrics of the process: its build, its readiness, and what the kernel tells in /proc. A number that cannot be read is left out.

use super::{
    samples::{Families, number},
    table,
    values::{Degradation, ReadinessCondition},
};
use crate::clock::Timestamp;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// The commit of the build, where the environment of the build names it.
/// The commit that the program was built from, or `not recorded`.
pub const COMMIT: &str = match option_env!("PORTVAKT_COMMIT") {
    Some(commit) => commit,
    None => "not recorded",
};

/// Adds the samples. `since` is when the process started; `not_ready` are the conditions of readiness, and whether each fails; `degraded`
/// are the faults with which requests are served nevertheless.
pub(super) fn add(
    since: Timestamp,
    not_ready: &[(ReadinessCondition, bool)],
    degraded: &[(Degradation, bool)],
    to: &mut Families,
) {
    let build = (env!("CARGO_PKG_VERSION"), COMMIT);
    to.each(&table::BUILD_INFO, [(build, 1.0)]);
    let is_ready = not_ready.iter().all(|(_, fails)| !fails);
    to.one(&table::READY, u8::from(is_ready).into());
    let flag = |holds: bool| u8::from(holds).into();
    let not_ready = not_ready.iter();
    let not_ready = not_ready.map(|(condition, fails)| (*condition, flag(*fails)));
    to.each(&table::NOT_READY, not_ready);
    let degraded = degraded.iter();
    let degraded = degraded.map(|(fault, holds)| (*fault, flag(*holds)));
    to.each(&table::DEGRADED, degraded);
    to.one(&table::PROCESS_START, number(since.unix()));
    add_kernels(to);
}

fn add_kernels(to: &mut Families) {
    if let Some(Status {
        ticks,
        threads,
        virtual_bytes,
        resident_pages,
    }) = status()
    {
        let ticks_per_second = number(rustix::param::clock_ticks_per_second());
        let page = u64::try_from(rustix::param::page_size()).unwrap_or_default();
        to.one(&table::PROCESS_CPU, number(ticks) / ticks_per_second);
        to.one(&table::PROCESS_THREADS, number(threads));
        to.one(&table::PROCESS_VIRTUAL, number(virtual_bytes));
        to.one(
            &table::PROCESS_RESIDENT,
            number(resident_pages.saturating_mul(page)),
        );
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them reads the folder.
        let open = u64::try_from(open.count()).unwrap_or(u64::MAX);
        to.one(&table::PROCESS_FDS, number(open.saturating_sub(1)));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        to.one(&table::PROCESS_MAX_FDS, number(most));
    }
}

struct Status {
    ticks: u64,
    threads: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// The fields 14, 15, 20, 23 and 24 of proc_pid_stat(5). The name of the program, field 2, is in parentheses and may contain spaces.
fn status() -> Option<Status> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    Some(Status {
        ticks: field(14)?.saturating_add(field(15)?),
        threads: field(20)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}
