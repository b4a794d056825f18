//! The forms of headers (HDR-7 to HDR-12, HDR-15, HDR-16, DAT-1). `interface::headers` has the parsers; only this file calls
//! them.

use super::{
    super::{Head, Policy},
    applicable::is_taken,
};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason,
        headers::{
            self, CorporateId, Header, PsuContext, PsuId, RedirectUri, RequestId, SessionId,
            accept_fix::{self, Fixes},
            choices, date, identifier, network, uuid_form,
        },
        operations::{Operation, Takes},
    },
    state::Claimed,
};
use http::HeaderValue;
use std::borrow::Cow;

/// The fault and the accepted form, for the caller. It repeats no value (ERR-10).
type Expected = Cow<'static, str>;

/// The headers that later stages read. A header that the operation does not take is `None` (HDR-3).
#[derive(Debug, Default)]
pub(super) struct ParsedHeaders {
    pub(super) request_id: Option<RequestId>,
    pub(super) session: Option<SessionId>,
    pub(super) redirect_uri: Option<RedirectUri>,
    pub(super) redirect_preferred: Option<bool>,
    pub(super) psu: Option<Claimed<PsuId>>,
    pub(super) corporate: Option<Claimed<CorporateId>>,
    pub(super) context: Option<PsuContext>,
    /// Whether PSU-IP-Address is sent.
    pub(super) psu_present: bool,
    /// Whether X-PSU-IDENTITY is sent. Only the core reads the number.
    pub(super) identity: bool,
}

/// HDR-7 to HDR-12, in the order of the rules. HDR-5 reports an empty value.
pub(super) fn parse(
    head: &Head<'_>,
    operation: &Operation,
    policy: &Policy,
    faults: &mut Vec<Fault>,
) -> ParsedHeaders {
    let mut forms = HeaderParser {
        head,
        operation,
        faults,
    };
    let mut parsed = ParsedHeaders {
        // HDR-7
        request_id: forms.once(&headers::X_REQUEST_ID, |value| {
            RequestId::parse(value).ok_or_else(|| of_trimmed(value, identifier::fault))
        }),
        session: forms.once(&headers::TPP_SESSION_ID, |value| {
            SessionId::parse(value).ok_or_else(|| of_trimmed(value, identifier::fault))
        }),
        // HDR-8
        redirect_uri: forms.once(&headers::TPP_REDIRECT_URI, |value| {
            let uri = RedirectUri::parse(value, policy.environment);
            uri.map_err(|fault| of_trimmed(value, |text| fault.of(text)))
        }),
        // HDR-9
        psu: forms
            .trimmed(&headers::PSU_ID, PsuId::parse, uuid_form::fault)
            .map(Claimed::by_tpp),
        corporate: forms
            .trimmed(
                &headers::PSU_CORPORATE_ID,
                CorporateId::parse,
                uuid_form::fault,
            )
            .map(Claimed::by_tpp),
        ..ParsedHeaders::default()
    };
    let device = &headers::PSU_DEVICE_ID;
    forms.each(device, uuid_form::is_valid, uuid_form::fault);
    // HDR-10
    parsed.context = forms.trimmed(&headers::PSU_CONTEXT, PsuContext::parse, |value| {
        choices::fault(value, choices::EXPECTED_CONTEXT)
    });
    let preferred = &headers::TPP_REDIRECT_PREFERRED;
    parsed.redirect_preferred = forms.trimmed(preferred, choices::redirect_preferred, |value| {
        choices::fault(value, choices::EXPECTED_PREFERRED)
    });
    let method = &headers::PSU_HTTP_METHOD;
    forms.each(method, choices::is_psu_method, |value| {
        choices::fault(value, choices::EXPECTED_METHOD)
    });
    // HDR-11
    let address = forms.trimmed(
        &headers::PSU_IP_ADDRESS,
        network::address,
        network::fault_of_address,
    );
    parsed.psu_present = address.is_some();
    let is_port = |value: &[u8]| network::port(value).is_some();
    forms.each(&headers::PSU_IP_PORT, is_port, network::fault_of_port);
    let location = &headers::PSU_GEO_LOCATION;
    forms.each(location, network::is_location, network::fault_of_location);
    // HDR-12
    let identity = forms.once(&headers::X_PSU_IDENTITY, |value| {
        identity(headers::trim(value.as_bytes()), operation, policy)
    });
    parsed.identity = identity.is_some();
    parsed
}

/// Parses the headers of one request and collects the faults.
struct HeaderParser<'f, 'h> {
    head: &'f Head<'h>,
    operation: &'f Operation,
    faults: &'f mut Vec<Fault>,
}

impl HeaderParser<'_, '_> {
    /// Parses a header that may occur once, if its value is not empty.
    fn once<T>(
        &mut self,
        header: &'static Header,
        parse: impl FnOnce(&HeaderValue) -> Result<T, Expected>,
    ) -> Option<T> {
        let value = header.get_filled(&self.head.fields)?;
        if !is_taken(self.operation, header) {
            return None;
        }
        match parse(value) {
            Ok(parsed) => Some(parsed),
            Err(expected) => {
                self.faults.push(malformed(header, expected));
                None
            }
        }
    }

    /// The same, without the white space around the value.
    fn trimmed<T>(
        &mut self,
        header: &'static Header,
        parse: impl FnOnce(&[u8]) -> Option<T>,
        fault: impl FnOnce(&[u8]) -> String,
    ) -> Option<T> {
        self.once(header, |value| {
            parse(headers::trim(value.as_bytes())).ok_or_else(|| of_trimmed(value, fault))
        })
    }

    /// Checks a header that may occur more than once; keeps no value.
    fn each(
        &mut self,
        header: &'static Header,
        is_valid: impl Fn(&[u8]) -> bool,
        fault: impl FnOnce(&[u8]) -> String,
    ) {
        let mut values = filled(self.head, header);
        if let Some(value) = values.find(|value| !is_valid(value))
            && is_taken(self.operation, header)
        {
            self.faults.push(malformed(header, fault(value)));
        }
    }
}

/// HDR-15. A comparison of two lengths shows that a request repeats no header, which is the common case.
pub(super) fn duplicates(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    if head.fields.map().len() == head.fields.map().keys_len() {
        return;
    }
    let duplicated = head.fields.duplicated();
    for header in duplicated.filter(|header| is_taken(operation, header)) {
        faults.push(Fault::header(
            Reason::HeaderDuplicated,
            header.written,
            format!(
                "it stands {} times; it may stand once",
                header.count(&head.fields)
            ),
        ));
    }
}

/// HDR-16: the fixes that the request names.
pub(super) fn fixes(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) -> Fixes {
    let header = &headers::X_ACCEPT_FIX;
    if operation.takes != Takes::Whole {
        return Fixes::default();
    }
    accept_fix::parse(filled(head, header)).unwrap_or_else(|_| {
        faults.push(malformed(header, accept_fix::fault(filled(head, header))));
        Fixes::default()
    })
}

/// DAT-1.
pub(super) fn date(head: &Head<'_>, faults: &mut Vec<Fault>) -> Option<Timestamp> {
    let value = headers::DATE.get_filled(&head.fields)?;
    let value = headers::trim(value.as_bytes());
    let date = date::parse(value);
    if date.is_none() {
        faults.push(malformed(&headers::DATE, date::fault(value)));
    }
    date
}

fn filled<'a>(head: &Head<'a>, header: &Header) -> impl Iterator<Item = &'a [u8]> {
    let values = header.values(&head.fields);
    values.filter(|value| !value.is_empty())
}

fn identity(value: &[u8], operation: &Operation, policy: &Policy) -> Result<(), Expected> {
    if !operation.initiates {
        let expected = "only the initiation of a payment takes it: leave it out";
        return Err(Cow::Borrowed(expected));
    }
    if policy.identity.fits(value) {
        Ok(())
    } else {
        Err(policy.identity.fault(value).into())
    }
}

/// The fault of a value without the white space around it.
fn of_trimmed(value: &HeaderValue, fault: impl FnOnce(&[u8]) -> String) -> Expected {
    Cow::Owned(fault(headers::trim(value.as_bytes())))
}

fn malformed(header: &Header, text: impl Into<String>) -> Fault {
    Fault::header(Reason::HeaderMalformed, header.written, text)
}
