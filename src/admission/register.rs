//! The registration of the TPP (CRT-7).
//!
//! This check follows the signature, so that only the TPP itself learns that it is blocked or not registered; where certificate or signature
//! are only observed, a block refuses whoever shows the TPP's certificate. The bank's own lists come
//! first: a block outweighs everything, and a TPP that is allowed there needs no register. All other TPPs depend on the registers (CRT-14),
//! and are refused if a register that could decide is too old.

use super::{Tpp, role};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal, TppId, headers,
        operations::{Operation, Role},
    },
    trust::{
        Registers, Roles,
        register::{Register, Registration, WhenStale},
    },
};

/// Retry-After in seconds while the register is too old: an operator has to install a new one.
const RETRY_AFTER: u64 = 300;

/// The proof that the TPP is registered in the role that the operation needs.
#[must_use]
#[derive(Debug)]
pub struct Registered {
    roles: Roles,
    by_stale: bool,
}

impl Registered {
    /// The registered roles, in the host country.
    pub const fn roles(&self) -> Roles {
        self.roles
    }

    /// Whether the proof depends on a register past its maximum age, which the configuration tolerates.
    pub const fn is_by_stale(&self) -> bool {
        self.by_stale
    }
}

pub(super) fn judge(
    tpp: &Tpp,
    operation: &Operation,
    registers: &Registers,
    now: Timestamp,
) -> Result<Registered, Refusal> {
    let certificate = tpp.certificate();
    let asked = Asked {
        tpp: certificate.tpp_id(),
        certified: certificate.roles(),
        needed: operation.role,
        by: operation.name.as_str(),
    };
    asked.judge(registers, now)
}

/// Tells an operator whether a TPP whose certificate has these roles would be registered at `now` for operations that need this role. It
/// proves nothing, and admits no request.
///
/// # Errors
/// The refusal that such a request would get.
pub fn would_be_registered(
    tpp: &TppId,
    certified: Roles,
    needed: Role,
    registers: &Registers,
    now: Timestamp,
) -> Result<(), Refusal> {
    let asked = Asked {
        tpp,
        certified,
        needed,
        by: "such a request",
    };
    asked.judge(registers, now).map(|_| ())
}

/// What is asked of the registers.
struct Asked<'a> {
    tpp: &'a TppId,
    /// The roles in the certificate.
    certified: Roles,
    needed: Role,
    /// What needs the role, for the text of a refusal.
    by: &'a str,
}

impl Asked<'_> {
    fn judge(&self, registers: &Registers, now: Timestamp) -> Result<Registered, Refusal> {
        let found = registers.find(self.tpp);
        if found.blocked {
            return Err(blocked());
        }
        if self.suffices(found.allowed) {
            return Ok(Registered {
                roles: found.roles(),
                by_stale: false,
            });
        }
        let stale = registers.stale(now);
        let fresh = match stale {
            None => found,
            Some(_) => registers.find_fresh(self.tpp, now),
        };
        if self.suffices(fresh.roles()) {
            return Ok(Registered {
                roles: fresh.roles(),
                by_stale: false,
            });
        }
        // What an old register has does not matter where another one has the authorisation as withdrawn.
        if let Some(stale) = stale.filter(|_| found.withdrawn_by.is_none()) {
            if registers.settings().stale == WhenStale::Refuse {
                return Err(Refusal::new(Reason::RegisterStale)
                    .retry_after(RETRY_AFTER)
                    .for_operator(age(stale)));
            }
            if self.suffices(found.roles()) {
                registers.pass_stale();
                return Ok(Registered {
                    roles: found.roles(),
                    by_stale: true,
                });
            }
        }
        Err(self.refused(&found, registers))
    }

    fn suffices(&self, registered: Roles) -> bool {
        is_enough(registered, self.certified, self.needed)
    }

    fn refused(&self, found: &Registration<'_>, registers: &Registers) -> Refusal {
        let country = &registers.settings().host_country;
        let text = match registers.allowed_alike(self.tpp) {
            // What permits is matched exactly (FWD-6).
            Some(alike) if found.roles().is_empty() => format!(
                "the bank's own list allows {alike}, which is another spelling: list it as the certificate has it"
            ),
            _ => what_is_said(found, self.certified, self.needed, country),
        };
        let needed = role::needed(self.needed);
        let text = format!("{text}; {} needs {needed}", self.by);
        refused(Reason::TppNotRegistered, text)
    }
}

/// Whether the TPP still stands where it stood before (REP-1, SCA-23): neither blocked nor without its role. The age of the register is not
/// judged, because an old register takes nothing from a TPP.
///
/// # Errors
/// The bank blocks the TPP, or the registers do not have its role.
pub(super) fn stands(
    tpp: &TppId,
    certified: Roles,
    needed: Role,
    registers: &Registers,
) -> Result<(), Refusal> {
    let found = registers.find(tpp);
    if found.blocked {
        return Err(blocked());
    }
    if is_enough(found.roles(), certified, needed) {
        return Ok(());
    }
    let country = &registers.settings().host_country;
    let text = what_is_said(&found, certified, needed, country);
    let needed = role::needed(needed);
    Err(refused(
        Reason::TppNotRegistered,
        format!("{text}; {needed} is needed"),
    ))
}

/// The check of a sender whose certificate or signature failed and was only observed (FWD-6): `claims` are the TPPs that its certificates
/// name. Otherwise a blocked TPP would pass by spoiling its own signature.
///
/// # Errors
/// The bank blocks one of them.
pub(super) fn judge_claims(claims: &[TppId], registers: &Registers) -> Result<(), Refusal> {
    let is_blocked = |tpp: &&TppId| registers.find(tpp).blocked;
    match claims.iter().find(is_blocked) {
        None => Ok(()),
        Some(tpp) => {
            Err(blocked().for_operator(format!("a certificate of the request names {tpp}")))
        }
    }
}

/// The refusal of a TPP that the bank blocks.
pub(super) fn blocked() -> Refusal {
    let text = "the bank does not serve this TPP";
    refused(Reason::TppBlocked, text.to_owned())
}

/// Compares single roles: if either role is sufficient, the certificate and the register must share one.
const fn is_enough(registered: Roles, certified: Roles, needed: Role) -> bool {
    let counted = match needed {
        Role::Either => registered.and(certified),
        Role::AccountInformation | Role::PaymentInitiation => registered,
    };
    role::suffices(counted, needed)
}

fn what_is_said(found: &Registration<'_>, certified: Roles, needed: Role, country: &str) -> String {
    let roles = found.roles();
    if role::suffices(roles, needed) {
        // Either role suffices, but the certificate does not have the registered one.
        return format!(
            "it is registered as {roles} in {country}, and its certificate has {certified}: both must have one such role"
        );
    }
    if let Some(by) = found.withdrawn_by {
        return format!("its authorisation was withdrawn, by {by}");
    }
    if !roles.is_empty() {
        return format!("it is registered as {roles} in {country}");
    }
    match (found.listed, found.listed_by) {
        (Some(listed), Some(by)) if !listed.authorised => {
            format!("its authorisation was withdrawn, by {by}")
        }
        (Some(listed), Some(by)) if !listed.elsewhere.is_empty() => {
            format!("{by} has it for other countries, but not for {country}")
        }
        (Some(_), Some(by)) => format!("{by} has it without such a service"),
        _ => "it is in no register that the bank uses".to_owned(),
    }
}

fn age(register: &Register) -> String {
    let (name, as_of) = (register.name(), register.as_of());
    format!("{name} is of {as_of}: put a newer one in place")
}

fn refused(reason: Reason, text: String) -> Refusal {
    let header = headers::TPP_SIGNATURE_CERTIFICATE.written;
    Fault::header(reason, header, text).into()
}
