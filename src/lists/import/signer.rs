//! What is unusual about the certificate of a list's signer (TS 119 612, clause 5.7.1; TS 119 615, clause 4.2).
//!
//! Question: is a list refused whose signer's certificate is not as the standard wants it? Answer: no, a line says so. The list of lists names
//! this very certificate, and withdraws it by its next issue. Of nine national lists of 2019 and 2026 five have a signer without the
//! extended key usage, and one has an organisation that is written otherwise than its operator.

use crate::{
    certificate::Certificate,
    list::{ListType, Scheme},
};
use portvakt_base::clock::Timestamp;
use x509_parser::{
    certificate::X509Certificate, oid_registry::asn1_rs::oid, x509::AttributeTypeAndValue,
};

/// The countries that lists write otherwise than certificates do: (list, certificate).
const OTHER_COUNTRIES: [(&str, &str); 2] = [("EL", "GR"), ("UK", "GB")];

/// The lines about the signer of a list, which has the name of a file and is judged as of a time.
pub(super) fn remarks(
    signer: &Certificate,
    file: &str,
    scheme: &Scheme,
    at: Timestamp,
) -> Vec<String> {
    let mut lines = Vec::new();
    let (begin, end) = (signer.not_before(), signer.not_after());
    let issued = scheme.issued;
    let time = match () {
        () if issued < begin => Some(format!(
            "begins on {begin}, and the list was issued on {issued}"
        )),
        () if end < issued => Some(format!(
            "ended on {end}, before the list was issued, on {issued}"
        )),
        () if end < at => Some(format!("ended on {end}")),
        () => None,
    };
    lines.extend(time.map(|time| {
        format!("{file}: the certificate of the list's signer {time}: the list is taken, since the certificate is named for it; ask the operator of the list for an issue with another signer")
    }));
    let parsed = signer.parse().ok();
    let national = parsed.filter(|_| scheme.list_type == ListType::National);
    let unusual = national.map_or_else(Vec::new, |signer| unusual(&signer, scheme));
    if !unusual.is_empty() {
        lines.push(format!(
            "{file}: the certificate of the list's signer {} (ETSI TS 119 612, clause 5.7.1): the list is taken, since the list of lists names the certificate",
            unusual.join(", and ")
        ));
    }
    lines
}

/// In what a certificate is not as the standard wants it of a national list's signer.
fn unusual(signer: &X509Certificate<'_>, scheme: &Scheme) -> Vec<String> {
    let territory = scheme.territory.as_str();
    let other = OTHER_COUNTRIES.iter().find(|(list, _)| *list == territory);
    let is_country = |it: &str| it == territory || other.is_some_and(|(_, other)| it == *other);
    let subject = signer.subject();
    let mut found = Vec::new();
    if !texts(subject.iter_country()).any(is_country) {
        found.push(format!("has another country than {territory}"));
    }
    let is_operator = |it: &str| {
        scheme
            .operators
            .iter()
            .any(|name| folded(name) == folded(it))
    };
    if !texts(subject.iter_organization()).any(is_operator) {
        found.push("has an organisation that is no name of the list's operator".to_owned());
    }
    let constraints = signer.basic_constraints().ok().flatten();
    if constraints.is_some_and(|it| it.value.ca) {
        found.push("is that of a CA".to_owned());
    }
    let signs_lists = oid!(0.4.0.2231.3.0);
    let usage = signer.extended_key_usage().ok().flatten();
    if !usage.is_some_and(|it| it.value.other.contains(&signs_lists)) {
        found.push("lacks the extended key usage id-tsl-kp-tslSigning".to_owned());
    }
    found
}

/// The attributes that are text.
fn texts<'a>(
    attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>,
) -> impl Iterator<Item = &'a str> {
    attributes.filter_map(|it| it.as_str().ok())
}

/// A name without its capital letters and its white space, which lists and certificates write in several ways.
fn folded(name: &str) -> String {
    let words: Vec<_> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}
