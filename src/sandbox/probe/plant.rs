//! Facts of a request, and headers that somebody between gateway and core plants beside an assertion with other claims.

use super::request::{Example, Request};
use super::session::Session;
use std::fmt;
use uuid::Uuid;

/// A fact that the gateway sends as a header and as a claim.
#[derive(Debug)]
pub(super) struct Fact {
    /// The name of the check of its origin.
    pub(super) check: &'static str,
    /// The gateway's header. The claim is made of it.
    pub(super) header: &'static str,
    /// Further names that a core may read: the same in lower case, with `_` as CGI writes `-` (RFC 3875, section 4.1.18), and other ones.
    pub(super) others: &'static [&'static str],
    /// The correction.
    pub(super) mend: &'static str,
}

pub(super) const TPP: Fact = Fact {
    check: "facts",
    header: "Gateway-Tpp-Id",
    others: &["gateway-tpp-id", "Gateway_Tpp_Id"],
    mend: "take the TPP and every other fact from the claims, not from the Gateway- headers, also where a claim is missing",
};

pub(super) const PSU: Fact = Fact {
    check: "psu-header",
    header: "PSU-ID",
    others: &["psu-id", "PSU_ID", "Gateway-Psu-Id"],
    mend: "take the PSU from the claim psu_id, not from the header PSU-ID or another one; without the claim no PSU is known",
};

pub(super) const SCA: Fact = Fact {
    check: "sca-header",
    header: "Gateway-Sca",
    others: &["gateway-sca", "Gateway_Sca"],
    mend: "take the SCA from the claim gateway-sca, not from the header; without the claim there is none",
};

pub(super) const ROLES: Fact = Fact {
    check: "roles-header",
    header: "Gateway-Tpp-Roles",
    others: &["gateway-tpp-roles", "Gateway_Tpp_Roles"],
    mend: "take the roles from the claim gateway-tpp-roles, not from the header; without the claim there are none",
};

/// How the planted header stands beside the assertion.
#[derive(Clone, Copy, Debug)]
pub(super) enum Disguise {
    /// In place of the gateway's header.
    InPlace,
    /// Under this name before the gateway's header, which has the value of the claim.
    Before(&'static str),
    /// The same behind the gateway's header.
    Behind(&'static str),
    /// The only one, and the assertion has no claim: the gateway did not establish the fact.
    Unclaimed,
}

impl fmt::Display for Disguise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace => f.write_str("header beside another claim"),
            Self::Before(name) => write!(f, "header {name} before the gateway's"),
            Self::Behind(name) => write!(f, "header {name} behind the gateway's"),
            Self::Unclaimed => f.write_str("header without a claim"),
        }
    }
}

impl Fact {
    /// All disguises of the header.
    pub(super) fn disguises(&self) -> Vec<Disguise> {
        let mut disguises = vec![Disguise::InPlace, Disguise::Unclaimed];
        let others = self.others.iter().copied();
        disguises.extend(others.map(Disguise::Behind));
        disguises.extend(self.others.first().copied().map(Disguise::Before));
        disguises
    }

    /// A request in which claim and header have this value.
    pub(super) fn right(&self, session: &Session, example: &Example, value: &str) -> Request {
        let request = session.gateway.forwarded(example);
        session.gateway.vouch(request.with(self.header, value))
    }

    /// A request without claim and header.
    pub(super) fn absent(&self, session: &Session, example: &Example) -> Request {
        let request = session.gateway.forwarded(example);
        session.gateway.vouch(request.without(self.header))
    }

    /// A request in which the planted header has another value than the claim.
    pub(super) fn planted(
        &self,
        session: &Session,
        example: &Example,
        disguise: Disguise,
        [claimed, written]: [&str; 2],
    ) -> Request {
        let claims = || self.right(session, example, claimed);
        match disguise {
            Disguise::InPlace => claims().with(self.header, written),
            Disguise::Before(name) => claims().with_before(name, written),
            Disguise::Behind(name) => claims().with_behind(name, written),
            Disguise::Unclaimed => self.absent(session, example).with(self.header, written),
        }
    }
}

/// The Gateway-Tpp-Id of a TPP that has done nothing at the core yet, another one each time.
pub(super) fn another_tpp() -> String {
    format!("PSDNO-FSA-{:06}", Uuid::new_v4().as_u128() % 1_000_000)
}
