//! The evidence of each check, in one or two lines.

use super::judge::JudgedRequest;
use crate::{
    admission::{Stage, Verdict},
    clock::Timestamp,
    interface::{
        headers::{self, date, encoded_word, signature::Signature},
        operations::{Body, Operation, Required},
    },
    terminal::tame,
    tools::saved::SavedRequest,
    trust::Certificate,
};
use http::HeaderMap;

/// The text beside a passed check.
pub(super) fn of(stage: Stage, request: &SavedRequest, judged: &JudgedRequest) -> Vec<String> {
    let operation = judged.record.operation().map(AsRef::as_ref);
    let certificate = judged.record.certificate().map(AsRef::as_ref);
    match stage {
        Stage::Match => operation.map(matched).into_iter().collect(),
        Stage::Envelope => operation
            .map(|operation| envelope(operation, &request.headers))
            .into_iter()
            .collect(),
        Stage::Query => vec![operation.map_or_else(String::new, parameters)],
        Stage::Date => vec![deviation(&request.headers, judged.moment.at())],
        Stage::AddressRate | Stage::TppRate => {
            vec!["nothing is counted of a request that is only looked at".to_owned()]
        }
        Stage::Sca | Stage::Claim => vec![],
        Stage::Certificate => certificate.map(identity).unwrap_or_default(),
        Stage::Role => operation
            .zip(certificate)
            .map(|(operation, certificate)| {
                let needed = role(operation);
                format!(
                    "{} needs {needed}; it has {}",
                    operation.name,
                    certificate.roles()
                )
            })
            .into_iter()
            .collect(),
        Stage::Signature => vec![signed(&request.headers, judged)],
        Stage::Register => vec!["the TPP is registered in the role that is needed".to_owned()],
        Stage::Revocation => vec!["no member of the chain is revoked".to_owned()],
        Stage::Redirect => vec!["the operator lets this TPP redirect there".to_owned()],
        Stage::Body => vec![match request.body.len() {
            0 => "none".to_owned(),
            length => format!("{length} bytes"),
        }],
        Stage::Digest => vec![digest(&request.headers, request.body.len())],
        Stage::Payload => vec![operation.map_or_else(String::new, payload)],
    }
}

fn payload(operation: &Operation) -> String {
    match operation.body {
        Body::None => "the operation takes none".to_owned(),
        Body::Ignored => "whatever it is, the operation does not look at it".to_owned(),
        Body::Json => format!("JSON by the schema {}", operation.schema.name()),
    }
}

fn parameters(operation: &Operation) -> String {
    if operation.query.is_empty() {
        return "the operation has no parameters of its own".to_owned();
    }
    let names: Vec<_> = operation
        .query
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    format!("well-formed where they stand: {}", names.join(", "))
}

/// The word for a result.
pub(super) const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "holds",
        Verdict::Refused(_) => "refused",
        Verdict::Waived(_) => "observed",
        Verdict::Skipped => "skipped",
    }
}

fn matched(operation: &Operation) -> String {
    format!(
        "operation {} of {}: {} {}",
        operation.name, operation.group, operation.method, operation.path
    )
}

fn envelope(operation: &Operation, all: &HeaderMap) -> String {
    let required = operation.required.iter().map(|required| match required {
        Required::One(header) => header.written.to_owned(),
        Required::Either(one, other) => format!("{} or {}", one.written, other.written),
    });
    let required: Vec<_> = required.collect();
    let needs = if required.is_empty() {
        "no header of its own".to_owned()
    } else {
        required.join(", ")
    };
    format!("{} headers; the operation requires {needs}", all.len())
}

fn deviation(all: &HeaderMap, at: Timestamp) -> String {
    let value = all.get(&headers::DATE.name);
    let date = value.and_then(|value| date::parse(headers::trim(value.as_bytes())));
    match date {
        Some(date) if date < at => format!("{} s behind the moment", date.distance(at)),
        Some(date) if date > at => format!("{} s ahead of the moment", date.distance(at)),
        Some(_) => "0 s off".to_owned(),
        None => "it cannot be read".to_owned(),
    }
}

fn identity(certificate: &Certificate) -> Vec<String> {
    let mut lines = vec![format!(
        "{} {:?}, roles {}, authority {}",
        tame(certificate.tpp_id().as_str()),
        certificate.tpp_name(),
        certificate.roles(),
        tame(certificate.nca_id())
    )];
    if let Some(validity) = certificate.validity().first() {
        lines.push(format!(
            "valid {} to {}",
            date::format(validity.not_before),
            date::format(validity.not_after)
        ));
    }
    lines.push(format!(
        "serial {}, issued by {}",
        certificate.serial_hex(),
        tame(&certificate.issuer().to_string())
    ));
    lines
}

fn role(operation: &Operation) -> &'static str {
    use crate::interface::operations::Role;
    match operation.role {
        Role::AccountInformation => "PSP_AI",
        Role::PaymentInitiation => "PSP_PI",
        Role::Either => "PSP_AI or PSP_PI",
    }
}

fn signed(all: &HeaderMap, judged: &JudgedRequest) -> String {
    let value = all
        .get(&headers::SIGNATURE.name)
        .map(http::HeaderValue::as_bytes);
    let value = encoded_word::decode(value.unwrap_or_default()).unwrap_or_default();
    let listed = Signature::parse(&value)
        .map(|signature| signature.headers.join(" "))
        .unwrap_or_default();
    let length = judged.signing_string.as_ref().map_or(0, Vec::len);
    let target = if listed.contains("(request-target)") {
        ""
    } else {
        "; method and path are not signed"
    };
    format!("it verifies over {length} bytes: {listed}{target}")
}

fn digest(all: &HeaderMap, length: usize) -> String {
    let Some(value) = all.get(&headers::DIGEST.name) else {
        return "there is no Digest".to_owned();
    };
    let names = value.as_bytes().split(|byte| *byte == b',').map(|listed| {
        let name = listed
            .split(|byte| *byte == b'=')
            .next()
            .unwrap_or_default();
        String::from_utf8_lossy(headers::trim(name)).into_owned()
    });
    let names: Vec<_> = names.collect();
    format!("{} of {length} bytes", tame(&names.join(" and ")))
}
