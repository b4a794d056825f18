//! The role of the TPP for the operation (CRT-5).

use super::Tpp;
use crate::{
    interface::{
        Fault, Reason, Refusal, headers,
        operations::{Operation, Role},
    },
    trust::Roles,
};

/// The proof that the certificate has the role that the operation needs.
#[must_use]
#[derive(Debug)]
pub struct Entitled {
    role: Role,
}

impl Entitled {
    /// The required role.
    pub const fn role(&self) -> Role {
        self.role
    }
}

pub(super) fn judge(tpp: &Tpp, operation: &Operation) -> Result<Entitled, Refusal> {
    let roles = tpp.certificate().roles();
    if suffices(roles, operation.role) {
        return Ok(Entitled {
            role: operation.role,
        });
    }
    let (name, needed) = (&operation.name, needed(operation.role));
    let text = if roles.is_empty() {
        format!("it has none of the roles of ETSI TS 119 495; {name} needs {needed}")
    } else {
        format!("its roles are {roles}; {name} needs {needed}")
    };
    Err(Fault::header(
        Reason::RoleMissing,
        headers::TPP_SIGNATURE_CERTIFICATE.written,
        text,
    )
    .into())
}

/// Whether these roles suffice for an operation.
pub(crate) const fn suffices(roles: Roles, needed: Role) -> bool {
    match needed {
        Role::AccountInformation => roles.account_information(),
        Role::PaymentInitiation => roles.payment_initiation(),
        Role::Either => roles.account_information() || roles.payment_initiation(),
    }
}

/// The role that an operation needs, in words.
pub(super) const fn needed(role: Role) -> &'static str {
    match role {
        Role::AccountInformation => "PSP_AI",
        Role::PaymentInitiation => "PSP_PI",
        Role::Either => "PSP_AI or PSP_PI",
    }
}
