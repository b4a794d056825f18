//! What the stand-in core knows: customers with their accounts, the PSU-IDs it gave out, consents and payments.
//!
//! Invariants: a TPP and a PSU have one PSU-ID, a random one, that does not change (§SCA 4), and no two pairs have the same; a TPP is
//! shown nothing of a PSU but by the PSU-ID that it was given itself, and only the accounts of the PSU's consent.
//! Deliberately in memory alone, without any limit: it ends with the program. The gateway's own state says what a TPP may ask; this
//! is what there is to answer.

use super::account::{Account, Numbers};
use super::payment::Payment;
use jiff::civil::Date;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// A private person who also acts for a corporation, to try the corporate context with.
pub(super) const WITH_AGREEMENT: &str = "20000000002";

/// How many digits a national identity number has.
const IDENTITY_DIGITS: usize = 11;

/// The whole of it.
#[derive(Debug)]
pub(super) struct Bank {
    today: Date,
    numbers: Numbers,
    /// By their national identity number.
    customers: HashMap<String, Customer>,
    /// Who a PSU-ID stands for.
    psus: HashMap<Uuid, Psu>,
    /// The accounts that a PSU has opened to a TPP, by PSU-ID and agreement.
    consents: HashMap<(Uuid, Option<Uuid>), BTreeSet<String>>,
    /// By their path.
    payments: HashMap<String, Payment>,
}

/// A private person.
#[derive(Debug)]
pub(super) struct Customer {
    /// For the PSU to read.
    pub(super) name: String,
    /// Their own.
    pub(super) accounts: Vec<Account>,
    /// Whom they act for.
    pub(super) agreements: Vec<Agreement>,
}

/// A corporation that a customer acts for.
#[derive(Debug)]
pub(super) struct Agreement {
    /// PSU-Corporate-ID.
    pub(super) id: Uuid,
    /// For the PSU to read.
    pub(super) name: &'static str,
    /// Those that were granted to this representative.
    pub(super) accounts: Vec<Account>,
}

/// A PSU as one TPP knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Psu {
    tpp: String,
    identity: String,
}

/// Whether this could be a national identity number: the check digits of a mocked one are nobody's business.
pub(super) fn is_identity(text: &str) -> bool {
    text.len() == IDENTITY_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Bank {
    /// A bank with the customers that have names.
    pub(super) fn new(today: Date) -> Self {
        let mut bank = Self {
            today,
            numbers: Numbers::new(),
            customers: HashMap::new(),
            psus: HashMap::new(),
            consents: HashMap::new(),
            payments: HashMap::new(),
        };
        let mut accounts = |names: [&'static str; 2]| {
            names
                .map(|name| Account::open(name, &mut bank.numbers, today))
                .into()
        };
        let ola = Customer {
            name: "Ola Nordmann".into(),
            accounts: accounts(["Brukskonto", "Sparekonto"]),
            agreements: vec![Agreement {
                id: Uuid::new_v4(),
                name: "Fisk og Redskap AS",
                accounts: accounts(["Driftskonto", "Skattetrekk"]),
            }],
        };
        bank.customers.insert(WITH_AGREEMENT.into(), ola);
        bank
    }

    /// The customer of this national identity number; one that is unknown is a new customer with two accounts (SBX-3).
    pub(super) fn customer(&mut self, identity: &str) -> &Customer {
        let next = self.customers.len().saturating_add(1);
        let (numbers, today) = (&mut self.numbers, self.today);
        self.customers
            .entry(identity.to_owned())
            .or_insert_with(|| Customer {
                name: format!("Testkunde {next}"),
                accounts: ["Brukskonto", "Sparekonto"]
                    .map(|name| Account::open(name, numbers, today))
                    .into(),
                agreements: Vec::new(),
            })
    }

    /// The PSU-ID by which this TPP knows this PSU.
    pub(super) fn psu_id(&mut self, tpp: &str, identity: &str) -> Uuid {
        self.customer(identity);
        let psu = Psu {
            tpp: tpp.to_owned(),
            identity: identity.to_owned(),
        };
        let known = self.psus.iter().find(|(_, known)| **known == psu);
        let id = known.map_or_else(Uuid::new_v4, |(id, _)| *id);
        self.psus.entry(id).or_insert(psu);
        id
    }

    /// Whom a PSU-ID of this TPP stands for: a national identity number.
    pub(super) fn identity(&self, tpp: &str, psu: Uuid) -> Option<&str> {
        let known = self.psus.get(&psu).filter(|known| known.tpp == tpp)?;
        Some(&known.identity)
    }

    /// Replaces what this PSU has opened to this TPP in one context. Gives whether something was open before.
    pub(super) fn consent(
        &mut self,
        psu: Uuid,
        agreement: Option<Uuid>,
        accounts: BTreeSet<String>,
    ) -> bool {
        let key = (psu, agreement);
        let before = if accounts.is_empty() {
            self.consents.remove(&key)
        } else {
            self.consents.insert(key, accounts)
        };
        before.is_some()
    }

    /// Whether an account is open to the TPP of this PSU-ID.
    pub(super) fn is_open(&self, psu: Uuid, agreement: Option<Uuid>, account: &str) -> bool {
        let open = self.consents.get(&(psu, agreement));
        open.is_some_and(|open| open.contains(account))
    }

    /// The accounts that are open to this TPP in this context; none where no SCA ever ended with a consent.
    pub(super) fn open_accounts(
        &self,
        tpp: &str,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Option<Vec<&Account>> {
        let customer = self.customers.get(self.identity(tpp, psu)?)?;
        let all = customer.accounts_of(agreement)?;
        let open = self.consents.get(&(psu, agreement))?;
        Some(
            all.iter()
                .filter(|account| open.contains(&account.id))
                .collect(),
        )
    }

    /// Keeps a payment.
    pub(super) fn keep(&mut self, payment: Payment) {
        self.payments.insert(payment.path(), payment);
    }

    /// A TPP's own payment, by its path.
    pub(super) fn payment(&mut self, tpp: &str, path: &str) -> Option<&mut Payment> {
        let payment = self.payments.get_mut(path)?;
        (payment.tpp == tpp).then_some(payment)
    }

    /// The payer of a payment signed it.
    pub(super) fn sign(&mut self, path: &str) {
        if let Some(payment) = self.payments.get_mut(path) {
            payment.sign();
        }
    }
}

impl Customer {
    /// The accounts of a context: the person's own, or an agreement's.
    pub(super) fn accounts_of(&self, agreement: Option<Uuid>) -> Option<&[Account]> {
        let Some(id) = agreement else {
            return Some(&self.accounts);
        };
        let agreement = self.agreements.iter().find(|known| known.id == id)?;
        Some(&agreement.accounts)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const KARI: &str = "01010112345";
    const TPP: &str = "PSDNO-FSA-1";

    pub(in super::super) fn bank() -> Bank {
        Bank::new(jiff::civil::date(2026, 3, 1))
    }

    #[test]
    fn a_psu_has_one_id_for_each_tpp() {
        let mut bank = bank();
        let id = bank.psu_id(TPP, KARI);
        assert_eq!(bank.psu_id(TPP, KARI), id);
        let other = bank.psu_id("PSDNO-FSA-2", KARI);
        assert_ne!(other, id);
        assert_ne!(bank.psu_id(TPP, "01010112346"), id);
        assert_eq!(bank.identity(TPP, id), Some(KARI));
        assert_eq!(bank.identity(TPP, other), None);
    }

    #[test]
    fn only_what_was_consented_to_is_shown() {
        let mut bank = bank();
        let id = bank.psu_id(TPP, KARI);
        assert!(bank.open_accounts(TPP, id, None).is_none());
        let account = bank.customer(KARI).accounts[1].id.clone();
        assert_eq!(bank.customer(KARI).accounts.len(), 2);
        assert!(!bank.consent(
            id,
            None,
            BTreeSet::from([account.clone(), "another's".into()])
        ));
        let open: Vec<_> = bank.open_accounts(TPP, id, None).unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].id, account);
        assert!(bank.is_open(id, None, &account));
        assert!(bank.open_accounts("PSDNO-FSA-2", id, None).is_none());
        assert!(bank.open_accounts(TPP, id, Some(Uuid::nil())).is_none());
        assert!(bank.consent(id, None, BTreeSet::new()));
        assert!(bank.open_accounts(TPP, id, None).is_none());
    }

    #[test]
    fn an_agreement_has_accounts_of_its_own() {
        let mut bank = bank();
        let customer = bank.customer(WITH_AGREEMENT);
        let agreement = customer.agreements[0].id;
        assert_eq!(customer.accounts_of(Some(agreement)).unwrap().len(), 2);
        assert!(customer.accounts_of(Some(Uuid::nil())).is_none());
    }

    #[test]
    fn eleven_digits_are_a_number() {
        assert!(is_identity(KARI));
        for other in ["", "0101011234", "010101123456", "0101011234x", "０１０"] {
            assert!(!is_identity(other), "{other}");
        }
    }
}
