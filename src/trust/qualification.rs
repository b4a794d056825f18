//! Qualifications of a service of a trusted list (ETSI TS 119 612, clause 5.5.9.2): which of its certificates are more, or less, than they say
//! themselves.
//!
//! `portvakt-lists` writes them into a bundle, and the gateway reads the same types from it.

use serde::{Deserialize, Serialize};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{KeyUsage, ParsedExtension},
    oid_registry::{OID_X509_EXT_CERTIFICATE_POLICIES, OID_X509_EXT_KEY_USAGE},
};

/// The deepest nesting of criteria that is judged. The lists have 3.
pub const MAX_DEPTH: usize = 8;

/// One qualification: certificates that meet the criteria have the qualifiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qualification {
    /// Qualifiers, such as `NotQualified`, `QCForESeal` or `QCForLegalPerson`.
    pub qualifiers: Vec<String>,
    /// What a certificate meets to have them.
    pub criteria: Criteria,
}

/// How many of the criteria a certificate meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assert {
    /// Each of them.
    All,
    /// At least one of them.
    AtLeastOne,
    /// None of them.
    None,
}

/// Criteria for certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// How many of the criteria count.
    pub assert: Assert,
    /// Sets of key usages: each bit with the value that a certificate has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_usages: Vec<Vec<KeyUsageBit>>,
    /// Sets of policies: a certificate names each policy of a set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Vec<String>>,
    /// Criteria of other kinds, by the names of their elements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Criteria in the criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Self>,
}

/// A bit of the key usage, and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyUsageBit {
    /// Its name, such as `digitalSignature`.
    pub name: String,
    /// Whether it is set.
    pub set: bool,
}

/// Whether a certificate meets criteria.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meets {
    Yes,
    No,
    /// Criteria of other kinds decide, or criteria that are nested too deeply.
    Unknown,
}

/// What criteria judge of a certificate.
pub(super) struct Judged<'a> {
    usage: Option<&'a KeyUsage>,
    policies: Vec<String>,
    /// Whether an extension with either cannot be read: nobody can say what the certificate meets.
    is_unreadable: bool,
}

impl<'a> Judged<'a> {
    pub(super) fn of(certificate: &'a X509Certificate<'_>) -> Self {
        let (mut usage, mut policies, mut is_unreadable) = (None, Vec::new(), false);
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::KeyUsage(found) => usage = Some(found),
                ParsedExtension::CertificatePolicies(found) => {
                    let found = found.iter().map(|policy| policy.policy_id.to_id_string());
                    policies.extend(found);
                }
                _ => {
                    let judged = [OID_X509_EXT_KEY_USAGE, OID_X509_EXT_CERTIFICATE_POLICIES];
                    is_unreadable |= judged.contains(&extension.oid);
                }
            }
        }
        Self {
            usage,
            policies,
            is_unreadable,
        }
    }
}

impl Criteria {
    pub(super) fn meets(&self, judged: &Judged<'_>) -> Meets {
        self.meets_at(judged, 0)
    }

    fn meets_at(&self, judged: &Judged<'_>, depth: usize) -> Meets {
        if depth >= MAX_DEPTH || judged.is_unreadable {
            return Meets::Unknown;
        }
        let usages = self.key_usages.iter().map(|bits| has_usages(judged, bits));
        let policies = self.policies.iter().map(|set| has_policies(judged, set));
        let others = self.others.iter().map(|_| Meets::Unknown);
        let nested = self.nested.iter();
        let nested = nested.map(|criteria| criteria.meets_at(judged, depth.saturating_add(1)));
        let mut each = usages.chain(policies).chain(others).chain(nested);
        match self.assert {
            Assert::All => every(&mut each, Meets::Yes),
            Assert::None => every(&mut each, Meets::No),
            Assert::AtLeastOne => every(&mut each, Meets::No).negated(),
        }
    }
}

impl Meets {
    const fn of(meets: bool) -> Self {
        if meets { Self::Yes } else { Self::No }
    }

    const fn negated(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Whether each is `wanted`: one that is the opposite decides, whatever is unknown.
fn every(each: &mut dyn Iterator<Item = Meets>, wanted: Meets) -> Meets {
    let mut all = Meets::Yes;
    for one in each {
        if one == Meets::Unknown {
            all = Meets::Unknown;
        } else if one != wanted {
            return Meets::No;
        }
    }
    all
}

/// Whether each bit has its value. A certificate without key usages has none of these sets.
fn has_usages(judged: &Judged<'_>, bits: &[KeyUsageBit]) -> Meets {
    let Some(usage) = judged.usage else {
        return Meets::No;
    };
    let mut each = bits.iter().map(|bit| match is_set(usage, &bit.name) {
        Some(is_set) => Meets::of(is_set == bit.set),
        None => Meets::Unknown,
    });
    every(&mut each, Meets::Yes)
}

/// Whether a text is an object identifier in its one spelling: numbers without leading zeros, the second below 40 where the first is 0 or 1.
fn is_identifier(text: &str) -> bool {
    let is_number = |arc: &str| {
        let digits = !arc.is_empty() && arc.bytes().all(|byte| byte.is_ascii_digit());
        digits && (arc == "0" || !arc.starts_with('0'))
    };
    let mut arcs = text.split('.');
    let root = match (arcs.next(), arcs.next()) {
        (Some("0" | "1"), Some(second)) => second.parse().is_ok_and(|second: u8| second < 40),
        (Some("2"), Some(_)) => true,
        _ => false,
    };
    root && text.split('.').all(is_number)
}

/// Whether a certificate names each policy. Of a text that is no object identifier nobody can say what is meant.
fn has_policies(judged: &Judged<'_>, set: &[String]) -> Meets {
    let mut each = set.iter().map(|policy| match is_identifier(policy) {
        true => Meets::of(judged.policies.iter().any(|own| own == policy)),
        false => Meets::Unknown,
    });
    every(&mut each, Meets::Yes)
}

/// A bit of a key usage by its name in TS 119 612; `None` if there is no such bit.
fn is_set(usage: &KeyUsage, name: &str) -> Option<bool> {
    Some(match name {
        "digitalSignature" => usage.digital_signature(),
        "nonRepudiation" => usage.non_repudiation(),
        "keyEncipherment" => usage.key_encipherment(),
        "dataEncipherment" => usage.data_encipherment(),
        "keyAgreement" => usage.key_agreement(),
        "keyCertSign" => usage.key_cert_sign(),
        "crlSign" => usage.crl_sign(),
        "encipherOnly" => usage.encipher_only(),
        "decipherOnly" => usage.decipher_only(),
        _ => return None,
    })
}
