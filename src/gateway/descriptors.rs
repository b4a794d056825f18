//! File descriptors: the process is allowed as many as its limits on connections may take, or does not start.
//!
//! So the public listener never takes the last one: those of the control listener, of the state and of revocation are kept back.

use super::listener::TOLD;
use crate::config::{Listener, Upstream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept back: connections of the control listener, files of the state, fetches of revocation data.
const KEPT_BACK: usize = 256;

/// Too few descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} file descriptors are needed for listener.max_connections, upstream.max_in_flight and {KEPT_BACK} more, and the process may have {allowed}: raise its hard limit (ulimit -Hn, LimitNOFILE), or lower listener.max_connections"
)]
pub struct DescriptorFault {
    needed: u64,
    allowed: u64,
}

/// Raises the limit of the process to its hard limit, where that covers what may be needed.
///
/// # Errors
/// It does not.
pub(super) fn reserve(listener: &Listener, upstream: &Upstream) -> Result<(), DescriptorFault> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let needed = [
        listener.limits.connections,
        TOLD,
        upstream.max_in_flight,
        KEPT_BACK,
    ];
    let needed = needed.into_iter().fold(0, usize::saturating_add);
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
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

/// Without a limit there is none.
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
