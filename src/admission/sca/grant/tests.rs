//! Each row of the session table, and each limit to the second on both sides, without a store.

/// The day of the last use.
mod day_of_use;

use super::*;
use crate::{
    interface::headers::SessionId,
    state::{Accounts, ContextOrigin, Session},
};
use jiff::civil::date;

/// The time of the completed SCA and of the consent.
const THEN: u64 = 1_767_225_600;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

const ID: Claimed<PsuId> = Claimed::by_tpp(PsuId::from_bits(7));
const FIRM: Claimed<CorporateId> = Claimed::by_tpp(CorporateId::from_bits(8));

/// The agreement, by the bank's word.
const GIVEN: Known<CorporateId> = Known::by_bank(CorporateId::from_bits(8));

fn keys() -> Keys {
    Keys::new(&[1; 32])
}

fn tpp() -> TppId {
    TppId::parse("PSDNO-FSA-1").unwrap()
}

fn session(name: &str) -> SessionHash {
    let id = SessionId::from_text(name).unwrap();
    keys().session(&tpp(), &id)
}

/// A PSU who completed an SCA in private, under session S, and consented to all accounts.
fn psu() -> Psu {
    let then = Timestamp::from_unix(THEN);
    Psu {
        learned: false,
        last_sca: Some(then),
        session: Some(Session {
            id: session("S"),
            completed: then,
        }),
        contexts: vec![Context {
            corporate: None,
            origin: ContextOrigin::Bank,
            last_sca: Some(then),
            consent: Some(Consent {
                given: then,
                accounts: Accounts::All,
            }),
            used: None,
        }],
        customer: None,
        pseudonym: None,
        consents_ended: None,
    }
}

/// A request for the list of an account's transactions with the PSU present, without a session.
fn list() -> Need<'static> {
    Need {
        sca: Sca::Consent,
        agreement: Agreement::Named,
        transactions: Transactions::List,
        psu: Some(ID),
        identity: false,
        corporate: None,
        context_named: false,
        session: None,
        account: Some("a"),
        present: true,
        date_from: None,
    }
}

const fn no(why: NoSession) -> Option<Lack> {
    Some(Lack::Session(why))
}

fn judge(need: &Need<'_>, known: Option<&Psu>, after: u64) -> Result<Grant, Lack> {
    judge_by(need, known, after, PsuPresent::SessionWhenSent, false)
}

fn judge_by(
    need: &Need<'_>,
    known: Option<&Psu>,
    after: u64,
    psu_present: PsuPresent,
    learning: bool,
) -> Result<Grant, Lack> {
    let terms = Terms {
        psu_present,
        unknown: if learning {
            Unknown::Learned
        } else {
            Unknown::AsNone
        },
        as_of: AsOf::ANY_TIME,
        keys: &keys(),
        at: Timestamp::from_unix(THEN + after),
        today: date(2026, 7, 1),
    };
    let known = known.map(|facts| KnownPsu::with_facts(ID.to_show(), tpp(), facts.clone()));
    grant(need, known.as_ref(), &terms)
}

fn lack(need: &Need<'_>, known: Option<&Psu>, after: u64) -> Option<Lack> {
    judge(need, known, after).err()
}

/// SCA-2, SCA-3, SCA-8.
#[test]
fn who_is_asked_for() {
    let need = |sca, psu, identity| Need {
        sca,
        psu,
        identity,
        ..list()
    };
    let known = psu();
    let table = [
        (Sca::Consent, None, false, Some(Lack::PsuId)),
        (Sca::Consent, None, true, Some(Lack::PsuId)),
        (Sca::Identified, None, false, Some(Lack::PsuId)),
        (Sca::Identified, None, true, None),
        (Sca::None, None, false, None),
        (Sca::Consent, Some(ID), false, Some(Lack::Binding)),
        (Sca::Identified, Some(ID), false, Some(Lack::Binding)),
        (Sca::Identified, Some(ID), true, Some(Lack::Binding)),
        (Sca::None, Some(ID), false, None),
    ];
    for (sca, id, identity, expected) in table {
        let need = need(sca, id, identity);
        assert_eq!(lack(&need, None, 0), expected, "{sca:?} {id:?} {identity}");
        if id.is_some() {
            assert_eq!(lack(&need, Some(&known), 0), None, "{sca:?}");
        }
    }
    let dropped = judge(&need(Sca::None, Some(ID), false), None, 0).unwrap();
    assert_eq!(dropped.named_psu(), None);
}

/// SCA-4 to SCA-6, SCA-16: the table "Session validity".
#[test]
fn a_session_lasts_an_hour() {
    let known = psu();
    let sent = |name| Need {
        session: Some(session(name)),
        ..list()
    };
    let granted = judge(&sent("S"), Some(&known), HOUR - 1).unwrap();
    assert_eq!(granted.session(), Some(Timestamp::from_unix(THEN)));
    assert!(!granted.without_session());
    assert_eq!(lack(&sent("S"), Some(&known), HOUR), no(NoSession::Over));
    assert_eq!(lack(&sent("T"), Some(&known), 0), no(NoSession::Another));
    assert_eq!(
        lack(&sent("T"), Some(&known), HOUR),
        no(NoSession::AnotherOver)
    );
    let mut other = known.clone();
    other.session = None;
    assert_eq!(lack(&sent("S"), Some(&other), 0), no(NoSession::Nothing));
    other.session = Some(Session {
        id: session("S"),
        completed: Timestamp::from_unix(THEN + 61),
    });
    assert_eq!(lack(&sent("S"), Some(&other), 0), no(NoSession::Ahead));
    let mut renewed = known.clone();
    renewed.session = Some(Session {
        id: session("T"),
        completed: Timestamp::from_unix(THEN + 60),
    });
    assert_eq!(lack(&sent("S"), Some(&renewed), 60), no(NoSession::Another));
    assert_eq!(lack(&sent("T"), Some(&renewed), HOUR + 59), None);
    assert_eq!(
        lack(&sent("T"), Some(&renewed), HOUR + 60),
        no(NoSession::Over)
    );

    let none = list();
    assert!(judge(&none, Some(&known), HOUR).unwrap().without_session());
    let absent = Need {
        present: false,
        ..sent("T")
    };
    assert_eq!(lack(&absent, Some(&known), HOUR), None);
    let payment = Need {
        sca: Sca::Identified,
        ..sent("T")
    };
    assert_eq!(lack(&payment, Some(&known), HOUR), None);
}

/// SCA-16: sca.psu_present.
#[test]
fn what_a_present_psu_needs_is_the_operators() {
    let known = psu();
    let judge = |need: &Need<'_>, rule| judge_by(need, Some(&known), HOUR, rule, false).err();
    let sent = Need {
        session: Some(session("S")),
        ..list()
    };
    assert_eq!(
        judge(&sent, PsuPresent::SessionWhenSent),
        no(NoSession::Over)
    );
    assert_eq!(judge(&sent, PsuPresent::Session), no(NoSession::Over));
    assert_eq!(judge(&sent, PsuPresent::Consent), None);
    assert_eq!(judge(&list(), PsuPresent::SessionWhenSent), None);
    assert_eq!(judge(&list(), PsuPresent::Session), no(NoSession::NotSent));
    assert_eq!(judge(&list(), PsuPresent::Consent), None);
}

/// SCA-7, SCA-18, QUO-9, QUO-10.
#[test]
fn consents_and_sca_grow_old() {
    let known = psu();
    let absent = |transactions| Need {
        present: false,
        transactions,
        ..list()
    };
    let (list, details, other) = (
        absent(Transactions::List),
        absent(Transactions::Details),
        absent(Transactions::None),
    );
    for need in [&super::tests::list(), &list, &other] {
        assert_eq!(lack(need, Some(&known), 180 * DAY), None);
        assert_eq!(
            lack(need, Some(&known), 180 * DAY + 1),
            Some(Lack::RecentSca)
        );
    }
    assert_eq!(lack(&details, Some(&known), 90 * DAY), None);
    assert_eq!(
        lack(&details, Some(&known), 90 * DAY + 1),
        Some(Lack::RecentConsent)
    );
    // An SCA for a payment, in another context, counts for account access but not for the list without the PSU.
    let mut paid = known;
    paid.last_sca = Some(Timestamp::from_unix(THEN + 100 * DAY));
    assert_eq!(lack(&other, Some(&paid), 181 * DAY), None);
    assert_eq!(lack(&list, Some(&paid), 181 * DAY), Some(Lack::RecentSca));
    assert_eq!(
        lack(&details, Some(&paid), 91 * DAY),
        Some(Lack::RecentConsent)
    );
}

/// SCA-18: no consent, a withdrawn one, one for other accounts.
#[test]
fn consent_is_apart_from_sca() {
    let mut known = psu();
    known.contexts[0].consent = None;
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::Consent));
    known.contexts.clear();
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::Consent));
    let payment = Need {
        sca: Sca::Identified,
        ..list()
    };
    assert_eq!(lack(&payment, Some(&known), 0), None);

    let mut named = psu();
    named.contexts[0].consent = Some(Consent {
        given: Timestamp::from_unix(THEN),
        accounts: Accounts::Named(vec![keys().account("a")]),
    });
    let other = Need {
        account: Some("b"),
        ..list()
    };
    let every = Need {
        account: None,
        ..list()
    };
    assert_eq!(lack(&list(), Some(&named), 0), None);
    assert_eq!(lack(&other, Some(&named), 0), Some(Lack::Account));
    assert_eq!(lack(&every, Some(&named), 0), None);
}

/// SCA-17, HDR-14.
#[test]
fn agreements_are_given_by_sca() {
    let mut known = psu();
    let firm = Need {
        corporate: Some(FIRM),
        ..list()
    };
    assert_eq!(lack(&firm, Some(&known), 0), Some(Lack::Agreement));
    let status = Need {
        sca: Sca::None,
        ..firm
    };
    assert_eq!(judge(&status, Some(&known), 0).unwrap().corporate(), None);

    let private = known.contexts[0].clone();
    known.contexts.push(Context {
        corporate: Some(keys().corporate(GIVEN)),
        ..private
    });
    assert_eq!(
        judge(&firm, Some(&known), 0).unwrap().corporate(),
        Some(GIVEN)
    );
    assert_eq!(
        lack(&list(), Some(&known), 0),
        None,
        "both contexts are open"
    );
    // The private context decides, whether a consent of an agreement lives or not.
    known.contexts[0].consent = None;
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::Consent));
    let payment = Need {
        sca: Sca::Identified,
        ..list()
    };
    assert_eq!(lack(&payment, Some(&known), 0), None);
    known.contexts.remove(0);
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::CorporateId));
    assert_eq!(lack(&payment, Some(&known), 0), Some(Lack::CorporateId));
    let named = Need {
        context_named: true,
        ..list()
    };
    assert_eq!(lack(&named, Some(&known), 0), Some(Lack::Consent));
    known.contexts[0].consent = None;
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::CorporateId));
    let open = Need {
        agreement: Agreement::Open,
        sca: Sca::Identified,
        ..list()
    };
    assert_eq!(lack(&open, Some(&known), 0), None);
    // Without any context it is open which one the PSU will choose: the link leads to the choice.
    known.contexts.clear();
    assert_eq!(lack(&list(), Some(&known), 0), Some(Lack::Consent));
}

/// SCA-8, QUO-8.
#[test]
fn how_far_back() {
    let known = psu();
    let (edge, older) = (date(2026, 4, 2), date(2026, 4, 1));
    let need = |present, date_from, name: Option<&str>| Need {
        present,
        date_from,
        session: name.map(session),
        ..list()
    };
    let from = |need: &Need<'_>| judge(need, Some(&known), 60).map(|grant| grant.history_from());
    let table = [
        (need(true, None, None), Ok(Some(edge))),
        (need(true, None, Some("S")), Ok(None)),
        (need(true, Some(edge), None), Ok(None)),
        (need(true, Some(older), None), Err(Lack::SessionForHistory)),
        (need(true, Some(older), Some("S")), Ok(None)),
        (need(false, None, Some("S")), Ok(Some(edge))),
        (need(false, Some(edge), None), Ok(None)),
        (
            need(false, Some(older), Some("S")),
            Err(Lack::PsuForHistory),
        ),
    ];
    for (need, expected) in table {
        assert_eq!(from(&need), expected, "{need:?}");
        let details = Need {
            transactions: Transactions::Details,
            ..need
        };
        assert_eq!(from(&details), Ok(None), "{details:?}");
    }
}

/// SCA-19.
#[test]
fn an_unknown_psu_can_be_learned() {
    let learn = |need: &Need<'_>| judge_by(need, None, 0, PsuPresent::Session, true);
    let granted = learn(&list()).unwrap();
    assert_eq!(granted.named_psu(), Some(Named::Claimed(ID)));
    assert_eq!((granted.psu(), granted.known_context()), (None, None));
    assert_eq!(granted.history_from(), Some(date(2026, 4, 2)));
    let absent = Need {
        present: false,
        date_from: Some(date(2026, 4, 1)),
        ..list()
    };
    assert_eq!(learn(&absent).err(), Some(Lack::PsuForHistory));
    let nobody = Need {
        psu: None,
        ..list()
    };
    assert_eq!(learn(&nobody).err(), Some(Lack::PsuId));
}

/// SCA-22: an agreement that is not known is the core's to confirm while PSUs are learned, but not for a PSU that the bank bound.
#[test]
fn an_unknown_agreement_can_be_learned() {
    let firm = Need {
        corporate: Some(FIRM),
        ..list()
    };
    let learn = |need: &Need<'_>, known| judge_by(need, known, 0, PsuPresent::Session, true);
    let bound = psu();
    let learned = Psu {
        learned: true,
        session: None,
        ..psu()
    };
    assert_eq!(learn(&firm, Some(&bound)).err(), Some(Lack::Agreement));
    assert_eq!(lack(&firm, Some(&learned), 0), Some(Lack::Agreement));
    for (known, is_known) in [(None, false), (Some(&learned), true)] {
        let granted = learn(&firm, known).unwrap();
        assert_eq!(granted.named_corporate(), Some(Named::Claimed(FIRM)));
        assert_eq!(granted.psu().is_some(), is_known);
        assert_eq!((granted.corporate(), granted.known_context()), (None, None));
        // No consent of another context says how much may be shown.
        assert_eq!(granted.history_from(), Some(date(2026, 4, 2)));
        assert!(!granted.without_session());
    }
    let status = Need {
        sca: Sca::None,
        ..firm
    };
    let granted = learn(&status, Some(&learned)).unwrap();
    assert_eq!(granted.named_corporate(), None);
    let mut given = learned;
    let private = given.contexts[0].clone();
    given.contexts.push(Context {
        corporate: Some(keys().corporate(GIVEN)),
        ..private
    });
    let granted = judge_by(&firm, Some(&given), 0, PsuPresent::Consent, true).unwrap();
    assert_eq!(granted.corporate(), Some(GIVEN));
}
