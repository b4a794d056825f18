//! The priority of threads that do not serve requests.

/// The nice value of the thread: parsing an answer of 5 MiB takes more CPU time than a hundred requests.
const NICE: i32 = 10;

/// Lowers the priority of the calling thread. Errors are ignored.
pub(super) fn step_back() {
    let _ = rustix::process::setpriority_process(None, NICE);
}
