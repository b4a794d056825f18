//! The TPP's standing now, where it was judged a while ago: at the claim of a request, and at the end of an SCA (REP-1, SCA-23).
//!
//! A body may be under way for a minute and a link lives for 15, and meanwhile the bank may block the TPP, or a register may lose its role.
//! So both are judged once more by the snapshot in use at that moment, and not by the one that they began with. Deliberately not here: the
//! age of a register, which takes nothing from a TPP, and the certificate.

use super::{
    Head, Snapshot, certificate,
    enforcement::{Caller, Whose},
    register,
    stage::Stage,
};
use crate::{
    interface::{Refusal, TppId, operations::Role},
    sca::Pending,
    trust::Roles,
};
use std::ptr;

/// The proof that neither the bank nor an enforced register turns the TPP away now.
#[must_use]
#[derive(Debug)]
pub struct GoodStanding {
    _judged: (),
}

/// The snapshot in use now, which a reload may have replaced since a request or a link began.
pub trait Present: Send + Sync {
    /// Judges by the snapshot in use now, with [`Question::judge`].
    ///
    /// # Errors
    /// The TPP is turned away.
    fn judge(&self, question: &Question<'_>) -> Result<GoodStanding, Refusal>;
}

/// A world that no reload changes, for tests and measurements.
impl Present for Snapshot {
    fn judge(&self, question: &Question<'_>) -> Result<GoodStanding, Refusal> {
        question.judge(self)
    }
}

/// The TPP of a request that was judged by an earlier snapshot.
#[derive(Debug)]
pub struct Question<'a> {
    /// The snapshot that judged the head.
    pub(super) before: &'a Snapshot,
    pub(super) whose: Claimant<'a>,
}

/// The sender of a request at its claim.
#[derive(Debug)]
pub(super) enum Claimant<'a> {
    /// A TPP whose signature verified, the roles of its certificate, and the role that the operation needs.
    Tpp(&'a TppId, Roles, Role),
    /// The head of an unknown sender, whose certificates name TPPs (FWD-6).
    Unknown(&'a Head<'a>),
}

impl Question<'_> {
    /// Judges by `now`.
    ///
    /// # Errors
    /// The bank blocks the TPP, or an enforced register no longer has its role.
    pub fn judge(&self, now: &Snapshot) -> Result<GoodStanding, Refusal> {
        if !ptr::eq(self.before, now) {
            match &self.whose {
                Claimant::Tpp(tpp, certified, needed) => of_tpp(now, tpp, *certified, *needed)?,
                Claimant::Unknown(head) => {
                    if let Some(registers) = &now.registers {
                        register::judge_claims(&certificate::claims(head), registers)?;
                    }
                }
            }
        }
        Ok(GoodStanding { _judged: () })
    }
}

/// The standing of the TPP that was given a link (SCA-23). A link does not carry the roles of the certificate: each request proves them
/// again. An operation that the catalogue no longer has needs any role.
///
/// # Errors
/// The bank blocks the TPP, or an enforced register no longer has its role.
pub fn of_link(now: &Snapshot, pending: &Pending) -> Result<GoodStanding, Refusal> {
    let operation = now.catalogue.named(&pending.operation);
    let needed = operation.map_or(Role::Either, |operation| operation.role);
    of_tpp(now, &pending.tpp, Roles::ALL, needed)?;
    Ok(GoodStanding { _judged: () })
}

fn of_tpp(now: &Snapshot, tpp: &TppId, certified: Roles, needed: Role) -> Result<(), Refusal> {
    let Some(registers) = &now.registers else {
        return Ok(());
    };
    let Err(refusal) = register::stands(tpp, certified, needed, registers) else {
        return Ok(());
    };
    let whose = Whose::Of(Caller::proven(Some(tpp)));
    let ruling = now.policy.enforcement.rule(Stage::Register, refusal, whose);
    ruling.decision.map(drop)
}
