//! The TPP's standing now, where it was judged a while ago: at the claim of a request, and at the end of an SCA (REP-1, SCA-23).
//!
//! A body may be under way for a minute, a connection to the core for seconds, and a link lives for 15 minutes; meanwhile the bank may block
//! the TPP, or a register may lose its role. So all of them are judged once more by the snapshot in use at that moment, and not by the one that they began with, and by the blocks that the
//! bank's calls made (CTL-2), which stand beside its own list. Deliberately not here: the age of a register, which takes nothing from a TPP,
//! and the certificate.

use super::{
    Snapshot,
    enforcement::{Caller, Whose},
    register,
    sca::unavailable,
    stage::Stage,
};
use crate::{
    clock::Timestamp,
    interface::{
        Refusal, TppId,
        headers::PsuId,
        operations::{Operation, Role},
    },
    sca::Pending,
    state::{Blocks, Claimed, Keys, Known, Named, StateStore},
    trust::Roles,
};
use std::ptr;

/// The proof that neither the bank nor an enforced register turns the TPP away now.
#[must_use]
#[derive(Debug)]
pub struct GoodStanding {
    _listed: Listed,
}

/// The proof that neither the bank's own list nor an enforced register in the configuration in use turns the TPP away.
#[must_use]
#[derive(Debug)]
pub struct Listed {
    _judged: (),
}

/// The snapshot in use now, which a reload may have replaced since a request or a link began.
pub trait Present: std::fmt::Debug + Send + Sync {
    /// Judges by the snapshot in use now, with [`Question::judge`].
    ///
    /// # Errors
    /// The TPP is turned away.
    fn judge(&self, question: &Question<'_>) -> Result<Listed, Refusal>;
}

/// A configuration that no reload replaces, for tests and measurements.
impl Present for Snapshot {
    fn judge(&self, question: &Question<'_>) -> Result<Listed, Refusal> {
        question.judge(self)
    }
}

/// The sender of a request that was judged by an earlier snapshot.
#[derive(Debug)]
pub struct Question<'a> {
    /// The snapshot that judged the head.
    pub(super) before: &'a Snapshot,
    pub(super) whose: Claimant<'a>,
    /// The role that the operation needs.
    pub(super) needed: Role,
    /// The PSU that the request names.
    pub(super) psu: Option<Claimed<PsuId>>,
}

/// The sender of a request at its claim, and on its way to the core.
#[derive(Debug)]
pub(super) enum Claimant<'a> {
    /// A TPP whose signature verified, and the roles of its certificate.
    Tpp(&'a TppId, Roles),
    /// The TPPs that the certificates of an unknown sender name (FWD-6).
    Unknown(&'a [TppId]),
}

impl Question<'_> {
    /// Judges by the configuration `now`.
    ///
    /// # Errors
    /// The bank's own list blocks the TPP, or an enforced register no longer has its role.
    pub fn judge(&self, now: &Snapshot) -> Result<Listed, Refusal> {
        if !ptr::eq(self.before, now) {
            match &self.whose {
                Claimant::Tpp(tpp, certified) => of_tpp(now, tpp, *certified, self.needed)?,
                Claimant::Unknown(claims) => {
                    if let Some(registers) = &now.registers {
                        register::judge_claims(claims, registers)?;
                    }
                }
            }
        }
        Ok(Listed { _judged: () })
    }

    /// Judges by the configuration in use now, and by the bank's calls (CTL-2).
    ///
    /// # Errors
    /// The TPP is turned away, or the store is unavailable.
    pub(super) async fn decide(
        &self,
        present: &dyn Present,
        store: &StateStore,
        at: Timestamp,
    ) -> Result<GoodStanding, Refusal> {
        let listed = present.judge(self)?;
        let blocks = store.blocks_now().await.map_err(unavailable)?;
        if !blocks.is_empty() {
            let psu = self.psu.map(Named::Claimed);
            let (keys, psus) = (store.keys(), psu.as_slice());
            match &self.whose {
                Claimant::Tpp(tpp, _) => unblocked(&blocks, tpp, self.needed, psus, keys, at)?,
                Claimant::Unknown(claims) => {
                    for tpp in *claims {
                        unblocked(&blocks, tpp, self.needed, psus, keys, at)?;
                    }
                }
            }
        }
        Ok(GoodStanding { _listed: listed })
    }
}

/// The standing of the TPP that was given a link (SCA-23), for the PSUs that the link and its end name. A link does not carry the roles of
/// the certificate: each request proves them again. An operation that the catalogue no longer has needs any role, and may be a payment.
///
/// # Errors
/// The bank blocks the TPP or a PSU of it, an enforced register no longer has its role, or the store is unavailable.
pub async fn of_link(
    now: &Snapshot,
    store: &StateStore,
    pending: &Pending,
    psu: Option<Known<PsuId>>,
    at: Timestamp,
) -> Result<GoodStanding, Refusal> {
    let operation = now.catalogue.named(&pending.operation);
    let needed = operation.map(|operation| operation.role);
    let in_register = needed.unwrap_or(Role::Either);
    of_tpp(now, &pending.tpp, Roles::ALL, in_register)?;
    let blocks = store.blocks_now().await.map_err(unavailable)?;
    let psus = pending.psu.into_iter().chain(psu);
    let psus: Vec<_> = psus.map(Named::Known).collect();
    let needed = needed.unwrap_or(Role::PaymentInitiation);
    unblocked(&blocks, &pending.tpp, needed, &psus, store.keys(), at)?;
    Ok(GoodStanding {
        _listed: Listed { _judged: () },
    })
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

/// CTL-2: the blocks by the bank's calls.
fn unblocked(
    blocks: &Blocks,
    tpp: &TppId,
    needed: Role,
    psus: &[Named<PsuId>],
    keys: &Keys,
    at: Timestamp,
) -> Result<(), Refusal> {
    let is_payment = needed == Role::PaymentInitiation;
    let psus = || psus.iter().map(|psu| keys.sought(*psu)).collect();
    match blocks.refuses(tpp, is_payment, psus, at) {
        true => Err(register::blocked()),
        false => Ok(()),
    }
}

/// The same before the body is read, as far as it is known without the store: [`Question::decide`] decides.
///
/// # Errors
/// The bank blocks one of these TPPs.
pub(super) fn heed(
    blocks: &Blocks,
    tpps: &[TppId],
    operation: &Operation,
    at: Timestamp,
) -> Result<(), Refusal> {
    let is_payment = operation.role == Role::PaymentInitiation;
    let is_blocked = |tpp| blocks.refuses(tpp, is_payment, Vec::new, at);
    match tpps.iter().any(is_blocked) {
        true => Err(register::blocked()),
        false => Ok(()),
    }
}
