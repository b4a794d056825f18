//! The end of an SCA: its token is spent and its session begins, in one step (SCA-12).

use super::owner::{Owner, bind_to};
use crate::{
    Accounts, Consent, ContextOrigin, CorporateHash, Finish, Finished, Keys, Session, SessionHash,
    TokenHash,
    change::Change,
    customer::NamedCustomer,
    moves::Moves,
    rows::{RowKey, Rows, TokenRow},
};
use portvakt_base::clock::Timestamp;

/// A finished SCA, with its ids hashed.
pub(crate) struct ScaEnd {
    token: TokenHash,
    spent: TokenRow,
    completed: Option<CompletedSca>,
    now: Timestamp,
}

/// The results of a successful SCA.
struct CompletedSca {
    owner: Owner,
    corporate: Option<CorporateHash>,
    session: SessionHash,
    consent: Option<Accounts>,
    customer: Option<NamedCustomer>,
}

impl ScaEnd {
    pub(crate) fn new(keys: &Keys, moves: &Moves, finish: Finish<'_>) -> Self {
        let completed = finish.completion.map(|completion| CompletedSca {
            owner: Owner::new(keys, moves, completion.who),
            corporate: completion.corporate.map(|id| keys.corporate(id)),
            session: keys.session(completion.who.tpp, &completion.session),
            consent: completion
                .consent
                .map(|accounts| Accounts::hashed(keys, accounts)),
            customer: completion.customer.map(|key| keys.named_customer(key)),
        });
        Self {
            token: finish.token,
            spent: TokenRow {
                said: finish.said,
                expires: finish.expires,
            },
            completed,
            now: finish.now,
        }
    }
}

impl Change for ScaEnd {
    type Outcome = Finished;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Token(self.token));
        if let Some(given) = &self.completed {
            given.owner.keys(keys);
        }
    }

    fn decide(&self, rows: &mut Rows) -> Finished {
        if let Some(spent) = rows.tokens.get(self.token) {
            return if spent.said == self.spent.said {
                Finished::Again
            } else {
                Finished::Otherwise
            };
        }
        if let Some(given) = &self.completed {
            let Some(bound) = bind_to(rows, &given.owner, Some(self.now)) else {
                return Finished::BoundElsewhere;
            };
            let bound = bound.with(|psu| {
                psu.session = Some(Session {
                    id: given.session,
                    completed: self.now,
                });
                psu.set_customer(given.customer, rows.customer_key.as_deref());
                psu.update_context(given.corporate, ContextOrigin::Bank, |context| {
                    context.last_sca = context.last_sca.max(Some(self.now));
                    if let Some(accounts) = &given.consent {
                        context.consent = Some(Consent {
                            given: self.now,
                            accounts: accounts.clone(),
                        });
                    }
                });
            });
            rows.psus.put(given.owner.psu, bound);
        }
        rows.tokens.put(self.token, self.spent);
        Finished::Done
    }
}
