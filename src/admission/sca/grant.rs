//! What an operation needs of the PSU, held against what is known of the PSU: SCA-2 to SCA-8, SCA-16 to SCA-19, HDR-14,
//! QUO-8 to QUO-10.
//!
//! It asks nobody and reads no clock. Deliberately not here: the source of the facts, and the answer to a lack.

use crate::{
    clock::Timestamp,
    interface::{
        headers::{CorporateId, PsuId},
        operations::{Agreement, Sca, Transactions},
    },
    sca::PsuPresent,
    state::{Consent, Context, Keys, Psu, SessionHash},
};
use jiff::{ToSpan, civil::Date};

/// SCA-5: a session lasts an hour from its completion; it never slides. In seconds.
const SESSION_LASTS: u64 = 3_600;

/// SCA-7, QUO-9: an SCA is renewed after 180 days. In seconds.
const SCA_LASTS: u64 = 180 * 86_400;

/// QUO-10: without the PSU, details need a consent at most this old. In seconds.
const DETAILS_CONSENT_LASTS: u64 = 90 * 86_400;

/// QUO-8, SCA-8: how far back transactions may reach without a session. In days.
const HISTORY_DAYS: i32 = 90;

/// How far ahead of now a session may have been completed, in seconds: clocks differ.
const AHEAD: u64 = 60;

/// The requirements of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need<'a> {
    /// The requirement of the operation.
    pub(super) sca: Sca,
    /// Whether the agreement must be named where all consents are corporate (HDR-14).
    pub(super) agreement: Agreement,
    /// The part of the transactions that the operation shows.
    pub(super) transactions: Transactions,
    /// PSU-ID.
    pub(super) psu: Option<PsuId>,
    /// X-PSU-IDENTITY stands for it (HDR-12).
    pub(super) identity: bool,
    /// PSU-Corporate-ID.
    pub(super) corporate: Option<CorporateId>,
    /// Whether PSU-Context says which context is meant.
    pub(super) context_named: bool,
    /// TPP-Session-ID, hashed.
    pub(super) session: Option<SessionHash>,
    /// The account in the path, decoded.
    pub(super) account: Option<&'a str>,
    /// PSU-IP-Address is sent.
    pub(super) present: bool,
    /// dateFrom.
    pub(super) date_from: Option<Date>,
}

/// The terms of the judgement, besides the state of the PSU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// What a present PSU's session is asked for (SCA-16).
    pub(super) psu_present: PsuPresent,
    /// The case of a PSU-ID that is not bound to this TPP (SCA-19).
    pub(super) unknown: Unknown,
    /// The key of the store's hashes.
    pub(super) keys: &'a Keys,
    /// The time.
    pub(super) at: Timestamp,
    /// The day, where the bank is.
    pub(super) today: Date,
}

/// The case of a PSU-ID that is not bound to this TPP (SCA-3, SCA-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It is as good as none.
    AsNone,
    /// PSUs are being learned, and it is nobody's: the core says whose it is.
    Learned,
    /// PSUs are being learned, and it is another TPP's: it gets what the core's "no" gets.
    Elsewhere,
}

/// The missing requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// SCA-2: no PSU-ID.
    PsuId,
    /// SCA-3: a PSU-ID that this TPP was never given.
    Binding,
    /// SCA-17: a PSU-Corporate-ID that no SCA gave.
    Agreement,
    /// HDR-14: no PSU-Corporate-ID, where all consents are corporate.
    CorporateId,
    /// SCA-18: no consent.
    Consent,
    /// SCA-18: the account is none of those that the consent names.
    Account,
    /// SCA-7, QUO-9: the last SCA is too old.
    RecentSca,
    /// QUO-10: the consent is too old.
    RecentConsent,
    /// SCA-5, SCA-6, SCA-16: TPP-Session-ID is not the valid session.
    Session,
    /// SCA-8: old history, and no valid session.
    SessionForHistory,
    /// QUO-8: old history, and no PSU.
    PsuForHistory,
}

/// The operation's requirement on the PSU is met.
#[must_use]
#[derive(Debug)]
pub struct Grant {
    psu: Option<PsuId>,
    corporate: Option<CorporateId>,
    bound: bool,
    session: Option<Timestamp>,
    last_sca: Option<Timestamp>,
    history_from: Option<Date>,
    without_session: bool,
}

impl Grant {
    /// The PSU whose PSU-ID goes upstream.
    pub const fn psu(&self) -> Option<PsuId> {
        self.psu
    }

    /// The corporate agreement whose id goes upstream (SCA-17).
    pub const fn corporate(&self) -> Option<CorporateId> {
        self.corporate
    }

    /// Whether the PSU is bound to the TPP; one that is being learned is not yet (SCA-19).
    pub const fn bound(&self) -> bool {
        self.bound
    }

    /// When the SCA of the valid session was completed (SCA-4).
    pub const fn session(&self) -> Option<Timestamp> {
        self.session
    }

    /// The PSU's last SCA.
    pub const fn last_sca(&self) -> Option<Timestamp> {
        self.last_sca
    }

    /// The date that the transactions are to begin at (QUO-8, SCA-8).
    pub const fn history_from(&self) -> Option<Date> {
        self.history_from
    }

    /// Whether account information goes out with the PSU present and without a session (QUO-14).
    pub const fn without_session(&self) -> bool {
        self.without_session
    }
}

/// Judges the requirements of a request by the state of the PSU.
pub(super) fn grant(
    need: &Need<'_>,
    known: Option<&Psu>,
    terms: &Terms<'_>,
) -> Result<Grant, Lack> {
    let mut grant = Grant {
        psu: need.psu,
        corporate: need.corporate,
        bound: known.is_some(),
        session: known.and_then(|psu| valid_session(need, psu, terms.at)),
        last_sca: known
            .and_then(|psu| psu.last_sca)
            .map(|at| at.min(terms.at)),
        history_from: None,
        without_session: false,
    };
    let Some(psu) = known else {
        return unknown(need, grant, terms);
    };
    match (need.sca, agreement(need, psu, terms)) {
        (_, Ok(())) => {}
        // The PSU is known, the agreement is not: the core is not told of it.
        (Sca::None, Err(Lack::Agreement)) => grant.corporate = None,
        (_, Err(lack)) => return Err(lack),
    }
    if need.sca == Sca::Consent {
        let corporate = need.corporate.map(|id| terms.keys.corporate(id));
        let context = psu.context(corporate).ok_or(Lack::Consent)?;
        let consent = consent(psu, context, terms)?;
        grant.history_from = if need.present {
            while_present(need, grant.session, terms)?
        } else {
            while_absent(need, context, consent, terms)?
        };
        // Last: whatever SCA could mend was a 401 before it comes to the account.
        includes(consent, need, terms)?;
        grant.without_session = need.present && grant.session.is_none();
    }
    Ok(grant)
}

/// SCA-3, SCA-8, SCA-19: no PSU-ID, or one that is as good as none.
fn unknown(need: &Need<'_>, grant: Grant, terms: &Terms<'_>) -> Result<Grant, Lack> {
    match (need.sca, need.psu) {
        (Sca::None, _) => Ok(Grant {
            psu: None,
            corporate: None,
            ..grant
        }),
        (_, Some(_)) if terms.unknown == Unknown::AsNone => Err(Lack::Binding),
        (_, Some(_)) => {
            // What is refused of a PSU-ID that is nobody's is refused of another TPP's: the answers are the same.
            let history_from = learned_history(need, terms)?;
            if terms.unknown == Unknown::Elsewhere {
                return Err(Lack::Binding);
            }
            Ok(Grant {
                history_from,
                ..grant
            })
        }
        (Sca::Identified, None) if need.identity => Ok(Grant {
            corporate: None,
            ..grant
        }),
        (_, None) => Err(Lack::PsuId),
    }
}

/// SCA-4, SCA-5: the session that the request names, if it is the one of (TPP, PSU) and its hour has not passed. One that
/// was completed by a clock that was fast is none: it would last longer than an hour.
fn valid_session(need: &Need<'_>, psu: &Psu, at: Timestamp) -> Option<Timestamp> {
    let session = psu
        .session
        .filter(|session| Some(session.id) == need.session)?;
    let completed = session.completed.unix();
    let is_ahead = completed > at.unix().saturating_add(AHEAD);
    let lasts = at.unix() < completed.saturating_add(SESSION_LASTS);
    (lasts && !is_ahead).then_some(session.completed.min(at))
}

/// HDR-14, SCA-17.
fn agreement(need: &Need<'_>, psu: &Psu, terms: &Terms<'_>) -> Result<(), Lack> {
    if let Some(id) = need.corporate {
        let given = psu.context(Some(terms.keys.corporate(id))).is_some();
        return if given { Ok(()) } else { Err(Lack::Agreement) };
    }
    let mut consents = psu
        .contexts
        .iter()
        .filter(|context| context.consent.is_some())
        .peekable();
    let only_corporate =
        consents.peek().is_some() && consents.all(|context| context.corporate.is_some());
    if only_corporate && !need.context_named && need.agreement == Agreement::Named {
        return Err(Lack::CorporateId);
    }
    Ok(())
}

/// SCA-7, SCA-18: the consent of the context, under an SCA that is recent.
fn consent<'c>(psu: &Psu, context: &'c Context, terms: &Terms<'_>) -> Result<&'c Consent, Lack> {
    let consent = context.consent.as_ref().ok_or(Lack::Consent)?;
    if is_older(psu.last_sca, SCA_LASTS, terms.at) {
        return Err(Lack::RecentSca);
    }
    Ok(consent)
}

/// SCA-18: an account that the consent does not name is unknown to this TPP.
fn includes(consent: &Consent, need: &Need<'_>, terms: &Terms<'_>) -> Result<(), Lack> {
    let account = need.account.map(|account| terms.keys.account(account));
    match account {
        Some(account) if !consent.accounts.include(account) => Err(Lack::Account),
        _ => Ok(()),
    }
}

/// SCA-8, SCA-16. The date at which transactions are to begin.
fn while_present(
    need: &Need<'_>,
    session: Option<Timestamp>,
    terms: &Terms<'_>,
) -> Result<Option<Date>, Lack> {
    let asked = match terms.psu_present {
        PsuPresent::SessionWhenSent => need.session.is_some(),
        PsuPresent::Session => true,
        PsuPresent::Consent => false,
    };
    if session.is_some() {
        return Ok(None);
    }
    if asked {
        return Err(Lack::Session);
    }
    history(need, terms, Lack::SessionForHistory)
}

/// QUO-8 to QUO-10. The date at which transactions are to begin.
fn while_absent(
    need: &Need<'_>,
    context: &Context,
    consent: &Consent,
    terms: &Terms<'_>,
) -> Result<Option<Date>, Lack> {
    match need.transactions {
        Transactions::List if is_older(context.last_sca, SCA_LASTS, terms.at) => {
            Err(Lack::RecentSca)
        }
        Transactions::Details if is_older(Some(consent.given), DETAILS_CONSENT_LASTS, terms.at) => {
            Err(Lack::RecentConsent)
        }
        _ => history(need, terms, Lack::PsuForHistory),
    }
}

/// A list that names its first day may not reach back further than 90 days; one that names none is bounded there.
fn history(need: &Need<'_>, terms: &Terms<'_>, lack: Lack) -> Result<Option<Date>, Lack> {
    let earliest = terms.today.saturating_sub(HISTORY_DAYS.days());
    match (need.transactions, need.date_from) {
        (Transactions::List, None) => Ok(Some(earliest)),
        (Transactions::List, Some(from)) if from < earliest => Err(lack),
        _ => Ok(None),
    }
}

/// Of a PSU that is being learned nothing is known: what can be judged and bounded without it is (QUO-8).
fn learned_history(need: &Need<'_>, terms: &Terms<'_>) -> Result<Option<Date>, Lack> {
    if need.sca != Sca::Consent || need.present && need.date_from.is_some() {
        return Ok(None);
    }
    history(need, terms, Lack::PsuForHistory)
}

/// Whether more than this many seconds have passed: the last of them still counts as within. An unknown time is older.
fn is_older(since: Option<Timestamp>, seconds: u64, at: Timestamp) -> bool {
    since.is_none_or(|since| at.unix() > since.unix().saturating_add(seconds))
}

#[cfg(test)]
mod tests;
