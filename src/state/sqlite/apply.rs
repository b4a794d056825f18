//! What an SCA, the bank's own knowledge, the core's word and a withdrawal change.

use super::{seconds, writer::Change};
use crate::{
    clock::Timestamp,
    state::{
        Hash, Keys,
        verbs::{Bind, Bound, Finish, Finished, Learned, PsuRef, Withdraw, Withdrawn},
    },
};
use rusqlite::OptionalExtension;

/// An SCA that ended, as it is kept.
pub(in crate::state) struct Completed {
    token: Hash,
    expires: Timestamp,
    said: Hash,
    given: Option<Given>,
    now: Timestamp,
}

/// What a successful SCA gives.
struct Given {
    who: Who,
    corporate: Option<Hash>,
    session: Hash,
    consent: Option<Accounts>,
}

/// What the bank knows of a PSU, or the core says of one, as it is kept.
pub(in crate::state) struct NewBinding {
    who: Who,
    corporate: Option<Hash>,
    last_sca: Option<Timestamp>,
    consent: Option<(Timestamp, Accounts)>,
    /// Whether it is only learned (SCA-19).
    learned: bool,
}

/// What the bank takes back (SCA-13).
pub(in crate::state) struct Withdrawal {
    who: Who,
    what: Withdraw,
    /// The one context whose consent it is; none is every one.
    context: Option<Option<Hash>>,
}

/// A PSU of a TPP.
struct Who {
    tpp: String,
    psu: Hash,
}

/// Hashes side by side; none is all accounts.
type Accounts = Option<Vec<u8>>;

impl Who {
    fn new(keys: &Keys, who: PsuRef<'_>) -> Self {
        Self {
            tpp: who.tpp.to_owned(),
            psu: keys.psu(who.psu),
        }
    }
}

impl Completed {
    pub(in crate::state) fn new(keys: &Keys, finish: Finish<'_>) -> Self {
        let given = finish.completion.map(|completion| Given {
            who: Who::new(keys, completion.who),
            corporate: completion.corporate.map(|id| keys.corporate(id)),
            session: keys.session(completion.who.tpp, completion.session),
            consent: completion.consent.map(|accounts| hashes(keys, accounts)),
        });
        Self {
            token: finish.token,
            expires: finish.expires,
            said: finish.said,
            given,
            now: finish.now,
        }
    }

    /// The token is spent and the session begins in one step (SCA-12).
    pub(super) fn run(self, change: &mut Change<'_>) -> rusqlite::Result<Finished> {
        let before: Option<[u8; 16]> = change
            .sql
            .prepare_cached("SELECT said FROM token WHERE key = ?1")?
            .query_row([self.token.as_bytes()], |row| row.get(0))
            .optional()?;
        if let Some(said) = before {
            let same = Hash::from_bytes(said) == self.said;
            return Ok(if same {
                Finished::Again
            } else {
                Finished::Otherwise
            });
        }
        if let Some(given) = &self.given {
            if !bind_to(change, &given.who, Some(self.now))? {
                return Ok(Finished::BoundElsewhere);
            }
            self.keep(change, given)?;
        }
        change
            .sql
            .prepare_cached("INSERT INTO token VALUES (?1, ?2, ?3)")?
            .execute((
                self.token.as_bytes(),
                self.said.as_bytes(),
                seconds(self.expires),
            ))?;
        Ok(Finished::Done)
    }

    fn keep(&self, change: &mut Change<'_>, given: &Given) -> rusqlite::Result<()> {
        let now = seconds(self.now);
        change
            .sql
            .prepare_cached("UPDATE psu SET session = ?2, completed = ?3 WHERE psu = ?1")?
            .execute((given.who.psu.as_bytes(), given.session.as_bytes(), now))?;
        keep_context(change, given.who.psu, given.corporate, Some(self.now))?;
        if let Some(accounts) = &given.consent {
            change
                .sql
                .prepare_cached(
                    "UPDATE context SET consent = ?3, accounts = ?4 WHERE psu = ?1 AND corporate = ?2",
                )?
                .execute((
                    given.who.psu.as_bytes(),
                    context_key(given.corporate),
                    now,
                    accounts,
                ))?;
        }
        Ok(())
    }
}

impl NewBinding {
    pub(in crate::state) fn new(keys: &Keys, bind: &Bind<'_>) -> Self {
        Self {
            who: Who::new(keys, bind.who),
            corporate: bind.corporate.map(|id| keys.corporate(id)),
            last_sca: Some(bind.last_sca),
            consent: bind
                .consent
                .map(|(given, accounts)| (given, hashes(keys, accounts))),
            learned: false,
        }
    }

    pub(in crate::state) fn learned(keys: &Keys, learned: &Learned<'_>) -> Self {
        Self {
            who: Who::new(keys, learned.who),
            corporate: learned.corporate.map(|id| keys.corporate(id)),
            last_sca: learned.last_sca,
            consent: learned
                .consent
                .map(|(given, accounts)| (given, hashes(keys, accounts))),
            learned: true,
        }
    }

    /// Times only move forward: an older consent than the one that stands changes nothing. What is learned changes nothing
    /// of a PSU that is bound already: a withdrawal in between stays one.
    pub(in crate::state) fn run(self, change: &mut Change<'_>) -> rusqlite::Result<Bound> {
        if self.learned {
            match binding(change, &self.who)? {
                None => insert(change, &self.who, self.last_sca, true)?,
                Some(Binding { ours: true, .. }) => return Ok(Bound::Here),
                Some(Binding { ours: false, .. }) => return Ok(Bound::Elsewhere),
            }
        } else if !bind_to(change, &self.who, self.last_sca)? {
            return Ok(Bound::Elsewhere);
        }
        keep_context(change, self.who.psu, self.corporate, self.last_sca)?;
        if let Some((given, accounts)) = &self.consent {
            change
                .sql
                .prepare_cached(
                    "UPDATE context SET consent = ?3, accounts = ?4
                     WHERE psu = ?1 AND corporate = ?2 AND coalesce(consent, 0) <= ?3",
                )?
                .execute((
                    self.who.psu.as_bytes(),
                    context_key(self.corporate),
                    seconds(*given),
                    accounts,
                ))?;
        }
        Ok(Bound::Here)
    }
}

impl Withdrawal {
    pub(in crate::state) fn new(keys: &Keys, who: PsuRef<'_>, what: Withdraw) -> Self {
        let context = match what {
            Withdraw::Consent(corporate) => Some(corporate.map(|id| keys.corporate(id))),
            Withdraw::Consents | Withdraw::Session | Withdraw::Binding => None,
        };
        Self {
            who: Who::new(keys, who),
            what,
            context,
        }
    }

    /// The quota stays in any case.
    pub(in crate::state) fn run(self, change: &mut Change<'_>) -> rusqlite::Result<Withdrawn> {
        if binding(change, &self.who)?.is_none_or(|binding| !binding.ours) {
            return Ok(Withdrawn::Unknown);
        }
        let psu = self.who.psu.as_bytes();
        if self.what == Withdraw::Binding {
            forget_psu(change, self.who.psu)?;
        } else if self.what == Withdraw::Session {
            change
                .sql
                .prepare_cached("UPDATE psu SET session = NULL, completed = NULL WHERE psu = ?1")?
                .execute([psu])?;
        } else {
            let one = self.context.map(context_key);
            change
                .sql
                .prepare_cached(
                    "UPDATE context SET consent = NULL, accounts = NULL
                     WHERE psu = ?1 AND corporate = ifnull(?2, corporate)",
                )?
                .execute((psu, one))?;
        }
        change.psu_changed(self.who.psu)?;
        Ok(Withdrawn::Done)
    }
}

/// How a PSU is bound.
struct Binding {
    /// To the TPP that is asked for.
    ours: bool,
    /// By the core's answer alone (SCA-19).
    learned: bool,
}

/// How a PSU is bound; none where it is bound to no TPP.
fn binding(change: &Change<'_>, who: &Who) -> rusqlite::Result<Option<Binding>> {
    change
        .sql
        .prepare_cached(
            "SELECT tpp.name = ?2, psu.learned FROM psu JOIN tpp ON tpp.id = psu.tpp WHERE psu.psu = ?1",
        )?
        .query_row((who.psu.as_bytes(), &who.tpp), |row| {
            Ok(Binding {
                ours: row.get(0)?,
                learned: row.get(1)?,
            })
        })
        .optional()
}

/// Binds a PSU to a TPP by the bank's word, and moves its last SCA forward. What was only learned gives way, whichever TPP
/// holds it; false where the bank bound it to another TPP (SCA-19).
fn bind_to(
    change: &mut Change<'_>,
    who: &Who,
    last_sca: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    match binding(change, who)? {
        Some(Binding {
            ours: false,
            learned: false,
        }) => return Ok(false),
        Some(Binding {
            ours: false,
            learned: true,
        }) => forget_psu(change, who.psu)?,
        Some(Binding { ours: true, .. }) | None => {}
    }
    insert(change, who, last_sca, false)?;
    Ok(true)
}

/// A PSU that is bound to no other TPP.
fn insert(
    change: &mut Change<'_>,
    who: &Who,
    last_sca: Option<Timestamp>,
    learned: bool,
) -> rusqlite::Result<()> {
    change
        .sql
        .prepare_cached("INSERT INTO tpp (name) VALUES (?1) ON CONFLICT (name) DO NOTHING")?
        .execute([&who.tpp])?;
    change
        .sql
        .prepare_cached(
            "INSERT INTO psu (psu, tpp, last_sca, learned)
             VALUES (?1, (SELECT id FROM tpp WHERE name = ?2), ?3, ?4)
             ON CONFLICT (psu) DO UPDATE SET last_sca = max(last_sca, ?3), learned = ?4",
        )?
        .execute((who.psu.as_bytes(), &who.tpp, known(last_sca), learned))?;
    change.psu_changed(who.psu)
}

/// Forgets a PSU with its session and its consents.
fn forget_psu(change: &Change<'_>, psu: Hash) -> rusqlite::Result<()> {
    for table in ["context", "psu"] {
        change
            .sql
            .prepare_cached(&format!("DELETE FROM {table} WHERE psu = ?1"))?
            .execute([psu.as_bytes()])?;
    }
    Ok(())
}

/// A time as it is kept: 0 where nobody knows it.
fn known(at: Option<Timestamp>) -> i64 {
    at.map_or(0, seconds)
}

fn keep_context(
    change: &Change<'_>,
    psu: Hash,
    corporate: Option<Hash>,
    last_sca: Option<Timestamp>,
) -> rusqlite::Result<()> {
    change
        .sql
        .prepare_cached(
            "INSERT INTO context (psu, corporate, last_sca) VALUES (?1, ?2, ?3)
             ON CONFLICT (psu, corporate) DO UPDATE SET last_sca = max(last_sca, ?3)",
        )?
        .execute((psu.as_bytes(), context_key(corporate), known(last_sca)))?;
    Ok(())
}

/// A context as it is kept: PRIVATE is empty.
fn context_key(corporate: Option<Hash>) -> Vec<u8> {
    corporate.map_or_else(Vec::new, |hash| hash.as_bytes().to_vec())
}

fn hashes(keys: &Keys, accounts: Option<&[String]>) -> Accounts {
    let hash = |account: &String| *keys.account(account).as_bytes();
    accounts.map(|accounts| accounts.iter().flat_map(hash).collect())
}
