//! The registration of the TPP (CRT-7).
//!
//! This check follows the signature, so that only the TPP itself learns that it is blocked or not registered; where certificate or signature
//! are only observed, a block refuses whoever shows the TPP's certificate. The bank's own lists come
//! first: a block outweighs everything, and a TPP that is allowed there needs no other register. All other TPPs depend on the EBA's
//! register, and are refused if that register is too old.

use super::{Tpp, role};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal, TppId, headers,
        operations::{Operation, Role},
    },
    trust::{
        Registers, Roles,
        register::{EbaListing, WhenStale},
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
    let found = registers.find(certificate.tpp_id());
    if found.blocked {
        return Err(blocked());
    }
    let suffices = |roles| is_enough(roles, certificate.roles(), operation.role);
    if suffices(found.allowed) {
        return Ok(Registered {
            roles: found.roles(),
            by_stale: false,
        });
    }
    let by_stale = registers.is_stale(now);
    if by_stale && registers.settings().stale == WhenStale::Refuse {
        return Err(Refusal::new(Reason::RegisterStale)
            .retry_after(RETRY_AFTER)
            .for_operator(age(registers)));
    }
    let roles = found.roles();
    if !suffices(roles) {
        let country = &registers.settings().host_country;
        let text = match registers.allowed_alike(certificate.tpp_id()) {
            // What permits is matched exactly (FWD-6).
            Some(alike) if roles.is_empty() => format!(
                "the bank's own list allows {alike}, which is another spelling: list it as the certificate has it"
            ),
            _ => what_is_said(
                roles,
                certificate.roles(),
                operation.role,
                found.listed,
                country,
            ),
        };
        let needed = role::needed(operation.role);
        let text = format!("{text}; {} needs {needed}", operation.name);
        return Err(refused(Reason::TppNotRegistered, text));
    }
    if by_stale {
        registers.pass_stale();
    }
    Ok(Registered { roles, by_stale })
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
    let text = what_is_said(found.roles(), certified, needed, found.listed, country);
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

fn what_is_said(
    roles: Roles,
    certified: Roles,
    needed: Role,
    listed: Option<EbaListing>,
    country: &str,
) -> String {
    match listed {
        // Either role suffices, but the certificate does not have the registered one.
        _ if role::suffices(roles, needed) => format!(
            "it is registered as {roles} in {country}, and its certificate has {certified}: both must have one such role"
        ),
        _ if !roles.is_empty() => format!("it is registered as {roles} in {country}"),
        None => "it is in no register that the bank uses".to_owned(),
        Some(listed) if !listed.authorised => {
            "its authorisation was withdrawn, by the EBA's register".to_owned()
        }
        Some(listed) if !listed.elsewhere.is_empty() => {
            format!("the EBA's register has it for other countries, but not for {country}")
        }
        Some(_) => "the EBA's register has it without such a service".to_owned(),
    }
}

fn age(registers: &Registers) -> String {
    let as_of = registers
        .as_of()
        .map_or_else(String::new, |at| at.to_string());
    format!("the EBA's register is of {as_of}: put a newer one in place")
}

fn refused(reason: Reason, text: String) -> Refusal {
    let header = headers::TPP_SIGNATURE_CERTIFICATE.written;
    Fault::header(reason, header, text).into()
}
