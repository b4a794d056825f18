//! What trusted lists say of issuers: for which types of certificate a service is granted, and which of its certificates are not what they say
//! themselves (CRT-3, CRT-13; ETSI TS 119 612, clause 5.5.9).
//!
//! Invariants: where a list may mean that a certificate is not qualified, it is refused; the nearest issuer that a list names decides, also one
//! that it names without a grant, such as a CA that was withdrawn (ETSI TS 119 615). An anchor that no list names is the operator's own, and
//! vouches for each type.

use super::{
    CertificateFault, CertificateTypes, judgement,
    key_hash::KeyHash,
    path::failed,
    qualification::{Judged, Meets, Qualification},
};
use openssl::{
    error::ErrorStack,
    x509::{X509, X509Ref},
};
use std::collections::HashMap;
use x509_parser::certificate::X509Certificate;

/// The qualifier of certificates that are not qualified.
const NOT_QUALIFIED: &str = "NotQualified";

/// The qualifiers that say of which type a certificate is: for signatures of natural persons, for seals, and for web sites.
const FOR_SIGNATURES: &str = "QCForESig";
const FOR_SEALS: &str = "QCForESeal";
const FOR_WEB_SITES: &str = "QCForWSA";

/// A type of certificate for which a service is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantedType {
    /// For electronic seals (QSealC), QcType eseal.
    Eseal,
    /// For the authentication of web sites (QWAC), QcType web.
    Web,
}

impl GrantedType {
    /// The name that a bundle has for it: that of its folder of anchors, and the value of `for`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eseal => "seals",
            Self::Web => "websites",
        }
    }
}

/// The grants of issuers, by their public keys: an issuer may have several certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(HashMap<KeyHash, Granted>);

/// The types for which the services of an issuer are granted, each with the qualifications of all of them. None if a list names the issuer,
/// and grants none of its services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Granted {
    eseal: Option<Vec<Qualification>>,
    web: Option<Vec<Qualification>>,
}

impl Grants {
    /// Adds the qualifications of a service that is granted for a type, and that an anchor identifies.
    ///
    /// # Errors
    /// OpenSSL cannot read the anchor's key.
    pub(super) fn add(
        &mut self,
        anchor: &X509Ref,
        of: GrantedType,
        qualifications: impl IntoIterator<Item = Qualification>,
    ) -> Result<(), ErrorStack> {
        let granted = self.0.entry(KeyHash::of(anchor)?).or_default();
        let known = match of {
            GrantedType::Eseal => &mut granted.eseal,
            GrantedType::Web => &mut granted.web,
        };
        known.get_or_insert_default().extend(qualifications);
        Ok(())
    }

    /// Notes that a list names this issuer. Without a grant it vouches for nothing, and neither does an anchor above it.
    pub(super) fn name(&mut self, issuer: KeyHash) {
        self.0.entry(issuer).or_default();
    }

    /// Forgets the grants of an anchor that the operator names too: that word needs no list.
    ///
    /// # Errors
    /// OpenSSL cannot read the anchor's key.
    pub(super) fn forget(&mut self, anchor: &X509Ref) -> Result<(), ErrorStack> {
        self.0.remove(&KeyHash::of(anchor)?);
        Ok(())
    }

    /// The nearest issuer of a path that a list names.
    ///
    /// # Errors
    /// OpenSSL cannot read a key.
    pub fn nearest<'m>(&self, members: &'m [X509]) -> Result<Option<&'m X509>, ErrorStack> {
        let above = members.get(1..).unwrap_or_default();
        for issuer in above.iter().filter(|_| !self.0.is_empty()) {
            if self.0.contains_key(&KeyHash::of(issuer)?) {
                return Ok(Some(issuer));
            }
        }
        Ok(None)
    }

    /// Whether the nearest issuer of a path that a list names vouches for the end-entity certificate, as one of the types that are accepted.
    ///
    /// # Errors
    /// [`CertificateFault::Ungranted`], [`CertificateFault::Unqualified`], or the end-entity certificate cannot be read.
    pub fn judge(
        &self,
        members: &[X509],
        accepted: CertificateTypes,
    ) -> Result<(), CertificateFault> {
        let issuer = self.nearest(members).map_err(failed)?;
        let Some((leaf, issuer)) = members.first().zip(issuer) else {
            return Ok(());
        };
        let granted = self.0.get(&KeyHash::of(issuer).map_err(failed)?);
        if granted == Some(&Granted::default()) {
            return Err(CertificateFault::Ungranted);
        }
        let der = leaf.to_der().map_err(failed)?;
        let (certificate, _) = judgement::read(&der)?;
        granted.map_or(Ok(()), |granted| granted.vouches(&certificate, accepted))
    }
}

impl Granted {
    fn vouches(
        &self,
        certificate: &X509Certificate<'_>,
        accepted: CertificateTypes,
    ) -> Result<(), CertificateFault> {
        let judged = Judged::of(certificate);
        let verdicts = types_of(certificate, accepted).into_iter().map(|of| {
            let qualifications = match of {
                GrantedType::Eseal => &self.eseal,
                GrantedType::Web => &self.web,
            };
            vouched(qualifications.as_deref(), &judged, of)
        });
        let verdicts: Vec<_> = verdicts.collect();
        if verdicts.iter().any(Result::is_ok) {
            return Ok(());
        }
        // A certificate of no accepted type is refused for its type, where the policy does not tolerate that.
        let first = verdicts.into_iter().next().unwrap_or(Ok(()));
        first.map_err(CertificateFault::Unqualified)
    }
}

/// The accepted types that a certificate says it has; each accepted type if it says none.
fn types_of(certificate: &X509Certificate<'_>, accepted: CertificateTypes) -> Vec<GrantedType> {
    let statements = judgement::statements(certificate).unwrap_or_default();
    let says_none = !statements.eseal && !statements.web;
    let mut types = Vec::new();
    if accepted.eseal && (statements.eseal || says_none) {
        types.push(GrantedType::Eseal);
    }
    if accepted.web && (statements.web || says_none) {
        types.push(GrantedType::Web);
    }
    types
}

/// Whether services vouch for a certificate as one of a type; `None` stands for no service of that type.
fn vouched(
    qualifications: Option<&[Qualification]>,
    judged: &Judged<'_>,
    of: GrantedType,
) -> Result<(), &'static str> {
    let own = match of {
        GrantedType::Eseal => FOR_SEALS,
        GrantedType::Web => FOR_WEB_SITES,
    };
    let Some(qualifications) = qualifications else {
        return Err(match of {
            GrantedType::Eseal => {
                "the trusted lists grant its issuer no service for seals (QcType eseal)"
            }
            GrantedType::Web => {
                "the trusted lists grant its issuer no service for web sites (QcType web)"
            }
        });
    };
    let (mut is_own_type, mut is_other_type) = (false, Meets::No);
    for Qualification {
        qualifiers,
        criteria,
    } in qualifications
    {
        let meets = criteria.meets(judged);
        let says = |name: &str| qualifiers.iter().any(|written| is_named(written, name));
        if says(NOT_QUALIFIED) && meets != Meets::No {
            return Err(
                "the trusted list of its issuer says NotQualified of certificates like this one",
            );
        }
        is_own_type |= meets == Meets::Yes && says(own);
        let types = [FOR_SIGNATURES, FOR_SEALS, FOR_WEB_SITES];
        if meets != Meets::No && types.iter().any(|name| *name != own && says(name)) {
            is_other_type = match is_other_type {
                Meets::Yes => Meets::Yes,
                Meets::No | Meets::Unknown => meets,
            };
        }
    }
    let is_refused = match is_other_type {
        Meets::Yes => true,
        Meets::Unknown => !is_own_type,
        Meets::No => false,
    };
    if is_refused {
        return Err(
            "the trusted list of its issuer says of certificates like this one that they are of another type than they say",
        );
    }
    Ok(())
}

/// Whether a qualifier is this one, also with another beginning of its URI than the lists have today, and in other letters.
fn is_named(written: &str, name: &str) -> bool {
    let last = written.rsplit(['/', '#']).next();
    last.is_some_and(|last| last.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
