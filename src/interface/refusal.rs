//! A refused request: the faults that the caller reads, and the text that only the operator reads.

use super::{Code, Reason};

/// The place of a fault in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultPlace {
    /// The request as a whole: its line, its framing.
    Request,
    /// A header, by the name that the interface gives it.
    Header(&'static str),
    /// A parameter of the query, by its name.
    Query(String),
    /// The body as a whole.
    Body,
    /// A member of the body, by a path such as `instructedAmount.amount` (PAY-2).
    Member(String),
}

/// One fault of a request, and the form that would pass. It is shown to the caller, so it repeats no value that
/// could be personal or secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason.
    pub reason: Reason,
    /// The interface's code for it: the reason's, or a code that the interface has for this fault alone (PAY-12).
    pub code: Option<Code>,
    /// The place of the fault.
    pub place: FaultPlace,
    /// The fault and the accepted form.
    pub text: String,
}

impl Fault {
    /// A fault in a header.
    pub fn header(reason: Reason, header: &'static str, text: impl Into<String>) -> Self {
        Self {
            reason,
            code: reason.code(),
            place: FaultPlace::Header(header),
            text: text.into(),
        }
    }

    /// A fault in a parameter of the query.
    pub fn query(reason: Reason, name: &str, text: impl Into<String>) -> Self {
        Self {
            reason,
            code: reason.code(),
            place: FaultPlace::Query(name.to_owned()),
            text: text.into(),
        }
    }

    /// A fault in the request as a whole.
    pub fn request(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            reason,
            code: reason.code(),
            place: FaultPlace::Request,
            text: text.into(),
        }
    }

    /// A fault in a member of the body.
    pub fn member(reason: Reason, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            reason,
            code: reason.code(),
            place: FaultPlace::Member(path.into()),
            text: text.into(),
        }
    }

    /// A fault in the body.
    pub fn body(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            reason,
            code: reason.code(),
            place: FaultPlace::Body,
            text: text.into(),
        }
    }
}

/// A refused request. [`Refusal::reason`] decides the answer; the faults tell the caller which parts to change.
#[derive(Clone, Debug)]
pub struct Refusal {
    reason: Reason,
    faults: Vec<Fault>,
    operator: Option<String>,
    details: Option<Box<RefusalDetails>>,
}

/// Details that few refusals carry.
#[derive(Clone, Debug, Default)]
struct RefusalDetails {
    allow: Option<String>,
    sca_redirect: Option<String>,
    retry_after: Option<u64>,
    left: Option<QuotaLeft>,
    signing_string: Option<String>,
    status: Option<u16>,
}

/// The rest of a quota, for RateLimit and RateLimit-Policy (QUO-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLeft {
    /// Calls that can be made now.
    pub calls: u8,
    /// Seconds until there is one more.
    pub seconds: u64,
}

impl Refusal {
    /// A refusal that needs no more text than its title.
    pub const fn new(reason: Reason) -> Self {
        Self {
            reason,
            faults: Vec::new(),
            operator: None,
            details: None,
        }
    }

    /// A refusal for everything found wrong at one stage, in the order of the rules: the first decides (ERR-1).
    /// `None` where nothing was found.
    pub fn of(faults: Vec<Fault>) -> Option<Self> {
        let reason = faults.first()?.reason;
        Some(Self {
            reason,
            faults,
            operator: None,
            details: None,
        })
    }

    /// Adds a text for the operator only: it goes to the log, never to the caller.
    pub fn for_operator(mut self, text: impl Into<String>) -> Self {
        self.operator = Some(text.into());
        self
    }

    /// Adds the link to which the PSU is sent for SCA (SCA-1).
    pub fn with_sca_redirect(mut self, href: String) -> Self {
        self.details_mut().sca_redirect = Some(href);
        self
    }

    /// The seconds after which the same request can pass.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.details_mut().retry_after = Some(seconds);
        self
    }

    /// Adds the rest of the quota of a limited operation (QUO-11).
    pub fn with_quota(mut self, left: QuotaLeft) -> Self {
        self.details_mut().left = Some(left);
        self
    }

    /// The methods that the path has (HTTP-2), as the value of Allow.
    pub fn allowing(mut self, methods: String) -> Self {
        self.details_mut().allow = Some(methods);
        self
    }

    /// The signing string that the gateway built (SIG-13), without personal values.
    pub fn with_signing_string(mut self, text: String) -> Self {
        self.details_mut().signing_string = Some(text);
        self
    }

    /// The status of an upstream's answer that is replaced (ERR-6).
    pub fn with_status(mut self, status: u16) -> Self {
        self.details_mut().status = Some(status);
        self
    }

    /// The refusal with the faults that `keep` keeps, by reason and place; `None` if none is left. The first of them decides. A refusal
    /// without faults is kept by its reason.
    pub fn retain(mut self, mut keep: impl FnMut(Reason, &FaultPlace) -> bool) -> Option<Self> {
        if self.faults.is_empty() {
            return keep(self.reason, &FaultPlace::Request).then_some(self);
        }
        self.faults.retain(|fault| keep(fault.reason, &fault.place));
        self.reason = self.faults.first()?.reason;
        Some(self)
    }

    /// The reason.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The interface's code for it: the first fault's (ERR-1).
    pub fn code(&self) -> Option<Code> {
        let first = self.faults.first();
        first.map_or(self.reason.code(), |fault| fault.code)
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.details
            .as_ref()
            .and_then(|details| details.status)
            .unwrap_or_else(|| self.reason.status())
    }

    /// All faults, in the order of the rules.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The text for the operator only.
    pub fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// The link to which the PSU is sent for SCA (SCA-1).
    pub fn sca_redirect(&self) -> Option<&str> {
        self.details.as_ref()?.sca_redirect.as_deref()
    }

    /// The seconds after which the same request can pass.
    pub fn seconds_to_retry(&self) -> Option<u64> {
        self.details.as_ref()?.retry_after
    }

    /// The rest of the quota (QUO-11).
    pub fn quota(&self) -> Option<QuotaLeft> {
        self.details.as_ref()?.left
    }

    /// The methods that the path has (HTTP-2).
    pub fn allow(&self) -> Option<&str> {
        self.details.as_ref()?.allow.as_deref()
    }

    /// The signing string that the gateway built (SIG-13).
    pub fn signing_string(&self) -> Option<&str> {
        self.details.as_ref()?.signing_string.as_deref()
    }

    fn details_mut(&mut self) -> &mut RefusalDetails {
        self.details.get_or_insert_default()
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self {
            reason: fault.reason,
            faults: vec![fault],
            operator: None,
            details: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_decides() {
        let faults = vec![
            Fault::header(Reason::HeaderMissing, "X-Request-ID", "missing"),
            Fault::header(Reason::SignatureMissing, "Signature", "missing"),
        ];
        let refusal = Refusal::of(faults).unwrap();
        assert_eq!(refusal.reason(), Reason::HeaderMissing);
        assert_eq!(refusal.faults().len(), 2);
    }
}
