//! The operator's catalogue file (HTTP-11): paths that differ from the defaults, and operations that the interface does not have.
//!
//! An entry with the name of a built-in operation moves it; any other name adds one. Invariant: an added operation has what HDR-5 and
//! SIG-1 give every operation, and there is no key that takes it away. Deliberately not here: what a path may look like and which
//! operations exclude each other; [`Catalogue::new`] says that, and this file finds the line.

use std::collections::HashSet;

use http::Method;
use jiff::civil::Date;

use super::document::Document;
use super::fault::{Inspection, Place};
use super::section::Section;
use super::value::Value;
use crate::interface::operations::{
    self, About, AnsweredBy, Body, Catalogue, Deprecated, Environment, Environments, Operation,
    Parameter, ParameterKind, Quota, Role, Sca, Schema, Transactions,
};
use crate::interface::query;

/// The methods of the interface (§Link and links map).
const METHODS: [(&str, Method); 4] = [
    ("GET", Method::GET),
    ("POST", Method::POST),
    ("PUT", Method::PUT),
    ("DELETE", Method::DELETE),
];

/// The group of an added operation that names none.
const GROUP_OF_ADDED: &str = "other";

/// The longest name, in bytes: it is a metric label and a header's value on every request.
const MAX_NAME: usize = 64;

/// Where the sandbox's own operations stand, and no others (HTTP-1).
const SANDBOX_PATHS: &str = "/v1/sandbox";

/// An operation as the file has it, and where a fault of its path is to be shown.
struct Entry {
    operation: Operation,
    place: Place,
    origin: Origin,
}

/// Ordered so that, of two operations which exclude each other, the catalogue names the one whose path was written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    BuiltIn,
    Moved,
    Added,
}

/// Reads a catalogue file: `file` is its name in faults, `text` its content. Faults go to `inspection`; there is no catalogue then.
pub(super) fn read(
    file: &str,
    text: &str,
    environment: Environment,
    inspection: &Inspection,
) -> Option<Catalogue> {
    let document = Document::read(file, text)
        .map_err(|faults| inspection.absorb(faults))
        .ok()?;
    let mut root = document.root(inspection);
    let values = root.list("operations");
    root.finish();
    let mut untouched = operations::builtin();
    let mut entries = entries(&values?, &mut untouched);
    entries.sort_by_key(|entry| entry.origin);
    for entry in &entries {
        judge_environment(entry, inspection);
    }
    let places: Vec<_> = entries.iter().map(|entry| entry.place.clone()).collect();
    let first = untouched.len();
    untouched.extend(entries.into_iter().map(|entry| entry.operation));
    Catalogue::new(environment, untouched)
        .map_err(|faults| {
            for fault in faults {
                let place = fault
                    .index
                    .checked_sub(first)
                    .and_then(|index| places.get(index));
                inspection.report(
                    place.cloned().unwrap_or_else(|| Place::start_of(file)),
                    fault.text,
                );
            }
        })
        .ok()
}

/// HTTP-1: what stands among the sandbox's paths does not exist in production.
fn judge_environment(entry: &Entry, inspection: &Inspection) {
    let operation = &entry.operation;
    let below = operation.path.strip_prefix(SANDBOX_PATHS);
    if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && operation.environments == Environments::Both
    {
        inspection.report(
            entry.place.clone(),
            format!(
                "{} exists in production too, and paths below {SANDBOX_PATHS} do not (HTTP-1)",
                operation.name
            ),
        );
    }
}

/// The entries of the file that can be read; the built-in operations that they change leave `untouched`.
fn entries(values: &[Value<'_>], untouched: &mut Vec<Operation>) -> Vec<Entry> {
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for value in values {
        let mut section = value.as_section();
        let name = section.required("name");
        let word = name.as_ref().and_then(word);
        if let (Some(name), Some(word)) = (&name, word)
            && !names.insert(word)
        {
            name.fault("an operation of this name stands in this file already");
            continue;
        }
        let built_in = untouched
            .iter()
            .position(|operation| Some(operation.name.as_str()) == word);
        let entry = match built_in {
            Some(at) => Some(moved(&mut section, untouched.remove(at))),
            None => added(&mut section, word),
        };
        section.finish();
        entries.extend(entry);
    }
    entries
}

/// A built-in operation, with what a deployment may change of it.
fn moved(section: &mut Section<'_>, operation: Operation) -> Entry {
    let place = section.place_of("name");
    let path = section.optional("path");
    let template = path.as_ref().and_then(Value::as_str);
    let group = section.optional("group").and_then(|value| word(&value));
    let answered_by = section
        .optional("answered_by")
        .and_then(|value| value.one_of(AnsweredBy::NAMES));
    let deprecated = deprecated(section, operation.deprecated.as_ref());
    for key in [
        "method",
        "role",
        "sca",
        "query",
        "body",
        "schema",
        "quota",
        "transactions",
        "environments",
        "about",
    ] {
        if section.has(key) {
            section.fault(
                key,
                format!(
                    "{} is an operation of the interface: only its path, group, answered_by and deprecated can be changed",
                    operation.name
                ),
            );
        }
    }
    refuse_switches(section);
    Entry {
        origin: if template.is_some() {
            Origin::Moved
        } else {
            Origin::BuiltIn
        },
        place: path.map_or(place, |path| path.place().clone()),
        operation: Operation {
            path: template.map_or(operation.path, str::to_owned),
            group: group.map_or(operation.group, str::to_owned),
            answered_by: answered_by.unwrap_or(operation.answered_by),
            deprecated,
            ..operation
        },
    }
}

/// An operation of the operator's own.
fn added(section: &mut Section<'_>, name: Option<&str>) -> Option<Entry> {
    let method = section
        .required("method")
        .and_then(|value| value.one_of(&METHODS));
    let path = section.required("path");
    let template = path.as_ref().and_then(Value::as_str);
    let role = section
        .required("role")
        .and_then(|value| value.one_of(Role::NAMES));
    let group = section.optional("group").and_then(|value| word(&value));
    let sca = choice(section, "sca", Sca::NAMES);
    let query = parameters(section);
    let body = choice(section, "body", Body::NAMES);
    let schema = choice(section, "schema", Schema::NAMES);
    if schema.is_some() && body.is_some_and(|body| body != Body::Json) {
        section.fault("schema", "only a body of JSON is judged by a schema");
    }
    let about = about(section, method.as_ref(), schema);
    if about == About::Initiation && sca == Some(Sca::None) {
        section.fault(
            "sca",
            "who initiates a payment must be known: identified (SCA-8)",
        );
    }
    let quota = choice(section, "quota", Quota::NAMES);
    let transactions = choice(section, "transactions", Transactions::NAMES);
    let answered_by = choice(section, "answered_by", AnsweredBy::NAMES);
    let environments = choice(section, "environments", Environments::NAMES);
    let deprecated = deprecated(section, None);
    refuse_switches(section);
    let group = group.unwrap_or(GROUP_OF_ADDED);
    let plain = Operation::added(name?, method?, template?, group, role?);
    let plain = if about == About::Initiation {
        plain.initiating()
    } else {
        plain
    };
    Some(Entry {
        place: path?.place().clone(),
        origin: Origin::Added,
        operation: Operation {
            sca: sca.unwrap_or(plain.sca),
            query,
            body: body.unwrap_or(if schema.is_some() {
                Body::Json
            } else {
                plain.body
            }),
            schema: schema.unwrap_or(plain.schema),
            quota: quota.unwrap_or(plain.quota),
            transactions: transactions.unwrap_or(plain.transactions),
            about,
            answered_by: answered_by.unwrap_or(plain.answered_by),
            environments: environments.unwrap_or(plain.environments),
            deprecated,
            ..plain
        },
    })
}

/// What an added operation is about. A POST whose body is a payment initiates one, of whatever product, and so has what HDR-5
/// requires of that.
fn about(section: &mut Section<'_>, method: Option<&Method>, schema: Option<Schema>) -> About {
    let written = choice(section, "about", About::NAMES);
    let pays = matches!(schema, Some(Schema::Payment | Schema::CrossBorderPayment));
    if pays && method == Some(&Method::POST) {
        if written.is_some_and(|about| about != About::Initiation) {
            let text = "a POST whose body is a payment initiates one: payment-initiation (HDR-5)";
            section.fault("about", text);
        }
        return About::Initiation;
    }
    written.unwrap_or(match schema {
        Some(Schema::Basket) => About::Basket,
        Some(Schema::Payment | Schema::CrossBorderPayment) => About::Payment,
        Some(Schema::Any) | None => About::Other,
    })
}

/// FWD-5: what the file says of an operation that is about to go, over what is known of it already.
fn deprecated(section: &mut Section<'_>, known: Option<&Deprecated>) -> Option<Deprecated> {
    let Some(mut section) = section.optional_section("deprecated") else {
        return known.cloned();
    };
    let [since, sunset] = ["since", "sunset"].map(|key| {
        let value = section.optional(key)?;
        value.parse::<Date>("a day such as 2027-01-31")
    });
    let successor = section.optional("successor");
    let successor = successor.and_then(|value| word(&value).map(str::to_owned));
    let since = since.or(known.map(|known| known.since));
    if since.is_none() && !section.has("since") {
        section.fault("since", "missing key: the day since when it is deprecated");
    }
    if since
        .zip(sunset)
        .is_some_and(|(since, sunset)| sunset < since)
    {
        section.fault("sunset", "it ends before it is deprecated");
    }
    section.finish();
    let since = since?;
    // A day that is known already cannot be before one that is written.
    let known_sunset = known.and_then(|known| known.sunset);
    let known_sunset = known_sunset.map(|sunset| sunset.max(since));
    Some(Deprecated {
        since,
        sunset: sunset.or(known_sunset),
        successor: successor.or(known.and_then(|known| known.successor.clone())),
    })
}

/// The query parameters of an added operation (QRY-4).
fn parameters(section: &mut Section<'_>) -> Vec<Parameter> {
    let mut all: Vec<Parameter> = Vec::new();
    for value in section.optional_list("query").unwrap_or_default() {
        let mut entry = value.as_section();
        let name = entry
            .required("name")
            .and_then(|name| parameter_name(&name));
        let kind = entry.required("kind");
        let kind = kind.and_then(|kind| kind.one_of(ParameterKind::NAMES));
        let required = entry.optional("required");
        let required = required.and_then(|value| value.boolean()) == Some(true);
        if let Some((name, kind)) = name.zip(kind) {
            if all
                .iter()
                .any(|known| known.name.eq_ignore_ascii_case(name))
            {
                entry.fault(
                    "name",
                    "a parameter of this name stands here already, perhaps in another letter case",
                );
            } else if kind.is_single() && all.iter().any(|known| known.kind == kind) {
                entry.fault(
                    "kind",
                    format!("another parameter is this operation's {}", kind.name()),
                );
            } else {
                let parameter = Parameter::new(name, kind);
                all.push(Parameter {
                    required,
                    ..parameter
                });
            }
        }
        entry.finish();
    }
    all
}

fn parameter_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if query::is_parameter_name(text) {
        return Some(text);
    }
    value.refuse(
        "a name of at most 64 letters, digits, hyphens, underscores and dots, such as dateFrom",
    )
}

fn choice<T: Clone>(
    section: &mut Section<'_>,
    key: &'static str,
    names: &[(&str, T)],
) -> Option<T> {
    section.optional(key).and_then(|value| value.one_of(names))
}

/// Keys by which one could hope to switch off what every operation has (HTTP-11).
fn refuse_switches(section: &mut Section<'_>) {
    for key in ["required", "signed", "takes"] {
        if section.has(key) {
            section.fault(
                key,
                "unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
            );
        }
    }
}

/// A name or a group: it becomes a metric label and a header's value.
fn word<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    let is_word = text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_word {
        return Some(text);
    }
    value.refuse("a name of at most 64 lower-case letters, digits and hyphens, such as card-list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::operations::{Lookup, Takes};
    use crate::interface::path::Target;

    fn load(environment: Environment, text: &str) -> Result<Catalogue, String> {
        let inspection = Inspection::new();
        let catalogue = read("o.yaml", text, environment, &inspection);
        inspection
            .conclude("o.yaml", catalogue)
            .map_err(|faults| faults.to_string())
    }

    fn find(catalogue: &Catalogue, method: &str, path: &str) -> Option<Operation> {
        let target = Target::parse(path.as_bytes()).unwrap();
        match catalogue.find(&method.parse().unwrap(), &target) {
            Lookup::Found(operation) => Some(Operation::clone(operation)),
            _ => None,
        }
    }

    //= FWD-5 accepted
    #[test]
    fn what_is_to_go() {
        let text = "operations:
- {name: consent-create, deprecated: {sunset: 2030-01-01}}
- {name: card-list, method: GET, path: /v1/cards, role: PSP_AI, deprecated: {since: 2027-01-31}}
";
        let catalogue = load(Environment::Production, text).unwrap();
        let deprecated = find(&catalogue, "POST", "/v1/consents").unwrap().deprecated;
        let known = Deprecated {
            since: Date::constant(2024, 2, 5),
            sunset: Some(Date::constant(2030, 1, 1)),
            successor: Some("bank-offered-consent-create".into()),
        };
        assert_eq!(deprecated, Some(known));
        let later = "operations: [{name: consent-create, deprecated: {since: 2030-01-01}}]";
        let moved = load(Environment::Production, later).unwrap();
        let deprecated = find(&moved, "POST", "/v1/consents").unwrap().deprecated;
        let sunset = deprecated.and_then(|deprecated| deprecated.sunset);
        assert_eq!(sunset, Some(Date::constant(2030, 1, 1)));
        let deprecated = find(&catalogue, "GET", "/v1/cards").unwrap().deprecated;
        assert_eq!(deprecated.unwrap().successor, None);
        for (written, fault) in [
            ("since: 2027-13-01", "a day such as 2027-01-31"),
            ("sunset: 2027-01-31", "missing key: the day since when"),
            ("since: 2027-01-31, sunset: 2027-01-30", "it ends before"),
            (
                "since: 2027-01-31, successor: nowhere",
                "the successor of card-list is nowhere",
            ),
            (
                "since: 2027-01-31, successor: payment-read",
                "has no parameter",
            ),
            ("since: 2027-01-31, until: 2027-01-30", "unknown key"),
        ] {
            let text = format!(
                "operations:\n- {{name: card-list, method: GET, path: /v1/cards, role: PSP_AI, deprecated: {{{written}}}}}\n"
            );
            let faults = load(Environment::Sandbox, &text).unwrap_err();
            assert!(faults.contains(fault), "{written}: {faults}");
        }
    }

    #[test]
    fn nothing_written_is_the_interface() {
        for text in ["operations: []\n", "operations:\n# - name: x\n"] {
            let catalogue = load(Environment::Sandbox, text).unwrap();
            assert_eq!(catalogue.operations().len(), operations::builtin().len());
        }
    }

    /// HTTP-11, HDR-5, SIG-1.
    #[test]
    fn operations_are_moved_and_added() {
        let text = "
operations:
  - {name: card-list, method: GET, path: /v1/cards, role: PSP_AI}
  - {name: agreement-list, path: /v1/corporate/agreements, group: corporate, answered_by: gateway}
  - name: card-block
    method: PUT
    path: /v1/cards/{id}/block
    role: either
    group: cards
    sca: consent
    query: [{name: validFrom, kind: date-from}, {name: kind, kind: text, required: true}]
    body: json
    schema: payment
    quota: four-in-a-day
    answered_by: gateway
    environments: sandbox
  # The old place of a moved operation is free for another.
  - {name: agreement-summary, method: GET, path: /v1/agreements, role: either}
";
        let sandbox = load(Environment::Sandbox, text).unwrap();
        let cards = find(&sandbox, "GET", "/v1/cards").unwrap();
        let plain = Operation::added(
            "card-list",
            Method::GET,
            "/v1/cards",
            "other",
            Role::AccountInformation,
        );
        assert_eq!(format!("{cards:?}"), format!("{plain:?}"));
        assert_eq!(cards.required.len(), 2);
        let block = find(&sandbox, "PUT", "/v1/cards/7/block").unwrap();
        assert_eq!(
            (block.sca, block.body, block.schema, block.quota),
            (Sca::Consent, Body::Json, Schema::Payment, Quota::FourInADay)
        );
        assert_eq!(
            block.query,
            [
                Parameter::new("validFrom", ParameterKind::DateFrom),
                Parameter::new("kind", ParameterKind::Text).required()
            ]
        );
        assert_eq!(
            (block.group.as_str(), block.takes, block.required.len()),
            ("cards", Takes::Whole, 2)
        );
        let agreements = find(&sandbox, "GET", "/v1/corporate/agreements").unwrap();
        assert_eq!(
            (agreements.name.as_str(), agreements.group.as_str()),
            ("agreement-list", "corporate")
        );
        assert_eq!(
            (agreements.answered_by, agreements.sca),
            (AnsweredBy::Gateway, Sca::Identified)
        );
        assert_eq!(
            find(&sandbox, "GET", "/v1/agreements").unwrap().name,
            "agreement-summary"
        );
        let production = load(Environment::Production, text).unwrap();
        assert!(find(&production, "PUT", "/v1/cards/7/block").is_none());
        assert!(find(&production, "GET", "/v1/cards").is_some());
    }

    /// HDR-5, SCA-8: whatever its group, a payment's initiation is one.
    #[test]
    fn what_an_added_operation_is_about() {
        let load = |method: &str, keys: &str| {
            let text = format!(
                "operations: [{{name: x, method: {method}, path: /v1/payments/x, role: PSP_PI{keys}}}]"
            );
            let catalogue = load(Environment::Production, &text)?;
            Ok::<_, String>(find(&catalogue, method, "/v1/payments/x").unwrap())
        };
        for (method, keys, about) in [
            ("POST", "", About::Other),
            ("POST", ", schema: payment", About::Initiation),
            ("POST", ", schema: cross-border-payment", About::Initiation),
            (
                "POST",
                ", body: json, about: payment-initiation",
                About::Initiation,
            ),
            ("PUT", ", schema: payment", About::Payment),
            ("POST", ", schema: basket", About::Basket),
            ("POST", ", about: payment", About::Payment),
        ] {
            let operation = load(method, keys).unwrap();
            assert_eq!(operation.about, about, "{method}{keys}");
            let initiates = about == About::Initiation;
            assert_eq!(operation.required.len(), if initiates { 4 } else { 2 });
            assert_eq!(operation.sca == Sca::Identified, initiates);
        }
        for (keys, fault) in [
            (
                ", schema: payment, about: other",
                "about: a POST whose body",
            ),
            (
                ", schema: payment, sca: none",
                "sca: who initiates a payment",
            ),
        ] {
            let faults = load("POST", keys).unwrap_err();
            assert!(faults.contains(fault), "{faults}");
        }
    }

    #[test]
    fn every_wrong_entry_is_reported_at_its_line() {
        let text = "\
operations:
  - {name: Card List, method: get, path: /v1/cards, role: AISP}
  - {name: card-read, path: '/v1/cards/{id}'}
  - {name: a, method: GET, path: /v1/a, role: either, signed: false, required: [], quotas: none}
  - {name: account-list, method: POST, path: /v1/my-accounts}
  - {name: account-list, path: /v1/other}
  - {name: taken, method: GET, path: /v1/users, role: either}
  - {name: b, method: GET, path: /v1/b/, role: either}
  - {name: agreement-list, path: '/v1/agreements/{'}
  - {name: c, method: GET, path: /v1/sandbox/c, role: either}
  - {name: d, method: TRACE, path: [], role: either, sca: maybe}
  - card
  - {name: e, method: GET, path: /v1/e, role: either, query: [{name: a b, kind: date}, {name: x, kind: offset}, {name: X, kind: text}, {name: y, kind: offset}, {kind: int, required: maybe}]}
  - {name: f, method: PUT, path: /v1/f, role: either, body: none, schema: basket}
oprations: []
";
        let faults = load(Environment::Production, text).unwrap_err();
        let expected = [
            "o.yaml:2:12: operations[0].name: found \"Card List\"; expected a name of at most 64 lower-case letters, digits and hyphens, such as card-list",
            "o.yaml:2:31: operations[0].method: found \"get\"; expected one of \"GET\", \"POST\", \"PUT\", \"DELETE\"; did you mean \"GET\"?",
            "o.yaml:2:59: operations[0].role: found \"AISP\"; expected one of \"PSP_AI\", \"PSP_PI\", \"either\"",
            "o.yaml:3:5: operations[1].method: missing key",
            "o.yaml:3:5: operations[1].role: missing key",
            "o.yaml:4:55: operations[2].signed: unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
            "o.yaml:4:70: operations[2].required: unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
            "o.yaml:4:84: operations[2].quotas: unknown key; did you mean \"quota\"?",
            "o.yaml:5:26: operations[3].method: account-list is an operation of the interface: only its path, group, answered_by and deprecated can be changed",
            "o.yaml:6:12: operations[4].name: an operation of this name stands in this file already",
            "o.yaml:7:38: operations[5].path: GET /v1/users stands in the catalogue already",
            "o.yaml:8:34: operations[6].path: the path /v1/b/ is not one that a request could have: the path has an empty segment: a doubled or trailing slash",
            "o.yaml:9:34: operations[7].path: the path /v1/agreements/{ is not one that a request could have: a parameter is a whole segment, as in /v1/accounts/{id}",
            "o.yaml:10:34: operations[8].path: c exists in production too, and paths below /v1/sandbox do not (HTTP-1)",
            "o.yaml:11:23: operations[9].method: found \"TRACE\"; expected one of \"GET\", \"POST\", \"PUT\", \"DELETE\"",
            "o.yaml:11:36: operations[9].path: found a list; expected text",
            "o.yaml:11:59: operations[9].sca: found \"maybe\"; expected one of \"none\", \"identified\", \"consent\"",
            "o.yaml:12:5: operations[10]: found \"card\"; expected a mapping of keys",
            "o.yaml:13:70: operations[11].query[0].name: found \"a b\"; expected a name of at most 64 letters, digits, hyphens, underscores and dots, such as dateFrom",
            "o.yaml:13:114: operations[11].query[2].name: a parameter of this name stands here already, perhaps in another letter case",
            "o.yaml:13:146: operations[11].query[3].kind: another parameter is this operation's offset",
            "o.yaml:13:161: operations[11].query[4].name: missing key",
            "o.yaml:13:168: operations[11].query[4].kind: found \"int\"; expected one of \"date\", \"date-from\", \"date-to\", \"offset\", \"limit\", \"boolean\", \"booking-status\", \"text\"",
            "o.yaml:13:183: operations[11].query[4].required: found \"maybe\"; expected true or false",
            "o.yaml:14:67: operations[12].schema: only a body of JSON is judged by a schema",
            "o.yaml:15:1: oprations: unknown key; did you mean \"operations\"?",
        ];
        assert_eq!(faults.lines().collect::<Vec<_>>(), expected);
    }

    /// The fault stands at what was written, wherever it is in the file: a built-in operation that only changes its group is no culprit.
    #[test]
    fn the_culprit_of_a_collision_is_the_path_that_was_written() {
        let text = "operations:\n- {name: x, method: GET, path: /v1/users, role: either}\n- {name: user-register, group: other}\n";
        assert!(
            load(Environment::Sandbox, text)
                .unwrap_err()
                .starts_with("o.yaml:2:32: operations[0].path: ")
        );
        let text = "operations:\n- {name: agreement-list, path: /v1/users}\n";
        assert!(
            load(Environment::Sandbox, text)
                .unwrap_err()
                .starts_with("o.yaml:2:32: operations[0].path: ")
        );
    }
}
