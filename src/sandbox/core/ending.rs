//! The end of an SCA in two systems: the gateway's state and this bank's ledger.
//!
//! Life of an approval: the ledger stores what the PSU approved, before anybody else knows of it. Then the gateway completes the
//! SCA, and then the ledger carries the approval out, in one transaction with the note that this is done. Last, a consent of no
//! account is withdrawn at the gateway. Every step can be repeated, because the gateway gives the same answer to the same
//! completion (SCA-12). Invariant: a crash at any point leaves an approval that [`recover`] either finishes in both systems, or
//! drops in both because the gateway refuses it for good.

use super::bank::{Bank, BankFault};
use super::control::{ControlFault, EXPIRED};
use super::psu::in_context;
use super::request_key::RequestKey;
use super::state::Core;
use portvakt_base::terminal::complain;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;
use std::collections::BTreeSet;
use uuid::Uuid;

/// For how long the end of an SCA is remembered, in seconds: a browser that comes back is sent to the TPP again.
const REMEMBERED: i64 = 3_600;

/// An approval of the PSU.
#[derive(Clone, Debug)]
pub(super) struct Approval {
    /// The TPP.
    pub(super) tpp: String,
    /// The PSU-ID for this TPP.
    pub(super) psu: Uuid,
    /// The agreement; `None` for the private context.
    pub(super) agreement: Option<Uuid>,
    /// The accounts that are open from now on, if consent was requested.
    pub(super) accounts: Option<BTreeSet<String>>,
    /// The ids of the payments that are signed.
    pub(super) payments: Vec<String>,
    /// The body of `/sca/complete`.
    pub(super) completion: Value,
}

/// How far an approval has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The gateway is to complete the SCA.
    Complete,
    /// Both have it; the gateway is to withdraw the consent.
    Withdraw,
    /// Both have it.
    Ended,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Withdraw => "WITHDRAW",
            Self::Ended => "ENDED",
        }
    }
}

/// A stored approval.
struct Ending {
    step: Step,
    approved: i64,
    approval: Approval,
    redirect_uri: String,
}

/// The reason why an SCA cannot continue.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// The gateway is unavailable, or refuses.
    #[error(transparent)]
    Control(#[from] ControlFault),
    /// The ledger failed.
    #[error(transparent)]
    Bank(#[from] BankFault),
}

/// Stores an approval, and finishes it; returns the redirect URI. A second approval of the same request changes nothing. `None` if
/// none of its payments waits to be signed any more: then nothing is stored.
pub(super) async fn approve(
    core: &Core,
    request: &RequestKey,
    approval: &Approval,
) -> Result<Option<String>, Stopped> {
    let is_kept = core.bank().atomically(|bank| {
        let payments = &approval.payments;
        let is_signable = payments.is_empty() || bank.has_one_to_sign(payments)?;
        if is_signable {
            bank.keep_approval(request, approval)?;
        }
        Ok::<_, BankFault>(is_signable)
    })?;
    if !is_kept {
        return Ok(None);
    }
    Ok(Some(finish(core, request).await?.unwrap_or_default()))
}

/// Finishes the approval of a request, if there is one; returns the redirect URI, which is empty where the gateway's answer was
/// lost and the token has expired since.
pub(super) async fn finish(core: &Core, request: &RequestKey) -> Result<Option<String>, Stopped> {
    // One at a time: a consent that is given anew must not be withdrawn by an older approval.
    let _one = core.endings.lock().await;
    let found = core.bank().ending(request);
    let Some(mut ending) = found? else {
        return Ok(None);
    };
    if ending.step == Step::Complete {
        match complete(core, &ending).await {
            Ok(uri) => ending.redirect_uri = uri,
            Err(fault) => {
                if fault.is_final() {
                    core.bank().forget_approval(request)?;
                }
                return Err(fault.into());
            }
        }
        ending.step = core
            .bank()
            .atomically(|bank| bank.carry_out(request, &ending))?;
    }
    if ending.step == Step::Withdraw {
        let Approval {
            tpp,
            psu,
            agreement,
            ..
        } = &ending.approval;
        match core.control.withdraw(tpp, *psu, *agreement).await {
            Err(fault) if !fault.is_final() => {
                complain("portvakt-sandbox", "a withdrawal waits for the gateway");
            }
            // Of a repeated call, or of a consent that the gateway had no longer: there is none, as the PSU wants.
            Ok(_) => core.bank().move_ending(request, Step::Ended)?,
            // Nothing was withdrawn, and a repetition would not help: the bank's staff must know.
            Err(fault) => {
                complain(
                    "portvakt-sandbox",
                    format_args!("the gateway withdrew nothing: {fault}"),
                );
                core.bank().move_ending(request, Step::Ended)?;
            }
        }
    }
    Ok(Some(ending.redirect_uri))
}

/// Finishes what a crash or an unavailable gateway left, and forgets what has long ended.
pub(super) async fn recover(core: &Core) -> Result<(), Stopped> {
    let open = core.bank().open_endings();
    for request in open? {
        if let Err(fault) = finish(core, &request).await {
            complain(
                "portvakt-sandbox",
                format_args!("an approved SCA has not ended yet: {fault}"),
            );
        }
    }
    Ok(())
}

/// Completes the SCA at the gateway. An expired token may have been completed before: then the gateway knows of this SCA.
async fn complete(core: &Core, ending: &Ending) -> Result<String, ControlFault> {
    let Approval {
        tpp,
        psu,
        agreement,
        completion,
        ..
    } = &ending.approval;
    match core.control.complete(completion).await {
        Err(ControlFault::Refused { reason, .. }) if reason == EXPIRED => {
            let known = core.control.last_sca(tpp, *psu, *agreement).await?;
            let is_known = known.is_some_and(|at| at.as_second() >= ending.approved);
            match is_known {
                true => Ok(String::new()),
                false => Err(ControlFault::expired()),
            }
        }
        answer => answer,
    }
}

impl Bank {
    fn keep_approval(&self, request: &RequestKey, approval: &Approval) -> Result<(), BankFault> {
        let accounts = approval
            .accounts
            .as_ref()
            .map(|ids| Value::from_iter(ids.iter().cloned()));
        let payments = Value::from_iter(approval.payments.iter().cloned());
        self.db
            .prepare_cached(
                "INSERT OR IGNORE INTO ending (request, step, approved, tpp, psu, agreement, accounts, payments, completion, redirect_uri) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, '')",
            )?
            .execute(params![
                request.text(),
                Step::Complete.name(),
                self.now().timestamp().as_second(),
                approval.tpp,
                approval.psu.to_string(),
                in_context(approval.agreement),
                accounts.map(|accounts| accounts.to_string()),
                payments.to_string(),
                approval.completion.to_string()
            ])?;
        Ok(())
    }

    /// Signs the payments and replaces the consent; returns what is left to do.
    fn carry_out(&self, request: &RequestKey, ending: &Ending) -> Result<Step, BankFault> {
        let approval = &ending.approval;
        for payment in &approval.payments {
            self.sign(payment)?;
        }
        let mut step = Step::Ended;
        if let Some(accounts) = &approval.accounts {
            // This consent replaces an older one, so an older withdrawal is no longer wanted.
            let (psu, agreement) = (approval.psu.to_string(), in_context(approval.agreement));
            self.db.execute(
                "UPDATE ending SET step = 'ENDED' WHERE step = 'WITHDRAW' AND tpp = ?1 AND psu = ?2 AND agreement = ?3",
                params![approval.tpp, psu, agreement],
            )?;
            let was_open = self.consent(approval.psu, approval.agreement, accounts)?;
            if accounts.is_empty() && was_open {
                step = Step::Withdraw;
            }
        }
        self.db
            .prepare_cached(
                "UPDATE ending SET step = ?2, completion = 'null', redirect_uri = ?3 WHERE request = ?1",
            )?
            .execute(params![request.text(), step.name(), ending.redirect_uri])?;
        Ok(step)
    }

    fn move_ending(&self, request: &RequestKey, step: Step) -> Result<(), BankFault> {
        self.db.execute(
            "UPDATE ending SET step = ?2 WHERE request = ?1",
            params![request.text(), step.name()],
        )?;
        Ok(())
    }

    fn forget_approval(&self, request: &RequestKey) -> Result<(), BankFault> {
        self.db
            .execute("DELETE FROM ending WHERE request = ?1", [request.text()])?;
        Ok(())
    }

    fn ending(&self, request: &RequestKey) -> Result<Option<Ending>, BankFault> {
        let mut found = self.db.prepare_cached(
            "SELECT step, approved, tpp, psu, agreement, accounts, payments, completion, redirect_uri FROM ending \
             WHERE request = ?1",
        )?;
        found
            .query_row([request.text()], |row| Ok(read_ending(row)))
            .optional()?
            .transpose()
    }

    fn open_endings(&self) -> Result<Vec<RequestKey>, BankFault> {
        let until = self
            .now()
            .timestamp()
            .as_second()
            .saturating_sub(REMEMBERED);
        self.db.execute(
            "DELETE FROM ending WHERE step = 'ENDED' AND approved < ?1",
            [until],
        )?;
        let mut open = self
            .db
            .prepare_cached("SELECT request FROM ending WHERE step <> 'ENDED' ORDER BY rowid")?;
        let rows = open.query_map([], |row| row.get(0).map(RequestKey::stored))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn read_ending(row: &Row<'_>) -> Result<Ending, BankFault> {
    const KEPT: BankFault = BankFault::Kept("an approval");
    let text = |column| row.get::<_, String>(column);
    let json = |text: String| serde_json::from_str(&text).map_err(|_| KEPT);
    let list = |text: String| serde_json::from_str::<Vec<String>>(&text).map_err(|_| KEPT);
    let name = text(0)?;
    let mut steps = [Step::Complete, Step::Withdraw, Step::Ended].into_iter();
    let agreement = Some(text(4)?).filter(|agreement| !agreement.is_empty());
    let agreement = agreement.map(|id| id.parse().map_err(|_| KEPT));
    let accounts = row.get::<_, Option<String>>(5)?.map(list).transpose()?;
    Ok(Ending {
        step: steps.find(|step| step.name() == name).ok_or(KEPT)?,
        approved: row.get(1)?,
        approval: Approval {
            tpp: text(2)?,
            psu: text(3)?.parse().map_err(|_| KEPT)?,
            agreement: agreement.transpose()?,
            accounts: accounts.map(|accounts| accounts.into_iter().collect()),
            payments: list(text(6)?)?,
            completion: json(text(7)?)?,
        },
        redirect_uri: text(8)?,
    })
}
