//! PSUs as TPPs know them: PSU-IDs, agreements and consents, with the times of consents and of their use.
//!
//! Invariants: a pair of TPP and customer has one PSU-ID, which never changes (§SCA 4), because it is derived from both with a
//! key in the ledger, and is unique; a TPP sees a PSU only by the PSU-ID that it received itself, and only the accounts of the
//! PSU's consent.

use super::bank::{Bank, BankFault};
use super::customer::{Account, CUSTOMER, Customer, customer};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use uuid::Uuid;

/// The precision of the last use, in seconds: a TPP that reads page after page makes the ledger write once a minute.
const USE_PRECISION: i64 = 60;

/// A corporation that a customer acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    /// PSU-Corporate-ID.
    pub(super) id: Uuid,
    /// The corporation's name.
    pub(super) name: String,
    /// The corporation, which owns the accounts.
    pub(super) corporation: String,
}

impl Bank {
    /// The agreements of a customer.
    pub(super) fn agreements_of(&self, customer: &str) -> Result<Vec<Agreement>, BankFault> {
        let mut found = self.db.prepare_cached(
            "SELECT agreement.id, customer.name, customer.id FROM agreement \
             JOIN customer ON customer.id = agreement.corporation \
             WHERE agreement.representative = ?1 ORDER BY customer.name",
        )?;
        let rows = found.query_map([customer], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
        })?;
        rows.map(|row| {
            let (id, name, corporation) = row?;
            let id = id.parse().map_err(|_| BankFault::Kept("an agreement"))?;
            Ok(Agreement {
                id,
                name,
                corporation,
            })
        })
        .collect()
    }

    /// The accounts of a context: the person's own, or those that an agreement grants. `None` if the agreement is not theirs.
    pub(super) fn accounts_in(
        &self,
        customer: &str,
        agreement: Option<Uuid>,
    ) -> Result<Option<Vec<Account>>, BankFault> {
        let Some(agreement) = agreement else {
            return self.accounts_of(customer).map(Some);
        };
        let agreements = self.agreements_of(customer)?;
        let chosen = agreements.iter().find(|known| known.id == agreement);
        chosen.map(|chosen| self.granted_in(chosen)).transpose()
    }

    /// The accounts of the corporation that are granted to the representative.
    fn granted_in(&self, agreement: &Agreement) -> Result<Vec<Account>, BankFault> {
        let mut withheld = self
            .db
            .prepare_cached("SELECT account FROM withheld WHERE agreement = ?1")?;
        let withheld = withheld.query_map([agreement.id.to_string()], |row| row.get(0))?;
        let withheld: BTreeSet<String> = withheld.collect::<Result<_, _>>()?;
        let mut accounts = self.accounts_of(&agreement.corporation)?;
        accounts.retain(|account| !withheld.contains(&account.id));
        Ok(accounts)
    }

    /// The PSU-ID by which this TPP knows this customer.
    pub(super) fn psu_id(&self, tpp: &str, customer: &Customer) -> Result<Uuid, BankFault> {
        let secret = [&self.psu_key, "\n", tpp, "\n", &customer.identity].concat();
        let hash: [u8; 32] = Sha256::digest(secret).into();
        let mut half = [0; 16];
        half.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        let id = uuid::Builder::from_random_bytes(half).into_uuid();
        self.db
            .prepare_cached("INSERT OR IGNORE INTO psu (id, tpp, customer) VALUES (?1, ?2, ?3)")?
            .execute(params![id.to_string(), tpp, customer.id])?;
        Ok(id)
    }

    /// The customer of a PSU-ID of this TPP.
    pub(super) fn psu(&self, tpp: &str, id: Uuid) -> Result<Option<Customer>, BankFault> {
        let mut found = self.db.prepare_cached(&format!(
            "{CUSTOMER} WHERE id = (SELECT customer FROM psu WHERE id = ?1 AND tpp = ?2)"
        ))?;
        let found = found.query_row(params![id.to_string(), tpp], customer);
        Ok(found.optional()?)
    }

    /// Replaces this PSU's consent to this TPP in one context; returns whether an account was open before.
    pub(super) fn consent(
        &self,
        psu: Uuid,
        agreement: Option<Uuid>,
        accounts: &BTreeSet<String>,
    ) -> Result<bool, BankFault> {
        let (psu, agreement) = (psu.to_string(), in_context(agreement));
        let before = self
            .db
            .prepare_cached("DELETE FROM consent WHERE psu = ?1 AND agreement = ?2")?
            .execute(params![psu, agreement])?;
        // An initialisation may have removed the customer or an account since.
        let mut open = self.db.prepare_cached(
            "INSERT INTO consent (psu, agreement, account) SELECT psu.id, ?2, account.id FROM psu, account \
             WHERE psu.id = ?1 AND account.id = ?3",
        )?;
        for account in accounts {
            open.execute(params![psu, agreement, account])?;
        }
        if accounts.is_empty() {
            self.db
                .prepare_cached("DELETE FROM access WHERE psu = ?1 AND agreement = ?2")?
                .execute(params![psu, agreement])?;
        } else {
            self.db
                .prepare_cached(
                    "INSERT INTO access (psu, agreement, since) SELECT id, ?2, ?3 FROM psu WHERE id = ?1 \
                     ON CONFLICT (psu, agreement) DO UPDATE SET since = excluded.since",
                )?
                .execute(params![psu, agreement, self.now().timestamp().as_second()])?;
        }
        Ok(before > 0)
    }

    /// The accounts that are open to the TPP of this PSU-ID in this context, by their ids.
    pub(super) fn open_accounts(
        &self,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Result<BTreeSet<String>, BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT account FROM consent WHERE psu = ?1 AND agreement = ?2")?;
        let rows = found.query_map(params![psu.to_string(), in_context(agreement)], |row| {
            row.get(0)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The number of agreements in which an account is open to the TPP of this PSU-ID.
    pub(super) fn open_agreements(&self, psu: Uuid) -> Result<usize, BankFault> {
        let mut found = self.db.prepare_cached(
            "SELECT count(DISTINCT agreement) FROM consent WHERE psu = ?1 AND agreement <> ''",
        )?;
        let count: i64 = found.query_row([psu.to_string()], |row| row.get(0))?;
        Ok(count.try_into().unwrap_or_default())
    }

    /// Notes that a TPP has read an account of this PSU now.
    pub(super) fn note_use(
        &self,
        tpp: &str,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Result<(), BankFault> {
        let now = self.now().timestamp().as_second();
        self.db
            .prepare_cached(
                "INSERT INTO access (psu, agreement, used) SELECT id, ?2, ?3 FROM psu WHERE id = ?1 AND tpp = ?4 \
                 ON CONFLICT (psu, agreement) DO UPDATE SET used = excluded.used \
                 WHERE access.used IS NULL OR excluded.used >= access.used + ?5",
            )?
            .execute(params![
                psu.to_string(),
                in_context(agreement),
                now,
                tpp,
                USE_PRECISION
            ])?;
        Ok(())
    }

    /// When this PSU opened accounts to the TPP in this context, and when the TPP read one of them last, as far as the ledger knows.
    pub(super) fn times_of(
        &self,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Result<(Option<Timestamp>, Option<Timestamp>), BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT since, used FROM access WHERE psu = ?1 AND agreement = ?2")?;
        let found = found.query_row(params![psu.to_string(), in_context(agreement)], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?))
        });
        let (since, used): (Option<i64>, Option<i64>) = found.optional()?.unwrap_or_default();
        let moment = |seconds: Option<i64>| seconds.map(Timestamp::from_second).transpose();
        Ok((moment(since)?, moment(used)?))
    }

    /// Stores the name of a TPP.
    pub(super) fn name_tpp(&self, tpp: &str, name: &str) -> Result<(), BankFault> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO tpp_name (tpp, name) VALUES (?1, ?2)")?
            .execute([tpp, name])?;
        Ok(())
    }
}

/// The stored form of an agreement: empty in the private context.
pub(super) fn in_context(agreement: Option<Uuid>) -> String {
    agreement.map(|id| id.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bank::tests::{NOON, bank};
    use crate::core::rates::Rates;
    use crate::core::seed::WITH_AGREEMENT;
    use portvakt_base::clock::Clock;

    const KARI: &str = "01010112345";
    const TPP: &str = "PSDNO-FSA-1";

    #[test]
    fn a_psu_has_one_id_for_each_tpp() {
        let (bank, _) = bank();
        let kari = bank.customer(KARI).unwrap();
        let id = bank.psu_id(TPP, &kari).unwrap();
        assert_eq!(bank.psu_id(TPP, &kari).unwrap(), id);
        let other = bank.psu_id("PSDNO-FSA-2", &kari).unwrap();
        assert_ne!(other, id);
        let ola = bank.customer(WITH_AGREEMENT).unwrap();
        assert_ne!(bank.psu_id(TPP, &ola).unwrap(), id);
        assert_eq!(bank.psu(TPP, id).unwrap(), Some(kari));
        assert_eq!(bank.psu(TPP, other).unwrap(), None);
    }

    #[test]
    fn only_what_was_consented_to_is_open() {
        let (bank, _) = bank();
        let kari = bank.customer(KARI).unwrap();
        let psu = bank.psu_id(TPP, &kari).unwrap();
        let account = bank.accounts_of(&kari.id).unwrap().remove(1).id;
        assert_eq!(bank.open_accounts(psu, None).unwrap(), BTreeSet::new());
        let chosen = BTreeSet::from([account]);
        assert!(!bank.consent(psu, None, &chosen).unwrap());
        assert_eq!(bank.open_accounts(psu, None).unwrap(), chosen);
        assert_eq!(
            bank.open_accounts(psu, Some(Uuid::nil())).unwrap(),
            BTreeSet::new()
        );
        assert!(bank.consent(psu, None, &BTreeSet::new()).unwrap());
        assert_eq!(bank.open_accounts(psu, None).unwrap(), BTreeSet::new());
    }

    #[test]
    fn an_agreement_has_accounts_of_its_own() {
        let (bank, _) = bank();
        let ola = bank.customer(WITH_AGREEMENT).unwrap();
        let agreement = bank.agreements_of(&ola.id).unwrap().remove(0);
        let accounts = bank
            .accounts_in(&ola.id, Some(agreement.id))
            .unwrap()
            .unwrap();
        assert_eq!(accounts.len(), 2);
        assert!(accounts.iter().all(|account| account.customer != ola.id));
        assert_eq!(bank.accounts_in(&ola.id, Some(Uuid::nil())).unwrap(), None);
    }

    //= SBX-15 accepted
    //= SBX-15 refused
    #[test]
    fn a_representative_has_the_accounts_that_are_granted() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let rates = Rates::load(None).unwrap();
            let file = folder.path().join("ledger.db");
            Bank::open(Some(&file), rates, Clock::standing(NOON)).unwrap()
        };
        let granted = |bank: &Bank, identity: &str| {
            let customer = bank.customer(identity).unwrap();
            let agreements = bank.agreements_of(&customer.id).unwrap();
            let agreement = agreements
                .iter()
                .find(|one| one.name == "Fisk og Redskap AS");
            let accounts = bank.accounts_in(&customer.id, agreement.map(|one| one.id));
            let accounts = accounts.unwrap().unwrap();
            accounts.into_iter().map(|one| one.name).collect::<Vec<_>>()
        };
        // Over a restart of the ledger, and after an initialisation of it.
        for is_initialised in [false, false, true] {
            let bank = open();
            if is_initialised {
                bank.atomically(Bank::initialise).unwrap();
            }
            let both = ["Driftskonto", "Valutakonto"];
            assert_eq!(granted(&bank, WITH_AGREEMENT), both);
            assert_eq!(granted(&bank, "20000000029"), ["Driftskonto"]);
        }
    }
}
