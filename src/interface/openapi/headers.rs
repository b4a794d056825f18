//! Request headers (HDR-1 to HDR-16): the form of each, and which an operation requires.
//!
//! The description omits the headers that OpenAPI describes itself (Accept, Content-Type), and the headers of HTTP for host and body, which
//! every client sets: those have no [`form`]. A test compares this list, so that a new header gets a form.

use super::components::{Components, Setting};
use crate::{
    headers::{self, Header, TABLE, X_PSU_IDENTITY, accept_fix, identifier, redirect_uri},
    operations::{Body, Environment, Operation, Required, Takes},
};
use serde_json::{Map, Value, json};

/// HDR-9.
const UUID: &str = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$";

/// HDR-11, latitude and longitude.
const LOCATION: &str = r"^GEO:-?(0?[0-8]?[0-9](\.[0-9]+)?|0?90(\.0+)?)[,;]-?((1[0-7]|0?[0-9])?[0-9](\.[0-9]+)?|180(\.0+)?)$";

/// DAT-1.
const IMF_FIXDATE: &str = "^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-3][0-9] (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-2][0-9]:[0-5][0-9]:[0-6][0-9] GMT$";

/// References to the headers of an operation, in the order of the table.
pub(super) fn parameters(operation: &Operation, components: &mut Components<'_>) -> Vec<Value> {
    let taken = TABLE
        .iter()
        .filter(|header| is_described(operation, header));
    taken
        .filter_map(|header| {
            let required = is_required(operation, header);
            let described = describe(header, required, components.setting)?;
            let suffix = if required { ".required" } else { "" };
            let key = format!("{}{suffix}", header.written);
            let reference = json!({ "$ref": format!("#/components/parameters/{key}") });
            components.parameters.entry(key).or_insert(described);
            Some(reference)
        })
        .collect()
}

/// The headers that sign a request. They are described as security schemes, since a client signs each request in one place and its
/// functions should not ask for them.
const SIGNING: [&Header; 4] = [
    &headers::DATE,
    &headers::DIGEST,
    &headers::TPP_SIGNATURE_CERTIFICATE,
    &headers::SIGNATURE,
];

/// The security requirement of an operation: every header that signs it. A body needs a Digest.
pub(super) fn security(operation: &Operation, components: &mut Components<'_>) -> Value {
    let needed = SIGNING
        .into_iter()
        .filter(|header| header.name != headers::DIGEST.name || operation.body == Body::Json);
    let all = needed.map(|header| {
        let text = form(header, components.setting).map(|(_, text)| text);
        let scheme = json!({ "type": "apiKey", "in": "header", "name": header.written, "description": text });
        components.security.entry(header.written).or_insert(scheme);
        (header.written.to_owned(), json!([]))
    });
    json!([all.collect::<Map<_, _>>()])
}

fn is_signing(header: &Header) -> bool {
    SIGNING.iter().any(|known| known.name == header.name)
}

/// Whether an operation requires a header. A header that may replace another one is not required.
pub(super) fn is_required(operation: &Operation, header: &Header) -> bool {
    let mut required = operation.required.iter();
    !is_signing(header)
        && required
            .any(|required| matches!(required, Required::One(one) if one.name == header.name))
}

fn is_described(operation: &Operation, header: &Header) -> bool {
    let is_taken = operation.takes == Takes::Whole || header.on_sandbox;
    // HDR-12: elsewhere it is refused.
    let is_refused = header.name == X_PSU_IDENTITY.name && !operation.initiates;
    is_taken && !is_refused && !is_signing(header)
}

fn describe(header: &Header, required: bool, setting: &Setting<'_>) -> Option<Value> {
    let (schema, text) = form(header, setting)?;
    Some(json!({
        "name": header.written,
        "in": "header",
        "required": required,
        "description": text,
        "schema": schema,
    }))
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// The form and the purpose of a header's value; `None` if the description omits the header. A header without rules of its own may have any
/// value except an empty one; in content negotiation an empty value has a meaning (HDR-5).
pub(super) fn form(header: &Header, setting: &Setting<'_>) -> Option<(Value, &'static str)> {
    Some(match header.written {
        "x-accept-fix" => (
            fixes(),
            "Breaking changes that are wanted early; see the versioning table of the interface.",
        ),
        "X-Request-ID" => (
            identifier(),
            "Identifies the call: chosen by the TPP, and never used again.",
        ),
        "TPP-Session-ID" => (
            identifier(),
            "The TPP's session: an SCA holds for an hour within one.",
        ),
        "TPP-Redirect-URI" => (
            redirect(setting.environment),
            "Where the PSU's browser goes after SCA: without user, fragment, or a query parameter of the redirect's own. Needed wherever SCA is.",
        ),
        "TPP-Redirect-Preferred" => (
            words(&["true", "false"]),
            "false prefers biometric authentication in the bank's app.",
        ),
        "Date" => (
            text(IMF_FIXDATE),
            "The date of the request, at most 60 seconds off; signed.",
        ),
        "Digest" => (
            text("(^|,)[ \\t]*[Ss][Hh][Aa]-(256|512)="),
            "SHA-256= or SHA-512= and the base64 of the body's hash; signed. Required with a body.",
        ),
        "TPP-Signature-Certificate" => (
            filled(),
            "Base64 of the certificate that the request is signed with.",
        ),
        "Signature" => (
            text("keyId=\"|^=\\?"),
            "keyId, algorithm, headers and signature, as the introduction says.",
        ),
        "X-PSU-IDENTITY" => (
            identity(setting),
            "The PSU's national identity number: may stand for PSU-ID where a payment is initiated, with PSU-Context.",
        ),
        "TPP-Brand-Logging-Information" => (
            filled(),
            "The brand that the TPP shows to the PSU, for logging.",
        ),
        "traceparent" => (
            filled(),
            "Trace context (W3C). The core gets the gateway's own.",
        ),
        "Accept-Charset" | "Accept-Encoding" | "Accept-Language" => {
            (json!({ "type": "string" }), "Content negotiation.")
        }
        written => return psu_form(written),
    })
}

/// The form and the purpose of a header whose name begins with PSU.
fn psu_form(written: &str) -> Option<(Value, &'static str)> {
    Some(match written {
        "PSU-ID" => (
            uuid(),
            "The PSU, as the redirect after SCA named them; signed.",
        ),
        "PSU-Corporate-ID" => (
            uuid(),
            "The corporate agreement; signed. Required with a PSU-ID where PSU-Context is CORPORATE, excluded where it is PRIVATE.",
        ),
        "PSU-Context" => (
            words(&["PRIVATE", "CORPORATE"]),
            "The context that the PSU acts in. Required with X-PSU-IDENTITY without PSU-ID, and PRIVATE there.",
        ),
        "PSU-IP-Address" => (
            address(),
            "The address of the PSU's request to the TPP. Without it the PSU is not present, and calls are limited.",
        ),
        "PSU-IP-Port" => (
            json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
            "The port of the PSU's request to the TPP.",
        ),
        "PSU-HTTP-Method" => (
            words(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "The method of the PSU's request to the TPP.",
        ),
        "PSU-Device-ID" => (uuid(), "The PSU's device."),
        "PSU-Geo-Location" => (
            text(LOCATION),
            "Where the PSU is: GEO:<latitude>,<longitude> in decimal degrees.",
        ),
        "PSU-User-Agent"
        | "PSU-Accept"
        | "PSU-Accept-Charset"
        | "PSU-Accept-Encoding"
        | "PSU-Accept-Language" => (filled(), "As in the PSU's request to the TPP."),
        _ => return None,
    })
}

fn filled() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn uuid() -> Value {
    // Without `format`: generated clients would make an object of it that is no header.
    text(UUID)
}

/// HDR-7.
fn identifier() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": identifier::MAX_LENGTH, "pattern": "^[!-~]+$" })
}

/// HDR-16.
fn fixes() -> Value {
    let names: Vec<_> = accept_fix::TABLE.iter().map(|fix| fix.name).collect();
    let one = format!("({})", names.join("|"));
    json!({ "type": "string", "pattern": format!("^{one}([ \\t]*,[ \\t]*{one})*$") })
}

/// HDR-8, as far as a pattern can express it.
fn redirect(environment: Environment) -> Value {
    let https = r"[Hh][Tt][Tt][Pp][Ss]://([A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|\[[0-9A-Fa-f:.]+\])";
    let loopback = r"[Hh][Tt][Tt][Pp]://([Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|127(\.[0-9]{1,3}){3}|\[[0:]+1\])";
    let hosts = match environment {
        Environment::Production => https.to_owned(),
        Environment::Sandbox => format!("({https}|{loopback})"),
    };
    let rest = r"(:0*[0-9]{0,5})?([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%-]*)?";
    json!({
        "type": "string",
        "maxLength": redirect_uri::MAX_LENGTH,
        "pattern": format!("^{hosts}{rest}$"),
        "examples": ["https://tpp.example/back"],
    })
}

/// HDR-11, as far as one pattern can express IPv4 and IPv6: generators of clients know no alternatives in a header.
fn address() -> Value {
    text(r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9A-Fa-f:.]{2,45})$")
}

/// HDR-12.
fn identity(setting: &Setting<'_>) -> Value {
    text(&format!("^[0-9]{{{}}}$", setting.identity.digits()))
}
