//! Requests to sign, and the values that they share.
//!
//! Deliberately not here: the fault of a spoilt request (refusals.rs), and values of earlier answers (memory.rs).

use portvakt::tools::tpp::Unsigned;

/// An address for documentation, RFC 5737.
const PSU_ADDRESS: &str = "192.0.2.10";

/// Where the PSU would come back to.
pub(super) const REDIRECT_URI: &str = "https://tpp.example/callback";

/// The session that the TPP names.
pub(super) const SESSION: &str = "demo-session";

/// Operation B.
pub(super) const CROSS_BORDER: &str = "/v1/payments/norwegian-cross-border-credit-transfers";

/// The debtor's account of [`PAYMENT`], which belongs to no customer here, so a payment that should be accepted names another.
pub(super) const SOMEBODY_ELSES: &str = "NO9386011117947";

/// A payment that is above the limit of 100 000 NOK and says what such a payment must say (§Payment creation request).
pub(super) const PAYMENT: &str = concat!(
    r#"{"instructedAmount":{"amount":"150000.00","currency":"NOK"},"#,
    r#""creditorName":"Werkzeugbau Muster GmbH","#,
    r#""creditorAccount":{"iban":"DE89370400440532013000","currency":"EUR"},"#,
    r#""creditorAddress":{"street":"Musterweg","buildingNumber":"1","city":"Berlin","country":"DE"},"#,
    r#""debtorAccount":{"iban":"NO9386011117947","currency":"NOK"},"#,
    r#""remittanceInformationUnstructured":"Faktura 4711","#,
    r#""regulatoryReportingCode":"14","regulatoryReportingInformation":"Machine tools"}"#,
);

/// With the headers that nearly every operation requires (HDR-5).
pub(super) fn get(target: &str) -> Unsigned {
    Unsigned {
        method: "GET".into(),
        target: target.into(),
        headers: headers(&[]),
        body: None,
    }
}

/// With the headers that a cross-border payment requires (HDR-1, HDR-2), PSU-ID apart.
pub(super) fn payment(body: Vec<u8>) -> Unsigned {
    Unsigned {
        method: "POST".into(),
        target: CROSS_BORDER.into(),
        headers: headers(&[
            ("Content-Type", "application/json"),
            ("x-accept-fix", "amount-as-string"),
            ("TPP-Session-ID", SESSION),
        ]),
        body: Some(body),
    }
}

/// The headers that nearly every operation requires, and more.
pub(super) fn headers(more: &[(&str, &str)]) -> Vec<(String, String)> {
    [
        ("TPP-Redirect-URI", REDIRECT_URI),
        ("PSU-IP-Address", PSU_ADDRESS),
    ]
    .iter()
    .chain(more)
    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
    .collect()
}

/// The request, with more headers.
pub(super) fn with(request: Unsigned, more: &[(&str, &str)]) -> Unsigned {
    let more = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Unsigned {
        headers: request.headers.into_iter().chain(more).collect(),
        ..request
    }
}
