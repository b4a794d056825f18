//! Locations, links and bodies, with a core at 10.0.0.5.

use super::{InnerHosts, MAX_BODY};
use crate::{
    interface::operations::{Catalogue, Environment, builtin},
    telemetry::AddressAction,
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::LazyLock;

fn inside() -> InnerHosts<'static> {
    static OWN: LazyLock<[String; 3]> =
        LazyLock::new(|| ["10.0.0.5", "core.bank.internal", "core"].map(str::to_owned));
    InnerHosts::new(&*OWN)
}

/// The values of a header after cleaning, and the actions.
fn cleaned(name: HeaderName, value: &str) -> (Vec<String>, Vec<AddressAction>) {
    let catalogue = Catalogue::new(Environment::Sandbox, builtin()).unwrap();
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
    headers.insert(name.clone(), value);
    let mut done = Vec::new();
    inside().clean(&mut headers, &catalogue, |_, what| done.push(what));
    let left = headers.get_all(name).iter();
    let left = left.map(|value| value.to_str().unwrap().to_owned());
    (left.collect(), done)
}

#[test]
fn locations() {
    const RELATIVE: &[AddressAction] = &[AddressAction::MadeRelative];
    const REMOVED: &[AddressAction] = &[AddressAction::Removed];
    let kept = [
        "/v1/accounts",
        "/nowhere",
        "/v1/cores?x=core&y=110.0.0.5",
        "https://bank.example/core/core.html",
        "",
        "https://bank.example/sca?request=x",
        "https://10.0.0.5.bank.example/",
        "https://93.184.216.34/x",
        "https://[2a00:1450::1]:8443/x",
        "HTTPS://Bank.Example:8443",
        "https://bank.example/sca?next=https%3A%2F%2Ftpp.example%2Fcb",
        "mybank://sca?next=http://93.184.216.34/",
        "bankid:///?autostarttoken=1",
        "mailto:a@bank.example",
    ];
    for text in kept {
        let (left, done) = cleaned(header::LOCATION, text);
        assert_eq!((left, done.as_slice()), (vec![text.to_owned()], &[][..]));
    }
    let path = "/v1/accounts/42/balances?x=1#y";
    for host in [
        "http://10.0.0.5",
        "http://10.0.0.5:8080",
        "HTTPS://CORE.bank.internal",
        "https://core.bank.internal.:1",
        "//core.bank.internal",
        "http://localhost:8080",
        "http://core01",
        "//core-7:8080",
        "http://api.localhost",
        "http://127.0.0.1",
        "http://user:word@192.168.1.7",
        "https://bank.example@172.16.0.1",
        "http://169.254.169.254",
        "http://0.0.0.0",
        "http://[::1]:8080",
        "http://[::ffff:10.0.0.5]",
        "http://[fe80::1]",
        "http://[fd00::7]",
        "gopher://10.0.0.5",
    ] {
        let (left, done) = cleaned(header::CONTENT_LOCATION, &format!("{host}{path}"));
        assert_eq!(
            (left, done.as_slice()),
            (vec![path.to_owned()], RELATIVE),
            "{host}"
        );
        for other in ["", "/", "/admin", "//evil.example/", "/v1/../x", "?x=1"] {
            let (left, done) = cleaned(header::LOCATION, &format!("{host}{other}"));
            assert_eq!((left, done.as_slice()), (vec![], REMOVED), "{host}{other}");
        }
    }
}

#[test]
fn locations_that_are_removed() {
    const REMOVED: &[AddressAction] = &[AddressAction::Removed];
    for text in [
        "http:\\\\10.0.0.5/v1/accounts",
        "/\\10.0.0.5/v1/accounts",
        "http:10.0.0.5/v1/accounts",
        "https:/10.0.0.5/v1/accounts",
        "///10.0.0.5/v1/accounts",
        "http:///10.0.0.5/v1/accounts",
        "http://167772165/v1/accounts",
        "http://0x0a.0.0.5/v1/accounts",
        "http://127.1/v1/accounts",
        "http://%31%30.0.0.5/v1/accounts",
        "http://10.0.0.5\t/v1/accounts",
        "http://\u{ff11}0.0.0.5/v1/accounts",
        "http://[fe80::1%25eth0]/v1/accounts",
        // Inner addresses and hosts of one label in another place than the host's.
        "accounts?x=//10.0.0.6",
        "mybank://sca?next=http://10.0.0.6/",
        "mailto:a@10.0.0.6",
        "https://bank.example/?u=http%3A%2F%2F%5Bfe80%3A%3A1%5D%2Fx",
        "https://bank.example/?u=http%253A%252F%252F127%252E0%252E0%252E1%252Fx",
        "https://bank.example/?u=%2525252525",
        "https://bank.example/?u=http://core01/x",
        "https://bank.example/?u=http://167772165/x",
        // The core's own hosts in another place than the host's.
        "https://bank.example/?u=http://core.bank.internal:8080/x",
        "https://bank.example/?u=http%3A%2F%2FCore.bank.internal%2Fx",
        "https://bank.example/?u=http%3A%2F%2Fcore%2Fx",
        "mybank://sca?next=http://10.0.0.5/",
        "/v1/accounts?x=10.0.0.5:8080",
        "http://10.0.0.5/v1/accounts?x=core.bank.internal",
    ] {
        let (left, done) = cleaned(header::LOCATION, text);
        assert_eq!((left, done.as_slice()), (vec![], REMOVED), "{text}");
    }
}

#[test]
fn links() {
    let table: [(&str, &[&str], usize); 13] = [
        ("</x>; title=\"at core.bank.internal\", </y>", &["</y>"], 1),
        // One parser reads this as the text of a parameter, another as the next link.
        (
            "<https://a>; rel=\"x, <http://core.bank.internal/>; rel=b\"",
            &[],
            1,
        ),
        (
            "<https://a>; rel=\"x, <http://core.bank.internal/>; rel=b",
            &[],
            1,
        ),
        ("</x>; rel=\"a\\\", <http://10.0.0.5/>; rel=\"b\"", &[], 1),
        ("</x>; rel=next; <http://10.0.0.5/>", &[], 1),
        ("</x>; rel=\"next http://10.0.0.5/rel\", </y>", &["</y>"], 1),
        (
            "</v1/accounts>; rel=\"next\"",
            &["</v1/accounts>; rel=\"next\""],
            0,
        ),
        (
            "<http://10.0.0.5/v1/accounts>; rel=next; title=\"a, b; c\", </x>;rel=x",
            &["</v1/accounts>; rel=next; title=\"a, b; c\", </x>;rel=x"],
            1,
        ),
        ("<http://10.0.0.5/a,b>; rel=x, </x>", &["</x>"], 1),
        ("<http://10.0.0.5/>, <http://localhost/>", &[], 2),
        ("</x>; anchor=\"http://10.0.0.5/\", </y>", &["</y>"], 1),
        ("http://10.0.0.5/; rel=x", &[], 1),
        (
            "<https://bank.example/>; anchor=\"#a\"",
            &["<https://bank.example/>; anchor=\"#a\""],
            0,
        ),
    ];
    for (value, expected, count) in table {
        let (left, done) = cleaned(header::LINK, value);
        assert_eq!(
            (left.as_slice(), done.len()),
            (
                expected
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .as_slice(),
                count
            ),
            "{value}"
        );
    }
}

/// A name of one label is a word too.
#[test]
fn other_headers() {
    for (value, stays) in [
        ("199 core.bank.internal:8080 \"stale\"", false),
        ("Basic realm=\"CORE.bank.internal\"", false),
        ("199 10.0.0.5 \"stale\"", false),
        ("199 core:8080 \"stale\"", false),
        ("see http://core/x", false),
        ("Basic realm=\"core\"", true),
        ("application/vnd.core+json", true),
        ("attachment; filename=\"core.pdf\"", true),
        ("199 - \"110.0.0.5, 10.0.0.5.1\"", true),
        ("199 - \"10.0.0.50\"", false),
        ("node=[fd00::7]:8443", false),
        ("h2=\"http://core02:443\"", false),
        ("a, b=127\\.0\\.0\\.1", false),
        ("http://2130706433/", false),
        ("\"https://bank.example/docs\"; see http://", true),
        ("100%", true),
        ("", true),
    ] {
        let (left, done) = cleaned(HeaderName::from_static("aspsp-notice"), value);
        assert_eq!((left.len(), done.len()), (stays.into(), (!stays).into()));
    }
    let own = ["core01", "193.0.0.5"].map(str::to_owned);
    let inside = InnerHosts::new(&own);
    assert!(inside.is_named_in(b"199 193.0.0.5:80"));
    assert!(!inside.is_named_in(b"199 193.0.0.50, 193.0.0.5.1"));
    assert!(inside.is_named_in(b"199 core01 \"stale\""));
    assert!(!inside.is_named_in(b"199 core010 \"stale\""));
}

#[test]
fn links_in_a_body() {
    let long = format!(
        r#"{{"href":"http://10.0.0.5/","x":"{}"}}"#,
        "x".repeat(MAX_BODY)
    );
    for (body, found) in [
        (
            r#"{"_links":{"self":{"href":"http://10.0.0.5:8080/v1/x"}}}"#,
            true,
        ),
        (
            r#"{"_links":{"self":{"href" : "http:\/\/core.bank.internal\/v1\/x"}}}"#,
            true,
        ),
        (
            r#"{"a":{"href":"/v1/x"},"b":{"href":"//localhost/"}}"#,
            true,
        ),
        (
            r#"{"_links":{"self":{"href":"/v1/x"}},"text":"http://10.0.0.5/"}"#,
            false,
        ),
        (
            r#"{"_links":{"scaRedirect":{"href":"http://localhost/sca?request=t"}}}"#,
            false,
        ),
        (r#"{"href":"#, false),
        (r#"{"href":1,"href":"https://bank.example/"}"#, false),
        (&long, false),
    ] {
        let linked = inside().is_linked_in(body.as_bytes(), Some("http://localhost/sca"));
        assert_eq!(linked, found, "{body:.60}");
    }
}
