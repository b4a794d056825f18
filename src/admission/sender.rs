//! The checks of the sender, in their order: certificate, role and signature; then rate, register, revocation and redirect host.

use super::{
    Entitled, Head, Judged, ObservableCheck, Redirectable, Registered, Signed, Stage, Tpp, Trial,
    Unrevoked, Waiver, WithinRate, certificate, client_certificate, enforcement::Whose,
    envelope::Envelope, redirect, register, revocation, role, signature,
};
use crate::interface::{Reason, Refusal, operations::Operation};

/// The evidence of the checks that judge the sender.
pub(super) struct OfSender {
    pub(super) tpp: Judged<Tpp>,
    pub(super) entitled: Judged<Entitled>,
    pub(super) signed: Judged<Signed>,
    pub(super) of_signer: OfSigner,
}

/// Judges the sender: the certificate, the signature by the certificate, and the other checks by both.
pub(super) async fn of_sender(
    head: &Head<'_>,
    envelope: &Envelope,
    operation: &Operation,
    trial: &mut Trial<'_>,
) -> Result<OfSender, Refusal> {
    let (snapshot, at) = (trial.snapshot, trial.received());
    let tpp = certificate::identify(head, &snapshot.trust, &snapshot.rates, at);
    let enforcement = &snapshot.policy.enforcement;
    let is_observed = || enforcement.observes(ObservableCheck::Certificate, Whose::Any);
    if tpp.is_err() && (is_observed() || snapshot.rates.name(head.peer)) {
        // By this TPP the refusal is found. Where it may be only observed, the TPP decides on that.
        trial.record.note_claimed(certificate::claimed_tpp(head));
    }
    let tpp = trial.judge(Stage::Certificate, tpp)?;
    let (entitled, signed) = match &tpp {
        Judged::Held(tpp) => {
            trial.record.note_certificate(tpp);
            (
                trial.judge(Stage::Role, role::judge(tpp, operation))?,
                trial.judge(Stage::Signature, signature::verify(head, tpp, snapshot, at))?,
            )
        }
        Judged::Waived(because) => (
            trial.pass_over(Stage::Role, because),
            trial.pass_over(Stage::Signature, because),
        ),
        Judged::NotJudged(_) => return Err(unjudged()),
    };
    trial.confirm()?;
    let of_signer = match (&tpp, &signed) {
        (Judged::Held(tpp), Judged::Held(signed)) => {
            of_signer(head, envelope, (tpp, signed), operation, trial).await?
        }
        (Judged::Waived(because), _) | (_, Judged::Waived(because)) => {
            of_unknown(head, because, operation, trial)?
        }
        _ => return Err(unjudged()),
    };
    Ok(OfSender {
        tpp,
        entitled,
        signed,
        of_signer,
    })
}

/// The evidence of the checks that judge a TPP whose signature was verified.
pub(super) struct OfSigner {
    pub(super) within_rate: Judged<WithinRate>,
    pub(super) registered: Judged<Registered>,
    pub(super) unrevoked: Judged<Unrevoked>,
    pub(super) redirectable: Judged<Redirectable>,
}

/// The checks between the signature and the body. Certificates are public, so only a sender that signed with the key is judged.
async fn of_signer(
    head: &Head<'_>,
    envelope: &Envelope,
    (tpp, signed): (&Tpp, &Signed),
    operation: &Operation,
    trial: &mut Trial<'_>,
) -> Result<OfSigner, Refusal> {
    let snapshot = trial.snapshot;
    let policy = &snapshot.policy;
    let at = trial.received();
    let within_rate = snapshot.rates.tpp(tpp.certificate().tpp_id(), head.method);
    let within_rate = trial.judge(Stage::TppRate, within_rate)?;
    let qwac = client_certificate::judge(head, tpp, signed, snapshot, at);
    let qwac = match trial.judge_further(Stage::Certificate, qwac)? {
        Judged::Held(qwac) => {
            trial.heed_blocks(std::slice::from_ref(tpp.certificate().tpp_id()), operation)?;
            qwac
        }
        // It may be another TPP's.
        _ => {
            heed_claims(head, operation, trial)?;
            None
        }
    };
    let registered = match &snapshot.registers {
        None => Judged::switched_off(policy.environment)?,
        Some(registers) => {
            let found = register::judge(tpp, operation, registers, at);
            trial.judge(Stage::Register, found)?
        }
    };
    let unrevoked = match snapshot.trust.revocation() {
        None => Judged::switched_off(policy.environment)?,
        Some(revocation) => {
            let found =
                revocation::judge(tpp, qwac.as_deref(), operation, policy, revocation, at).await;
            trial.judge(Stage::Revocation, found)?
        }
    };
    let redirectable = redirect::judge(envelope, tpp, policy);
    let redirectable = trial.judge(Stage::Redirect, redirectable)?;
    Ok(OfSigner {
        within_rate,
        registered,
        unrevoked,
        redirectable,
    })
}

/// The results if certificate or signature were waived: there is no TPP to judge. The bank's block still refuses those that it names.
fn of_unknown(
    head: &Head<'_>,
    because: &Waiver,
    operation: &Operation,
    trial: &mut Trial<'_>,
) -> Result<OfSigner, Refusal> {
    let snapshot = trial.snapshot;
    let environment = snapshot.policy.environment;
    let within_rate = trial.pass_over(Stage::TppRate, because);
    heed_claims(head, operation, trial)?;
    let registered = match &snapshot.registers {
        Some(_) => trial.pass_over(Stage::Register, because),
        None => Judged::switched_off(environment)?,
    };
    Ok(OfSigner {
        within_rate,
        registered,
        unrevoked: match snapshot.trust.revocation() {
            Some(_) => trial.pass_over(Stage::Revocation, because),
            None => Judged::switched_off(environment)?,
        },
        redirectable: trial.pass_over(Stage::Redirect, because),
    })
}

/// Refuses the request if the bank blocks one of the TPPs that its certificates name.
fn heed_claims(
    head: &Head<'_>,
    operation: &Operation,
    trial: &mut Trial<'_>,
) -> Result<(), Refusal> {
    let snapshot = trial.snapshot;
    let claims = certificate::claims(head);
    trial.heed_blocks(&claims, operation)?;
    match &snapshot.registers {
        Some(registers) => register::judge_claims(&claims, registers)
            .or_else(|refusal| trial.require(Stage::Register, Err(refusal))),
        None => Ok(()),
    }
}

/// A check was neither made nor waived, although another check needs its evidence. The stages never cause this; if that changes, the
/// request is refused.
fn unjudged() -> Refusal {
    Refusal::new(Reason::Internal).for_operator("a check of the sender was not made")
}
