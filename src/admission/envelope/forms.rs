//! The forms of headers (HDR-7 to HDR-12, HDR-15, HDR-16, DAT-1): each header has a file of its own in
//! `interface::headers`, and here it stands in the table.

use super::{
    super::{Head, Policy},
    is_taken,
};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason,
        headers::{
            self, Header,
            accept_fix::{self, Fixes},
            choices, date, identifier, network, redirect_uri, uuid_form,
        },
        operations::{Operation, Takes},
    },
};
use std::borrow::Cow;

/// A header and the form that its values have.
struct Form {
    header: &'static Header,
    judge: fn(&[u8], &Operation, &Policy) -> Result<(), Expected>,
}

/// What would pass, for the caller. It repeats no value.
type Expected = Cow<'static, str>;

/// In the order of the rules.
static FORMS: [Form; 13] = [
    // HDR-7
    form(&headers::X_REQUEST_ID, id),
    form(&headers::TPP_SESSION_ID, id),
    // HDR-8
    form(&headers::TPP_REDIRECT_URI, redirect),
    // HDR-9
    form(&headers::PSU_ID, uuid),
    form(&headers::PSU_CORPORATE_ID, uuid),
    form(&headers::PSU_DEVICE_ID, uuid),
    // HDR-10
    form(&headers::PSU_CONTEXT, |value, _, _| {
        fits(choices::context(value).is_some(), choices::EXPECTED_CONTEXT)
    }),
    form(&headers::TPP_REDIRECT_PREFERRED, |value, _, _| {
        let found = choices::redirect_preferred(value);
        fits(found.is_some(), choices::EXPECTED_PREFERRED)
    }),
    form(&headers::PSU_HTTP_METHOD, |value, _, _| {
        fits(choices::is_psu_method(value), choices::EXPECTED_METHOD)
    }),
    // HDR-11
    form(&headers::PSU_IP_ADDRESS, |value, _, _| {
        fits(network::address(value).is_some(), network::EXPECTED_ADDRESS)
    }),
    form(&headers::PSU_IP_PORT, |value, _, _| {
        fits(network::port(value).is_some(), network::EXPECTED_PORT)
    }),
    form(&headers::PSU_GEO_LOCATION, |value, _, _| {
        fits(network::is_location(value), network::EXPECTED_LOCATION)
    }),
    // HDR-12
    form(&headers::X_PSU_IDENTITY, identity),
];

/// HDR-7 to HDR-12. An empty value is HDR-5's, which has reported it.
pub(super) fn judge(
    head: &Head<'_>,
    operation: &Operation,
    policy: &Policy,
    faults: &mut Vec<Fault>,
) {
    for form in FORMS.iter().filter(|form| is_taken(operation, form.header)) {
        let mut values = filled(head, form.header);
        let fault = values.find_map(|value| (form.judge)(value, operation, policy).err());
        if let Some(text) = fault {
            faults.push(malformed(form.header, text));
        }
    }
}

/// HDR-15. Most requests repeat no header at all, which the map tells at once.
pub(super) fn duplicates(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    if head.fields.map().len() == head.fields.map().keys_len() {
        return;
    }
    for header in headers::TABLE
        .iter()
        .filter(|header| header.once && is_taken(operation, header))
    {
        if header.count(&head.fields) > 1 {
            faults.push(Fault::header(
                Reason::HeaderDuplicated,
                header.written,
                "it may stand once",
            ));
        }
    }
}

/// HDR-16: the fixes that the request names.
pub(super) fn fixes(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) -> Fixes {
    let header = &headers::X_ACCEPT_FIX;
    if operation.takes != Takes::Whole {
        return Fixes::default();
    }
    accept_fix::parse(filled(head, header)).unwrap_or_else(|unknown| {
        faults.push(malformed(header, unknown.to_string()));
        Fixes::default()
    })
}

/// DAT-1.
pub(super) fn date(head: &Head<'_>, faults: &mut Vec<Fault>) -> Option<Timestamp> {
    let value = headers::DATE.get_filled(&head.fields)?;
    let date = date::parse(headers::trim(value.as_bytes()));
    if date.is_none() {
        let text = "it must be an RFC 7231 IMF-fixdate, as in: Sun, 06 Nov 1994 08:49:37 GMT";
        faults.push(malformed(&headers::DATE, text));
    }
    date
}

fn filled<'a>(head: &Head<'a>, header: &Header) -> impl Iterator<Item = &'a [u8]> {
    let values = header.values(&head.fields);
    values.filter(|value| !value.is_empty())
}

const fn form(
    header: &'static Header,
    judge: fn(&[u8], &Operation, &Policy) -> Result<(), Expected>,
) -> Form {
    Form { header, judge }
}

fn fits(holds: bool, expected: &'static str) -> Result<(), Expected> {
    if holds {
        Ok(())
    } else {
        Err(Cow::Borrowed(expected))
    }
}

fn id(value: &[u8], _: &Operation, _: &Policy) -> Result<(), Expected> {
    fits(identifier::is_valid(value), identifier::EXPECTED)
}

fn uuid(value: &[u8], _: &Operation, _: &Policy) -> Result<(), Expected> {
    fits(uuid_form::parse(value).is_some(), uuid_form::EXPECTED)
}

fn redirect(value: &[u8], _: &Operation, policy: &Policy) -> Result<(), Expected> {
    match redirect_uri::parse(value, policy.environment) {
        Ok(_) => Ok(()),
        Err(fault) => Err(fault.to_string().into()),
    }
}

fn identity(value: &[u8], operation: &Operation, policy: &Policy) -> Result<(), Expected> {
    if !operation.initiates {
        return fits(
            false,
            "only the initiation of a payment takes it: leave it out",
        );
    }
    if policy.identity.fits(value) {
        Ok(())
    } else {
        Err(format!("it must be {} digits", policy.identity.digits()).into())
    }
}

fn malformed(header: &Header, text: impl Into<String>) -> Fault {
    Fault::header(Reason::HeaderMalformed, header.written, text)
}
