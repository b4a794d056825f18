//! The permissions of a TPP for one PSU-ID, as `/psu/list` shows them (CTL-1).
//!
//! The state keeps hashes of agreements and accounts: an answer names those alone that the call named. Every end may lie in the past.

use super::members;
use crate::{
    admission::{DETAILS_CONSENT_LASTS, SESSION_LASTS},
    clock::Timestamp,
    interface::headers::CorporateId,
    state::{
        AccountHash, Accounts, Consent, Context, CorporateHash, CustomerAccess, Keys, Known, Psu,
        SCA_LASTS, Session,
    },
};
use serde_json::{Map, Value, json};

/// The accounts and agreements that a call names, with their hashes.
pub(super) struct Asked {
    accounts: Vec<(String, AccountHash)>,
    agreements: Vec<(CorporateHash, String)>,
}

impl Asked {
    /// Hashes what a call names.
    pub(super) fn new(
        keys: &Keys,
        accounts: Vec<String>,
        agreements: &[Known<CorporateId>],
    ) -> Self {
        let accounts = accounts.into_iter().map(|id| {
            let hash = keys.account(&id);
            (id, hash)
        });
        let agreements = agreements
            .iter()
            .map(|id| (keys.corporate(*id), id.get().hyphenated()));
        Self {
            accounts: accounts.collect(),
            agreements: agreements.collect(),
        }
    }

    /// The id of an agreement, if the call names it.
    fn agreement(&self, corporate: CorporateHash) -> Option<&str> {
        let mut agreements = self.agreements.iter();
        let found = agreements.find(|(hash, _)| *hash == corporate);
        found.map(|(_, id)| id.as_str())
    }
}

/// One entry of the list: a PSU-ID at its TPP, with the TPP's name by the registers.
pub(super) fn shown(access: &CustomerAccess, tpp_name: Option<&str>, asked: &Asked) -> Value {
    let facts = access.facts.as_ref();
    let contexts = facts.contexts.iter();
    let contexts = contexts.map(|context| of_context(context, facts, asked));
    json!({
        "tpp": access.tpp.as_str(),
        "tpp_name": tpp_name,
        "last_sca": facts.last_sca.and_then(members::shown),
        "sca_ends": sca_end(facts),
        "session": facts.session.as_ref().map(of_session),
        "contexts": contexts.collect::<Vec<_>>(),
    })
}

/// SCA-5.
fn of_session(session: &Session) -> Value {
    json!({
        "completed": members::shown(session.completed),
        "ends": end(session.completed, SESSION_LASTS),
    })
}

fn of_context(context: &Context, facts: &Psu, asked: &Asked) -> Value {
    let consent = context.consent.as_ref();
    let mut shown = Map::new();
    let kind = match context.corporate {
        Some(_) => "CORPORATE",
        None => "PRIVATE",
    };
    shown.insert("context".to_owned(), json!(kind));
    let agreement = context.corporate.and_then(|hash| asked.agreement(hash));
    if let Some(agreement) = agreement {
        shown.insert("psu_corporate_id".to_owned(), json!(agreement));
    }
    let last_sca = context.last_sca.and_then(members::shown);
    shown.insert("last_sca".to_owned(), json!(last_sca));
    let consent = consent.map(|consent| of_consent(consent, facts, asked));
    shown.insert("consent".to_owned(), json!(consent));
    let used = context.used.and_then(members::shown_day);
    shown.insert("last_used".to_owned(), json!(used));
    Value::Object(shown)
}

fn of_consent(consent: &Consent, facts: &Psu, asked: &Asked) -> Value {
    let accounts = match &consent.accounts {
        Accounts::All => json!("all"),
        Accounts::Named(accounts) => json!(accounts.len()),
    };
    let mut shown = Map::new();
    let given = members::shown(consent.given);
    shown.insert("given".to_owned(), json!(given));
    // SCA-7: a consent needs a recent SCA of the PSU, for whatever purpose.
    shown.insert("ends".to_owned(), json!(sca_end(facts)));
    shown.insert("accounts".to_owned(), accounts);
    if !asked.accounts.is_empty() {
        let named = asked.accounts.iter();
        let named = named.map(|(id, hash)| {
            let is_included = consent.accounts.include(*hash);
            json!({ "account": id, "included": is_included })
        });
        shown.insert("named".to_owned(), named.collect());
    }
    // QUO-10.
    let details = end(consent.given, DETAILS_CONSENT_LASTS);
    shown.insert("details_without_psu_end".to_owned(), json!(details));
    Value::Object(shown)
}

/// SCA-7: the last second in which the last SCA counts; `None` if its time is unknown.
fn sca_end(facts: &Psu) -> Option<String> {
    facts.last_sca.and_then(|at| end(at, SCA_LASTS))
}

/// The time so many seconds later.
fn end(since: Timestamp, seconds: u64) -> Option<String> {
    members::shown(Timestamp::from_unix(since.unix().saturating_add(seconds)))
}
