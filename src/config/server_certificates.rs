//! The certificates of the public listener: one for every client, and others by the host name that a client asks for (SNI).
//!
//! Invariants: each key fits its certificate; a name has one certificate, which covers it; an OCSP response is about its certificate,
//! says good, and is signed by the issuer or a responder of the issuer. Deliberately not here: the current time. A response is sent
//! while it is current, which is decided at each handshake.

use super::identity::identity;
use super::pem;
use super::section::Section;
use super::value::Value;
use super::warning::{Condition, Period};
use crate::clock::Timestamp;
use crate::expiring::{Expiring, Level};
use crate::hsm::Purpose;
use crate::trust::{self, Validity, revocation};
use openssl::x509::X509;
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The certificates of the public listener, with their keys.
#[derive(Debug)]
pub struct ServerCertificates {
    /// For clients that name no host, or an unknown one.
    first: Arc<ServerCertificate>,
    others: Vec<Arc<ServerCertificate>>,
    /// By host name in lower case; a key that begins with `*.` stands for every name with one more label.
    by_name: BTreeMap<String, Arc<ServerCertificate>>,
}

/// A certificate chain with its key.
#[derive(Debug)]
struct ServerCertificate {
    plain: Arc<CertifiedKey>,
    /// The same with an OCSP response, and the period in which the response may be sent.
    stapled: Option<(Arc<CertifiedKey>, Validity)>,
}

impl ServerCertificates {
    /// Reads `certificate`, `key` and `ocsp_response`, and `other_certificates`.
    pub(super) fn read(section: &mut Section<'_>, base: &Path) -> Option<Self> {
        let first = ServerCertificate::read(section, base).map(Arc::new);
        let listed = section
            .optional_list("other_certificates")
            .unwrap_or_default();
        let (mut others, mut by_name) = (Vec::new(), BTreeMap::new());
        for value in &listed {
            let Some((certificate, names)) = read_other(value, base) else {
                continue;
            };
            for (name, value) in names {
                let before = by_name.insert(name.clone(), Arc::clone(&certificate));
                if before.is_some() {
                    value.fault(format!(
                        "{name} is a host of another certificate too; name the hosts of each certificate in hosts"
                    ));
                }
            }
            others.push(certificate);
        }
        let first = first?;
        for name in first.names() {
            by_name.entry(name).or_insert_with(|| Arc::clone(&first));
        }
        Some(Self {
            first,
            others,
            by_name,
        })
    }

    /// The certificate for a client that asks for this host name, in lower case. An OCSP response is included while it is current.
    pub fn find(&self, name: Option<&str>, now: Timestamp) -> &Arc<CertifiedKey> {
        let found = name.and_then(|name| {
            self.by_name.get(name).or_else(|| {
                let (_, parent) = name.split_once('.')?;
                self.by_name.get(&format!("*.{parent}"))
            })
        });
        found.unwrap_or(&self.first).at(now)
    }

    /// A certificate that is not valid at `now` and that `before` does not have; the text names its period.
    pub fn new_but_invalid(&self, before: &Self, now: Timestamp) -> Option<String> {
        let leaf = |one: &ServerCertificate| one.plain.cert.first().cloned();
        let known: Vec<_> = before.all().filter_map(leaf).collect();
        let mut new = self
            .all()
            .filter_map(leaf)
            .filter(|leaf| !known.contains(leaf));
        new.find_map(|leaf| {
            let leaf = X509::from_der(&leaf).ok()?;
            let period = trust::validity_of(&leaf).ok()?;
            (!period.contains(now)).then(|| {
                let Validity {
                    not_before,
                    not_after,
                } = period;
                format!(
                    "a new certificate of the listener is valid from {not_before} to {not_after} only; the one before stays in use"
                )
            })
        })
    }

    fn all(&self) -> impl Iterator<Item = &ServerCertificate> {
        std::iter::once(&*self.first).chain(self.others.iter().map(AsRef::as_ref))
    }
}

impl ServerCertificate {
    fn read(section: &mut Section<'_>, base: &Path) -> Option<Self> {
        let purpose = Some(Purpose::Listener);
        let plain = identity(section, base, Expiring::Listener, purpose);
        let plain = plain.map(|plain| plain.certified);
        let response = section.optional("ocsp_response");
        let response = response.and_then(|value| Some((value.path(base)?, value)));
        let plain = plain?;
        let stapled = response.and_then(|(path, value)| {
            let stapled = staple(&plain, &path);
            let stapled = stapled.map_err(|text| value.fault(text)).ok()?;
            value.warn_while(staple_warning(stapled.1));
            Some(stapled)
        });
        Some(Self { plain, stapled })
    }

    fn at(&self, now: Timestamp) -> &Arc<CertifiedKey> {
        match &self.stapled {
            Some((stapled, period)) if period.contains(now) => stapled,
            _ => &self.plain,
        }
    }

    /// The DNS names in the certificate, in lower case.
    fn names(&self) -> Vec<String> {
        let leaf = self.plain.cert.first();
        let leaf = leaf.and_then(|leaf| X509::from_der(leaf).ok());
        let names = leaf.and_then(|leaf| leaf.subject_alt_names());
        let names = names.iter().flatten();
        names
            .filter_map(|name| name.dnsname().map(str::to_ascii_lowercase))
            .collect()
    }
}

/// Hosts, and their values in the file.
type Hosts<'a> = Vec<(String, Value<'a>)>;

/// Reads an element of `other_certificates`: its certificate, and its hosts.
fn read_other<'a>(value: &Value<'a>, base: &Path) -> Option<(Arc<ServerCertificate>, Hosts<'a>)> {
    let mut section = value.as_section();
    let certificate = ServerCertificate::read(&mut section, base);
    let hosts = section.optional("hosts");
    let hosts = hosts.map(|hosts| hosts.as_list());
    section.finish();
    let certificate = certificate?;
    let covered = certificate.names();
    let names: Hosts<'a> = match hosts {
        None => covered
            .into_iter()
            .map(|name| (name, value.clone()))
            .collect(),
        Some(hosts) => {
            let hosts = hosts?.into_iter();
            hosts
                .filter_map(|value| Some((host(&value, &covered)?, value)))
                .collect()
        }
    };
    if names.is_empty() {
        value
            .fault("no client can ask for this certificate: it has no DNS name, or hosts is empty");
    }
    Some((Arc::new(certificate), names))
}

/// Reads a host, which the certificate must cover.
fn host(value: &Value<'_>, covered: &[String]) -> Option<String> {
    let expected = format!("a DNS name of the certificate ({})", covered.join(", "));
    let name = value.text(&expected)?.to_ascii_lowercase();
    match covered.iter().any(|pattern| covers(pattern, &name)) {
        true => Some(name),
        false => value.refuse(&expected),
    }
}

/// Whether a name in a certificate covers a host (RFC 9525, 6.3): `*` stands for one whole label.
fn covers(pattern: &str, name: &str) -> bool {
    let by_wildcard = || {
        let parent = pattern.strip_prefix("*.")?;
        let (label, rest) = name.split_once('.')?;
        Some(!label.is_empty() && label != "*" && rest == parent)
    };
    pattern == name || by_wildcard().unwrap_or(false)
}

fn staple_warning(validity: Validity) -> Condition {
    let Validity {
        not_before,
        not_after,
    } = validity;
    Condition::Period(Period {
        of: Expiring::ListenerOcsp,
        validity,
        at_end: Level::Soon,
        texts: [
            format!("the OCSP response is not sent before {not_before}"),
            format!("the OCSP response ends at {not_after}: get the next one"),
            format!("the OCSP response ended at {not_after}, and is not sent"),
        ],
    })
}

/// The certificate with the OCSP response of a file (DER), and the period in which the response may be sent.
fn staple(plain: &CertifiedKey, path: &Path) -> Result<(Arc<CertifiedKey>, Validity), String> {
    let response = pem::read(path)?;
    let mut chain = plain.cert.iter().map(|der| X509::from_der(der));
    let (Some(Ok(leaf)), Some(Ok(issuer))) = (chain.next(), chain.next()) else {
        return Err(
            "the certificate's file does not contain the issuer's certificate, which an OCSP response is verified by"
                .to_owned(),
        );
    };
    let period = revocation::own_response(&response, &leaf, &issuer)
        .map_err(|fault| format!("{}: {fault}", path.display()))?;
    let mut stapled = plain.clone();
    stapled.ocsp = Some(response);
    Ok((Arc::new(stapled), period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_one_label() {
        for (pattern, name, expected) in [
            ("api.bank.example", "api.bank.example", true),
            ("*.bank.example", "api.bank.example", true),
            ("*.bank.example", "*.bank.example", true),
            ("*.bank.example", "bank.example", false),
            ("*.bank.example", ".bank.example", false),
            ("*.bank.example", "a.b.bank.example", false),
            ("api.bank.example", "*.bank.example", false),
            ("*.b.example", "*.x.b.example", false),
        ] {
            assert_eq!(covers(pattern, name), expected, "{pattern} {name}");
        }
    }
}
