//! An operation that the operator adds.

use http::Method;

use super::entry::{EntryOrigin, OperationEntry};
use super::keys::{choice, name_or_group, read_answer, read_deprecated, refuse_fixed_keys, report};
use super::parameters::read_parameters;
use crate::config::section::Section;
use crate::config::value::Value;
use crate::interface::operations::{
    About, AnsweredBy, Body, Environments, Operation, PathId, Quota, Role, Sca, Schema,
    Transactions,
};

/// The methods of the interface (§Link and links map).
const METHODS: [(&str, Method); 4] = [
    ("GET", Method::GET),
    ("POST", Method::POST),
    ("PUT", Method::PUT),
    ("DELETE", Method::DELETE),
];

/// The default group of an added operation, unless its subject has one.
const GROUP_OF_ADDED: &str = "other";

/// Reads an entry that is not named after a built-in operation.
pub(super) fn read_added(section: &mut Section<'_>, name: Option<&str>) -> Option<OperationEntry> {
    let method = section
        .required("method")
        .and_then(|value| value.one_of(&METHODS));
    let path = section.required("path");
    let template = path.as_ref().and_then(Value::as_str);
    let written_role = section.required("role");
    let role = written_role
        .as_ref()
        .and_then(|value| value.one_of(Role::NAMES));
    let group = section
        .optional("group")
        .and_then(|value| name_or_group(&value));
    let sca = choice(section, "sca", Sca::NAMES);
    let query = read_parameters(section);
    let body = choice(section, "body", Body::NAMES);
    let schema = choice(section, "schema", Schema::NAMES);
    if schema.is_some() && body.is_some_and(|body| body != Body::Json) {
        section.fault("schema", "a schema requires a body of JSON");
    }
    let ids = template.map(PathId::all_in).unwrap_or_default();
    let about = about(section, method.as_ref(), schema, &ids);
    if about == About::Initiation && sca == Some(Sca::None) {
        section.fault(
            "sca",
            "the PSU that initiates a payment must be known: identified (SCA-8)",
        );
    }
    let quota = choice(section, "quota", Quota::NAMES);
    let transactions = choice(section, "transactions", Transactions::NAMES);
    let answered_by = choice(section, "answered_by", AnsweredBy::NAMES);
    let environments = choice(section, "environments", Environments::NAMES);
    let deprecated = read_deprecated(section, None);
    let answer = read_answer(section);
    refuse_fixed_keys(section);
    if answered_by != Some(AnsweredBy::Gateway) && about != About::Initiation {
        require_sca(section, &ids);
    }
    let group = group.unwrap_or(group_of(about, &ids));
    let template = template?;
    let plain = Operation::added(name?, method?, template, group, role?).about(about);
    let of_payment = about != About::Other
        || !matches!(schema, Some(Schema::Any) | None)
        || plain.takes_product();
    if of_payment && plain.role != Role::PaymentInitiation {
        written_role?.fault("an operation about payments or baskets requires PSP_PI (CRT-5)");
        return None;
    }
    let operation = Operation {
        sca: sca.unwrap_or(plain.sca),
        query,
        body: body.unwrap_or(schema.map_or(plain.body, |_| Body::Json)),
        schema: schema.unwrap_or(plain.schema),
        quota: quota.unwrap_or(plain.quota),
        transactions: transactions.unwrap_or(plain.transactions),
        answered_by: answered_by.unwrap_or(plain.answered_by),
        environments: environments.unwrap_or(plain.environments),
        deprecated,
        answer,
        ..plain
    };
    let place = path?.place().clone();
    if report(section, operation.uncarried()) {
        return None;
    }
    Some(OperationEntry {
        place,
        origin: EntryOrigin::Added,
        operation,
    })
}

/// What an operation about an account needs of the PSU is written: nothing is no default for it (SCA-8).
fn require_sca(section: &mut Section<'_>, ids: &[PathId]) {
    let is_of_account = |id: &PathId| matches!(id, PathId::Account | PathId::AccountLike);
    if !section.has("sca") && ids.iter().any(is_of_account) {
        let text = "missing key: the path names an account; write consent, or none if its data needs no consent of the PSU (SCA-8)";
        section.fault("sca", text);
    }
}

/// The group of an added operation that writes none: the interface's group of its subject, so that what is said of that group holds for it.
fn group_of(about: About, ids: &[PathId]) -> &'static str {
    match about {
        About::Payment | About::Initiation => "payments",
        About::Basket => "signing-baskets",
        About::Other if ids.contains(&PathId::Account) => "accounts",
        About::Other => GROUP_OF_ADDED,
    }
}

/// The subject of an added operation: what its path and its schema say, unless the file does. A POST with a payment in its body initiates a payment, for every product, and so requires
/// the headers of an initiation (HDR-5).
fn about(
    section: &mut Section<'_>,
    method: Option<&Method>,
    schema: Option<Schema>,
    ids: &[PathId],
) -> About {
    let written = choice(section, "about", About::NAMES);
    let pays = matches!(schema, Some(Schema::Payment | Schema::CrossBorderPayment));
    if pays && method == Some(&Method::POST) {
        if written.is_some_and(|about| about != About::Initiation) {
            let text = "a POST whose body is a payment initiates one: payment-initiation (HDR-5)";
            section.fault("about", text);
        }
        return About::Initiation;
    }
    let of_payment = ids.contains(&PathId::Payment);
    let makes = ids.contains(&PathId::Product) && !of_payment && method == Some(&Method::POST);
    if makes && written.is_none() && schema.is_none() {
        let text = "missing key: a POST at a path with {payment-product} may initiate payments; write payment-initiation, or what else it is (HDR-5)";
        section.fault("about", text);
    }
    written.unwrap_or(match schema {
        Some(Schema::Any) | None if of_payment => About::Payment,
        Some(Schema::Any) | None if ids.contains(&PathId::Basket) => About::Basket,
        Some(Schema::Basket) => About::Basket,
        Some(Schema::Payment | Schema::CrossBorderPayment) => About::Payment,
        Some(Schema::Any) | None => About::Other,
    })
}
