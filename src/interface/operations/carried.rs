//! What an operation must have so that its declared quota, history, consent, and object to sign mean something (QUO-16).
//!
//! Invariant: a catalogue has no operation with a declaration that its path, its need or its answerer cannot carry, so no key of a catalogue
//! file is without effect in silence. Deliberately not here: overlapping paths, which the catalogue and `config` find.

use super::{
    AnsweredBy, Operation, ParameterKind, PathId, Quota, Required, Sca, Schema, Signs,
    Transactions,
    path_id::{corrected, fault_of_names},
};
use crate::headers::PSU_IP_ADDRESS;
use http::Method;

/// A declaration without effect, or with a wrong one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncarried {
    /// The key of the catalogue file.
    pub key: &'static str,
    /// The fault, and the accepted form.
    pub text: String,
}

impl Operation {
    /// Everything that this operation cannot carry.
    pub fn uncarried(&self) -> Vec<Uncarried> {
        let mut faults = Vec::new();
        if let Some(text) = fault_of_names(&self.path) {
            faults.push(Uncarried { key: "path", text });
        }
        if self.answered_by == AnsweredBy::Gateway {
            faults.extend(self.unanswered());
            faults.extend(self.without_object());
            return faults;
        }
        faults.extend(self.without_account());
        faults.extend(self.without_history());
        faults.extend(self.without_object());
        let present = |required: &Required| matches!(required, Required::One(header) if header.name == PSU_IP_ADDRESS.name);
        if self.quota != Quota::None && self.required.iter().any(present) {
            let text = "it counts calls without the PSU, and this operation requires PSU-IP-Address: leave quota out";
            faults.push(Uncarried {
                key: "quota",
                text: text.to_owned(),
            });
        }
        faults
    }

    /// The faults of a path that takes the place of `own`, the path of the same operation in the interface.
    pub fn lost_at(&self, own: &Self) -> Vec<Uncarried> {
        let count = |operation: &Self, id: PathId| {
            let ids = operation.path_ids.iter();
            ids.filter(|other| **other == id).count()
        };
        let kept = [
            PathId::Product,
            PathId::Account,
            PathId::Payment,
            PathId::Basket,
        ];
        let mut faults = Vec::new();
        for id in kept {
            if count(self, id) < count(own, id) {
                faults.push(self.needs(id, &format!("{} is about one {}", self.name, id.noun())));
            }
        }
        if faults.is_empty() && self.path_ids.len() < own.path_ids.len() {
            let text = format!(
                "{} has the ids of {}: write a path with as many",
                self.name, own.path
            );
            faults.push(Uncarried { key: "path", text });
        }
        faults
    }

    /// SCA-20: the gateway answers with a link, and judges only the TPP and where the PSU returns to.
    fn unanswered(&self) -> Vec<Uncarried> {
        let declared = [
            ("sca", self.sca != Sca::None),
            ("quota", self.quota != Quota::None),
            ("transactions", self.transactions != Transactions::None),
            ("answer", self.answer.is_some()),
        ];
        let declared = declared.into_iter().filter(|(_, is)| *is);
        let fault = |(key, _): (&'static str, bool)| {
            let text = format!(
                "the gateway answers {} with a link to the bank's page, so its {key} has no effect: write answered_by: upstream, or leave {key} out",
                self.name
            );
            // Another key may be the interface's own, which the file does not have.
            let key = if key == "answer" { key } else { "answered_by" };
            Uncarried { key, text }
        };
        declared.map(fault).collect()
    }

    /// Quota, consent and history are kept by the account (SCA-18, QUO-1, QUO-8).
    fn without_account(&self) -> Option<Uncarried> {
        if self.path_ids.contains(&PathId::Account) {
            return None;
        }
        if self.quota != Quota::None {
            let why = format!("calls of {} are counted by account", self.name);
            return Some(self.needs(PathId::Account, &why));
        }
        if self.transactions != Transactions::None {
            let why = format!("{} shows transactions of an account", self.name);
            return Some(self.needs(PathId::Account, &why));
        }
        // A path without ids is a list, as that of accounts: the consent is judged as a whole.
        let is_list = self.path_ids.iter().all(|id| *id == PathId::Product);
        (self.sca == Sca::Consent && !is_list).then(|| {
            let why = format!("the consent for {} is judged by account", self.name);
            self.needs(PathId::Account, &why)
        })
    }

    /// QUO-8 to QUO-10 apply to what a consent opens, and to the day from which a list is asked for.
    fn without_history(&self) -> Option<Uncarried> {
        if self.transactions == Transactions::None {
            return None;
        }
        if self.sca != Sca::Consent {
            let text = format!(
                "how far back {} may reach depends on the PSU's consent: write sca: consent",
                self.name
            );
            return Some(Uncarried {
                key: "transactions",
                text,
            });
        }
        let mut parameters = self.query.iter();
        let has_first = parameters.any(|parameter| parameter.kind == ParameterKind::DateFrom);
        (self.transactions == Transactions::List && !has_first).then(|| Uncarried {
            key: "transactions",
            text: format!(
                "no parameter of {} is the first day of the list, so the core would get any day: name it, as in query: [{{name: dateFrom, kind: date-from}}]",
                self.name
            ),
        })
    }

    /// SCA-12: an SCA signs the payment or the basket that the path names, unless the request makes it, or only reads about payments.
    fn without_object(&self) -> Option<Uncarried> {
        let signed = self.signs.id()?;
        let makes = self.initiates
            || self.signs == Signs::Basket
                && self.schema == Schema::Basket
                && self.method == Method::POST;
        let has_ids = self.path_ids.iter().any(|id| *id != PathId::Product);
        let reads = self.method == Method::GET && !has_ids;
        if makes || reads || self.path_ids.contains(&signed) {
            return None;
        }
        let why = format!("an SCA of {} signs the {}", self.name, signed.noun());
        Some(self.needs(signed, &why))
    }

    fn needs(&self, id: PathId, why: &str) -> Uncarried {
        let text = format!(
            "{why}, and {} does not name it: write {}, if that segment is the id of the {}",
            self.path,
            corrected(&self.path, id),
            id.noun()
        );
        Uncarried { key: "path", text }
    }
}
