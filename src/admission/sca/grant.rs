//! Compares the requirements of an operation with the state of the PSU: SCA-2 to SCA-8, SCA-16 to SCA-19, SCA-22, HDR-14, QUO-8 to QUO-10.
//!
//! The comparison does no I/O and reads no clock. Deliberately not here: the source of the facts, and the answer to a missing requirement.

use super::session::{self, NoSession};
use crate::{
    clock::{BootTime, Timestamp},
    interface::{
        TppId,
        headers::{CorporateId, PsuId},
        operations::{Agreement, Sca, Transactions},
    },
    sca::PsuPresent,
    state::{
        AsOf, Claimed, Consent, Context, Keys, Known, KnownPsu, Named, Psu, SCA_LASTS, SessionHash,
    },
};
use jiff::{ToSpan, civil::Date};

/// QUO-10: the maximum age of the consent for details without the PSU, in seconds.
pub(crate) const DETAILS_CONSENT_LASTS: u64 = 90 * 86_400;

/// QUO-8, SCA-8: the length of the transaction history that needs no session, in days.
const HISTORY_DAYS: i32 = 90;

/// The day of use of a context that is not known to have been used (CTL-1): before every other day.
const NEVER: Timestamp = Timestamp::from_unix(0);

/// The requirements of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need<'a> {
    /// The requirement of the operation.
    pub(super) sca: Sca,
    /// Whether the request must name the agreement if all contexts of the PSU are corporate (HDR-14).
    pub(super) agreement: Agreement,
    /// The part of the transactions that the operation shows.
    pub(super) transactions: Transactions,
    /// PSU-ID.
    pub(super) psu: Option<Claimed<PsuId>>,
    /// Whether X-PSU-IDENTITY replaces PSU-ID (HDR-12).
    pub(super) identity: bool,
    /// PSU-Corporate-ID.
    pub(super) corporate: Option<Claimed<CorporateId>>,
    /// Whether PSU-Context is sent.
    pub(super) context_named: bool,
    /// The hash of TPP-Session-ID.
    pub(super) session: Option<SessionHash>,
    /// The decoded id of the account in the path.
    pub(super) account: Option<&'a str>,
    /// Whether PSU-IP-Address is sent.
    pub(super) present: bool,
    /// dateFrom.
    pub(super) date_from: Option<Date>,
}

/// The settings of the judgement, besides the state of the PSU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// The requirement on the session of a present PSU (SCA-16).
    pub(super) psu_present: PsuPresent,
    /// The treatment of a PSU-ID that is not bound to this TPP, and of an agreement that is not known (SCA-19, SCA-22).
    pub(super) unknown: Unknown,
    /// The moment as of which the state of the PSU is known (SCA-6, SCA-13).
    pub(super) as_of: AsOf,
    /// The key of the store's hashes.
    pub(super) keys: &'a Keys,
    /// The time.
    pub(super) at: Timestamp,
    /// The date in the bank's time zone.
    pub(super) today: Date,
}

/// The treatment of a PSU-ID that is not bound to this TPP, and of an agreement that is not known (SCA-3, SCA-17, SCA-19, SCA-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The PSU-ID counts as absent; the agreement needs SCA.
    AsNone,
    /// PSUs are learned, and the PSU-ID is not bound to another TPP: the core decides whether PSU and agreement belong to the TPP.
    Learned,
    /// PSUs are learned, and the PSU-ID is bound to another TPP: the answer is the same as for a PSU-ID that the core does not bind.
    Elsewhere,
}

/// The missing requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// SCA-2: no PSU-ID.
    PsuId,
    /// SCA-3: a PSU-ID that is not bound to this TPP.
    Binding,
    /// SCA-17: a PSU-Corporate-ID that no SCA gave to the TPP.
    Agreement,
    /// HDR-14: no PSU-Corporate-ID, although all contexts of the PSU are corporate.
    CorporateId,
    /// SCA-18: no consent.
    Consent,
    /// SCA-18: the consent does not include the account.
    Account,
    /// SCA-7, QUO-9: the last SCA is too old.
    RecentSca,
    /// QUO-10: the consent is too old.
    RecentConsent,
    /// SCA-5, SCA-6, SCA-16: TPP-Session-ID is not the valid session.
    Session(NoSession),
    /// SCA-8: old history without a valid session.
    SessionForHistory,
    /// QUO-8: old history without the PSU.
    PsuForHistory,
}

/// The proof that the operation's requirement on the PSU is met.
#[must_use]
#[derive(Debug)]
pub struct Grant {
    psu: Option<Named<PsuId>>,
    corporate: Option<Named<CorporateId>>,
    session: Option<Timestamp>,
    last_sca: Option<Timestamp>,
    history_from: Option<Date>,
    without_session: bool,
    learned: bool,
    /// The identity under which the calls of a quota of a known PSU are counted (CTL-4).
    counted_as: Option<TppId>,
    /// The last day on which the context of the request was used, or [`NEVER`]; `None` if no stored context is used.
    used: Option<Timestamp>,
    as_of: AsOf,
}

impl Grant {
    /// Whether the facts that it rests on are at most a second old at this moment.
    pub(in crate::admission) fn is_fresh_at(&self, now: BootTime) -> bool {
        self.as_of.is_fresh_at(now)
    }

    /// The PSU, if it is bound to the TPP (SCA-3).
    pub fn psu(&self) -> Option<Known<PsuId>> {
        self.psu.and_then(Named::known)
    }

    /// The corporate agreement, if the PSU has it (SCA-17).
    pub fn corporate(&self) -> Option<Known<CorporateId>> {
        self.corporate.and_then(Named::known)
    }

    /// PSU and agreement, if both are known; the agreement is `None` if the request names none (QUO-15).
    pub fn known_context(&self) -> Option<(Known<PsuId>, Option<Known<CorporateId>>)> {
        let psu = self.psu()?;
        match self.corporate {
            None => Some((psu, None)),
            Some(Named::Known(corporate)) => Some((psu, Some(corporate))),
            Some(Named::Claimed(_)) => None,
        }
    }

    /// The identity under which the calls of a quota of a known PSU are counted: that of the TPP, or the former one under which the PSU was
    /// bound (CTL-4).
    pub const fn counted_as(&self) -> Option<&TppId> {
        self.counted_as.as_ref()
    }

    /// Whether only the core's answer binds the PSU (SCA-19).
    pub const fn is_learned(&self) -> bool {
        self.learned
    }

    /// Whether the request would be the first use of a known PSU's context on this day in UTC, by the facts that the grant rests on (CTL-1).
    pub fn first_use_of_day(&self, now: Timestamp) -> bool {
        self.psu().is_some() && self.used.is_some_and(|used| used < now.day())
    }

    /// PSU-ID, if it is forwarded: that of a bound PSU, or one that is being learned (SCA-19).
    pub const fn named_psu(&self) -> Option<Named<PsuId>> {
        self.psu
    }

    /// PSU-Corporate-ID, if it is forwarded: that of a known agreement, or one that is being learned (SCA-22).
    pub const fn named_corporate(&self) -> Option<Named<CorporateId>> {
        self.corporate
    }

    /// The time at which the SCA of the valid session was completed (SCA-4).
    pub const fn session(&self) -> Option<Timestamp> {
        self.session
    }

    /// The time of the PSU's last SCA.
    pub const fn last_sca(&self) -> Option<Timestamp> {
        self.last_sca
    }

    /// The first date of the transactions to show (QUO-8, SCA-8).
    pub const fn history_from(&self) -> Option<Date> {
        self.history_from
    }

    /// Whether account information is returned with the PSU present and without a session (QUO-14).
    pub const fn without_session(&self) -> bool {
        self.without_session
    }
}

/// Judges the requirements of a request by the state of the PSU.
pub(super) fn grant(
    need: &Need<'_>,
    known: Option<&KnownPsu>,
    terms: &Terms<'_>,
) -> Result<Grant, Lack> {
    let Some(known) = known else {
        return unknown(need, terms);
    };
    let psu = known.facts();
    let session = session::valid(need.session, psu, terms.at);
    let mut grant = Grant {
        psu: Some(Named::Known(known.id())),
        corporate: None,
        session: session.ok(),
        last_sca: psu.last_sca.map(|at| at.min(terms.at)),
        history_from: None,
        without_session: false,
        learned: psu.learned,
        counted_as: Some(known.counted_as().clone()),
        used: None,
        as_of: terms.as_of,
    };
    let context = match agreement(need, known, terms) {
        Ok(None) => psu.context(None),
        Ok(Some((corporate, context))) => {
            grant.corporate = Some(Named::Known(corporate));
            Some(context)
        }
        // The PSU is known, the agreement is not: the agreement is not forwarded.
        Err(Lack::Agreement) if need.sca == Sca::None => None,
        // SCA-22: the core decides. Facts of that agreement are not known.
        Err(Lack::Agreement) if psu.learned && terms.unknown == Unknown::Learned => {
            return Ok(Grant {
                corporate: need.corporate.map(Named::Claimed),
                history_from: learned_history(need, terms)?,
                ..grant
            });
        }
        Err(lack) => return Err(lack),
    };
    grant.used = context.map(|context| context.used.unwrap_or(NEVER));
    if need.sca == Sca::Consent {
        let context = context.ok_or(Lack::Consent)?;
        let consent = consent(psu, context, terms)?;
        grant.history_from = if need.present {
            while_present(need, session, terms)?
        } else {
            while_absent(need, context, consent, terms)?
        };
        // This check is last: a missing requirement that an SCA can satisfy causes a 401 first.
        includes(consent, need, terms)?;
        grant.without_session = need.present && grant.session.is_none();
    }
    Ok(grant)
}

/// SCA-3, SCA-8, SCA-19: no PSU-ID, or one that counts as absent.
fn unknown(need: &Need<'_>, terms: &Terms<'_>) -> Result<Grant, Lack> {
    let nobody = Grant {
        psu: None,
        corporate: None,
        session: None,
        last_sca: None,
        history_from: None,
        without_session: false,
        learned: false,
        counted_as: None,
        used: None,
        as_of: terms.as_of,
    };
    match (need.sca, need.psu) {
        (Sca::None, _) => Ok(nobody),
        (_, Some(_)) if terms.unknown == Unknown::AsNone => Err(Lack::Binding),
        (_, Some(psu)) => {
            // The refusals for an unbound PSU-ID also apply to a PSU-ID of another TPP, so that the answers are the same.
            let history_from = learned_history(need, terms)?;
            if terms.unknown == Unknown::Elsewhere {
                return Err(Lack::Binding);
            }
            Ok(Grant {
                psu: Some(Named::Claimed(psu)),
                corporate: need.corporate.map(Named::Claimed),
                history_from,
                ..nobody
            })
        }
        (Sca::Identified, None) if need.identity => Ok(nobody),
        (_, None) => Err(Lack::PsuId),
    }
}

/// HDR-14, SCA-17: the agreement that the request names, with its context; `None` if it names none. A private context decides even if its
/// consent ended: then the request needs the link of an SCA (SCA-1), and no consent of an agreement takes its place.
fn agreement<'k>(
    need: &Need<'_>,
    psu: &'k KnownPsu,
    terms: &Terms<'_>,
) -> Result<Option<(Known<CorporateId>, &'k Context)>, Lack> {
    if let Some(claimed) = need.corporate {
        let known = psu.agreement(terms.keys, claimed);
        return known.map(Some).ok_or(Lack::Agreement);
    }
    let facts = psu.facts();
    let only_corporate = !facts.contexts.is_empty() && facts.context(None).is_none();
    if only_corporate && !need.context_named && need.agreement == Agreement::Named {
        return Err(Lack::CorporateId);
    }
    Ok(None)
}

/// SCA-7, SCA-18: the consent of the context, if its SCA is recent.
fn consent<'c>(psu: &Psu, context: &'c Context, terms: &Terms<'_>) -> Result<&'c Consent, Lack> {
    let consent = context.consent.as_ref().ok_or(Lack::Consent)?;
    if is_older(psu.last_sca, SCA_LASTS, terms.at) {
        return Err(Lack::RecentSca);
    }
    Ok(consent)
}

/// SCA-18: an account that the consent does not include is unknown to this TPP.
fn includes(consent: &Consent, need: &Need<'_>, terms: &Terms<'_>) -> Result<(), Lack> {
    let account = need.account.map(|account| terms.keys.account(account));
    match account {
        Some(account) if !consent.accounts.include(account) => Err(Lack::Account),
        _ => Ok(()),
    }
}

/// SCA-8, SCA-16: the rules with the PSU present. Returns the first date of the transactions.
fn while_present(
    need: &Need<'_>,
    session: Result<Timestamp, NoSession>,
    terms: &Terms<'_>,
) -> Result<Option<Date>, Lack> {
    let asked = match terms.psu_present {
        PsuPresent::SessionWhenSent => need.session.is_some(),
        PsuPresent::Session => true,
        PsuPresent::Consent => false,
    };
    match session {
        Ok(_) => return Ok(None),
        Err(why) if asked => return Err(Lack::Session(why)),
        Err(_) => {}
    }
    history(need, terms, Lack::SessionForHistory)
}

/// QUO-8 to QUO-10: the rules without the PSU. Returns the first date of the transactions.
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

/// A list with a first day may not go back more than 90 days; a list without one is limited to 90 days.
fn history(need: &Need<'_>, terms: &Terms<'_>, lack: Lack) -> Result<Option<Date>, Lack> {
    let earliest = terms.today.saturating_sub(HISTORY_DAYS.days());
    match (need.transactions, need.date_from) {
        (Transactions::List, None) => Ok(Some(earliest)),
        (Transactions::List, Some(from)) if from < earliest => Err(lack),
        _ => Ok(None),
    }
}

/// The state of a PSU that is being learned is unknown: only the rules that need no state apply (QUO-8).
fn learned_history(need: &Need<'_>, terms: &Terms<'_>) -> Result<Option<Date>, Lack> {
    if need.sca != Sca::Consent || need.present && need.date_from.is_some() {
        return Ok(None);
    }
    history(need, terms, Lack::PsuForHistory)
}

/// Whether more than this many seconds have passed; the last second is still within the limit. An unknown time counts as older.
fn is_older(since: Option<Timestamp>, seconds: u64, at: Timestamp) -> bool {
    since.is_none_or(|since| at.unix() > since.unix().saturating_add(seconds))
}

#[cfg(test)]
mod tests;
