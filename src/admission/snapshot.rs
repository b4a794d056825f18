//! The world that a request is judged by, in one value: a request never sees half of a reload.

use super::Waiver;
use crate::{
    interface::{
        Reason, Refusal,
        headers::identity::IdentityForm,
        operations::{Catalogue, Environment},
    },
    trust::Trust,
};
use std::collections::BTreeMap;

/// Everything that a judgement depends on, the request and the time apart. It is taken once per request and replaced
/// whole.
#[derive(Debug)]
pub struct Snapshot {
    /// What the operator decided.
    pub policy: Policy,
    /// The operations.
    pub catalogue: Catalogue,
    /// The trust anchors and the certificates that are known by them.
    pub trust: Trust,
}

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The environment that this process serves (CRT-9).
    pub environment: Environment,
    /// The most bytes that a body may have (HTTP-6).
    pub body_limit: usize,
    /// What must be signed besides SIG-7's headers, in lower case (SIG-14).
    pub also_signed: Vec<String>,
    /// How X-PSU-IDENTITY is written (HDR-12).
    pub identity: IdentityForm,
    /// The hosts that a TPP may name in TPP-Redirect-URI, by its identity in capitals; a TPP that is not here may name
    /// any (HDR-8).
    pub redirect_hosts: BTreeMap<String, Vec<String>>,
    /// The reasons that are observed and not refused (FWD-6).
    pub(crate) observed: Vec<Reason>,
}

impl Policy {
    /// The policy of an environment with every default.
    pub const fn new(environment: Environment) -> Self {
        Self {
            environment,
            body_limit: Self::MAX_BODY,
            also_signed: Vec::new(),
            identity: IdentityForm::NORWEGIAN,
            redirect_hosts: BTreeMap::new(),
            observed: Vec::new(),
        }
    }

    /// The largest body limit there is, 64 KiB: what the proxy can keep and send again (HTTP-6).
    pub const MAX_BODY: usize = 64 * 1024;

    /// The permission to let a refusal pass, where its reason is observed.
    pub(super) fn waiver(&self, refusal: &Refusal) -> Option<Waiver> {
        self.observed.contains(&refusal.reason()).then(Waiver::mint)
    }
}
