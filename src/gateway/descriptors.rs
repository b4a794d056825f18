//! File descriptors: the gateway starts only if the process may open as many as its connection limits allow.
//!
//! Some descriptors are reserved for the control listener, the state and revocation data, so the public listener cannot take the
//! last one.

use super::listener::MAX_EXCESS;
use crate::config::{Listener, Upstreams};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The reserved descriptors: connections of the control listener, files of the state, fetches of revocation data.
const KEPT_BACK: usize = 256;

/// The process may open too few descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} file descriptors are needed for listener.max_connections, max_in_flight of the upstreams and {KEPT_BACK} more, and the process may have {allowed}: raise its hard limit (ulimit -Hn, LimitNOFILE), or lower listener.max_connections"
)]
pub struct DescriptorFault {
    needed: u64,
    allowed: u64,
}

/// Raises the process's limit to its hard limit, if that is enough.
///
/// # Errors
/// The hard limit is too low.
pub(super) fn reserve(listener: &Listener, upstreams: &Upstreams) -> Result<(), DescriptorFault> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let needed = needed(listener, upstreams);
    check(needed, maximum)?;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on file descriptors cannot be raised");
        let allowed = getrlimit(Resource::Nofile).current;
        return check(needed, allowed);
    }
    Ok(())
}

/// The number of descriptors that these limits need.
pub(super) fn needed(listener: &Listener, upstreams: &Upstreams) -> u64 {
    let needed = [
        listener.limits.connections,
        MAX_EXCESS,
        upstreams.max_in_flight(),
        KEPT_BACK,
    ];
    let needed = needed.into_iter().fold(0, usize::saturating_add);
    u64::try_from(needed).unwrap_or(u64::MAX)
}

/// `None` means no limit, so there is no fault.
fn check(needed: u64, allowed: Option<u64>) -> Result<(), DescriptorFault> {
    match allowed {
        Some(allowed) if allowed < needed => Err(DescriptorFault { needed, allowed }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few() {
        assert_eq!(check(1024, Some(1024)), Ok(()));
        assert_eq!(check(1024, None), Ok(()));
        let fault = check(1024, Some(1023)).unwrap_err();
        assert!(
            fault
                .to_string()
                .starts_with("1024 file descriptors are needed")
        );
        assert!(fault.to_string().contains("may have 1023"));
    }
}
