//! The gateway's reading of an admitted input.

use super::{Kind, readers::Reading};
use http::Method;
use jiff::civil::date;
use portvakt::interface::{
    headers::{authority, content, redirect_uri},
    operations::{Catalogue, Environment, Lookup, Operation, Schema, builtin},
    path::{self, AccountIds, Target},
    payload,
    query::Query,
};
use std::{net::Ipv6Addr, sync::LazyLock};

/// An admitted input.
pub(super) struct Input {
    pub(super) kind: Kind,
    pub(super) raw: Vec<u8>,
    /// The values that the gateway's decisions use.
    ours: Reading,
    /// Their names, including absent ones.
    decided: Vec<&'static str>,
}

impl Input {
    /// The values that differ in another reader's result.
    pub(super) fn difference(&self, theirs: &Reading) -> Option<String> {
        let name = self
            .decided
            .iter()
            .find(|name| self.plain(self.ours.get(**name)) != self.plain(theirs.get(**name)))?;
        let [ours, theirs] = [&self.ours, theirs].map(|reading| reading.get(*name));
        Some(format!("{name} is {theirs:?}, to the gateway {ours:?}"))
    }

    /// Whether a decision of the gateway uses any value of the input.
    pub(super) fn is_decided_by(&self) -> bool {
        !self.decided.is_empty()
    }

    /// Without the differences between spellings of one host.
    fn plain(&self, texts: Option<&Vec<String>>) -> Option<Vec<String>> {
        let plain = |text: &String| {
            if self.kind != Kind::Host {
                return text.clone();
            }
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            let address = bare.parse::<Ipv6Addr>();
            address.map_or_else(|_| text.to_ascii_lowercase(), |address| address.to_string())
        };
        texts.map(|texts| texts.iter().map(plain).collect())
    }
}

/// The members that are compared: what all payments share, what cross-border payments have beside it, and baskets.
const SHARED: [&str; 11] = [
    "instructedAmount.amount",
    "instructedAmount.currency",
    "creditorName",
    "creditorAgent",
    "creditorAccount.iban",
    "creditorAccount.bban",
    "creditorAccount.currency",
    "debtorAccount.iban",
    "debtorAccount.bban",
    "debtorAccount.currency",
    "remittanceInformationUnstructured",
];
const OWN: [&str; 9] = [
    "creditorAddress.street",
    "creditorAddress.buildingNumber",
    "creditorAddress.postalCode",
    "creditorAddress.city",
    "creditorAddress.country",
    "purposeCode",
    "requestedExecutionDate",
    "regulatoryReportingCode",
    "regulatoryReportingInformation",
];
const BASKET: &str = "paymentIds";

/// Every path that is compared.
pub(super) fn paths() -> Vec<&'static str> {
    [&SHARED[..], &OWN, &[BASKET]].concat()
}

/// Parameters that are refused without the PSU (QRY-3).
const DENIED: &str = "withBalance";

/// Every name of a query that is compared.
pub(super) fn names() -> Vec<&'static str> {
    let parameters = CATALOGUE.operations().iter().flat_map(|one| &one.query);
    let mut names: Vec<_> = parameters.map(|parameter| &*parameter.name).collect();
    names.push(DENIED);
    names.sort_unstable();
    names.dedup();
    names
}

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::new(Environment::Sandbox, builtin()).unwrap());

/// The gateway's readings of an input, one for each operation that admits it with its own parameters; empty if the input is
/// refused.
pub(super) fn admit(kind: Kind, raw: &[u8]) -> Vec<Input> {
    let decided: Vec<_> = match kind {
        Kind::Body => body(raw).into_iter().collect(),
        Kind::Query => queries(raw),
        Kind::Path => path(raw).into_iter().collect(),
        Kind::Host => host(raw).into_iter().collect(),
        Kind::ContentType => content_type(raw).into_iter().collect(),
    };
    let input = |(ours, decided)| Input {
        kind,
        raw: raw.to_vec(),
        ours,
        decided,
    };
    decided.into_iter().map(input).collect()
}

type Decided = (Reading, Vec<&'static str>);

/// Uses the schema that compares the most members.
fn body(raw: &[u8]) -> Option<Decided> {
    let schemas = [
        (Schema::CrossBorderPayment, [&SHARED[..], &OWN].concat()),
        (Schema::Basket, vec![BASKET]),
        (Schema::Payment, SHARED.to_vec()),
        (Schema::Any, Vec::new()),
    ];
    let (today, ibans) = (date(2026, 1, 15), payload::Ibans::default());
    let (schema, decided) = schemas
        .into_iter()
        .find(|(schema, _)| payload::check(raw, *schema, &[], today, &ibans).is_ok())?;
    let mut ours = Reading::new();
    for (path, text) in payload::reading(raw, schema) {
        ours.entry(path.to_owned()).or_default().push(text);
    }
    Some((ours, decided))
}

/// By each operation with parameters of its own that takes it.
fn queries(raw: &[u8]) -> Vec<Decided> {
    let whole = [b"/v1?", raw].concat();
    let Ok(target) = Target::parse(&whole) else {
        return Vec::new();
    };
    let query = target.query().unwrap();
    let mut taken: Vec<Decided> = Vec::new();
    for operation in CATALOGUE.operations() {
        let decided = decided_by(query, operation).filter(|_| !operation.query.is_empty());
        if let Some(decided) = decided.filter(|(_, names)| taken.iter().all(|one| one.1 != *names))
        {
            taken.push(decided);
        }
    }
    taken
}

fn decided_by(raw: &str, operation: &Operation) -> Option<Decided> {
    let read = Query::read(Some(raw), operation, true).ok()?;
    let own = |name: &str| {
        operation
            .query
            .iter()
            .any(|parameter| parameter.name == name)
    };
    let ours = parameters(raw, own);
    let stands = |name: &str| {
        ours.get(name)
            .map(|values| values[0].clone())
            .filter(|_| own(name))
    };
    // Later stages read the raw value.
    let from = read.date_from().map(|day| day.to_string());
    assert_eq!(stands("dateFrom").or(stands("fromDate")), from, "{raw}");
    let to = read.date_to().map(|day| day.to_string());
    assert_eq!(stands("dateTo").or(stands("toDate")), to, "{raw}");
    let offset = stands("offset").map(|offset| offset.parse().unwrap());
    assert_eq!(read.offset(), offset, "{raw}");
    let mut decided: Vec<_> = names().into_iter().filter(|name| own(name)).collect();
    let without_psu = Query::read(Some(raw), operation, false);
    decided.extend(without_psu.is_ok().then_some(DENIED));
    Some((ours, decided))
}

/// The simplest reading: pieces between `&`, names decoded and compared literally.
fn parameters(raw: &str, is_known: impl Fn(&str) -> bool) -> Reading {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&spaced).decode_utf8();
        decoded.ok().map(|text| text.into_owned())
    };
    let mut ours = Reading::new();
    for piece in raw.split('&') {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        if let (Some(name), Some(value)) = (decode(name), decode(value))
            && is_known(&name)
        {
            ours.entry(name).or_default().push(value);
        }
    }
    ours
}

fn path(raw: &[u8]) -> Option<Decided> {
    let target = Target::parse(raw)
        .ok()
        .filter(|target| target.query().is_none())?;
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    let found = methods
        .iter()
        .find_map(|method| match CATALOGUE.find(method, &target) {
            Lookup::Found(operation) => Some(operation),
            _ => None,
        })?;
    let ids = found.ids(&target, &AccountIds::default()).ok()?;
    let decoded: Vec<_> = target
        .segments()
        .map(|segment| path::decode(segment).into_owned())
        .collect();
    for id in ids {
        assert!(decoded.iter().any(|segment| *segment == id));
    }
    let ours = Reading::from([("segments".to_owned(), decoded)]);
    Some((ours, vec!["segments"]))
}

/// The host of a public authority, which is judged by `listener.hosts`, as a core would build a link from it (FWD-2); or of a
/// TPP-Redirect-URI, which is judged by `redirect_hosts`.
fn host(raw: &[u8]) -> Option<Decided> {
    let bare = raw.strip_prefix(b"https://");
    let public = bare.and_then(|bare| authority::parse(bare.strip_suffix(b"/")?));
    let uri = || redirect_uri::split(raw, Environment::Sandbox).ok();
    let host = match public {
        Some(public) => public.host().to_ascii_lowercase(),
        None => uri()?.host.to_ascii_lowercase(),
    };
    let ours = Reading::from([("host".to_owned(), vec![host])]);
    Some((ours, vec!["host"]))
}

/// The media type, and the charset: none, or UTF-8 in one of two spellings.
fn content_type(raw: &[u8]) -> Option<Decided> {
    content::utf8_json(raw).ok()?;
    let text = std::str::from_utf8(raw).unwrap().to_ascii_lowercase();
    let mut ours = Reading::new();
    let media = text.split(';').next().unwrap().trim();
    ours.insert("media".to_owned(), vec![media.to_owned()]);
    if text.contains("charset") {
        ours.insert("charset".to_owned(), vec!["utf-8".to_owned()]);
    }
    Some((ours, vec!["media", "charset"]))
}
