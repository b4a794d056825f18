//! The members of the body (PAY-1 to PAY-14, PAY-17), by the schema of the operation.
//!
//! The check reads the bytes that are forwarded (PAY-15), and does not depend on the digest: if the digest is only observed, the core still
//! gets no body that violates the rules.

use super::Policy;
use crate::{
    clock::Timestamp,
    interface::{
        Reason, Refusal,
        operations::{Body, Operation},
        payload,
    },
};

/// The proof that the operation accepts the body.
#[must_use]
#[derive(Debug)]
pub struct ValidPayload {
    _judged: (),
}

pub(super) fn judge(
    bytes: &[u8],
    operation: &Operation,
    policy: &Policy,
    at: Timestamp,
) -> Result<ValidPayload, Refusal> {
    // The body stage checks HTTP-8 and PAY-16.
    if operation.body != Body::Json {
        return Ok(ValidPayload { _judged: () });
    }
    match payload::check(
        bytes,
        operation.schema,
        &operation.members,
        policy.today(at),
        &policy.ibans,
    ) {
        Ok(()) => Ok(ValidPayload { _judged: () }),
        // There is always at least one fault. If that changes, the request is refused.
        Err(faults) => {
            Err(Refusal::of(faults).unwrap_or_else(|| Refusal::new(Reason::PayloadInvalid)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::operations::Environment;

    #[test]
    fn the_day_is_the_banks() {
        let mut policy = Policy::new(Environment::Sandbox);
        // 2026-06-30T22:00:00Z is midnight in Oslo.
        let midnight = 1_782_856_800;
        let day = |policy: &Policy, unix| policy.today(Timestamp::from_unix(unix)).to_string();
        assert_eq!(day(&policy, midnight - 1), "2026-06-30");
        assert_eq!(day(&policy, midnight), "2026-07-01");
        // In winter, midnight is one hour later in UTC.
        assert_eq!(day(&policy, 1_767_222_000 - 1), "2025-12-31");
        assert_eq!(day(&policy, 1_767_222_000), "2026-01-01");
        policy.time_zone = jiff::tz::TimeZone::get("America/New_York").unwrap();
        assert_eq!(day(&policy, midnight), "2026-06-30");
    }
}
