//! Accepted and refused values of TPP-Redirect-URI, as tables.

use super::*;
use Environment::{Production, Sandbox};

fn host(value: &str) -> Result<&str, RedirectFault> {
    split(value.as_bytes(), Production).map(|uri| uri.host)
}

//= HDR-8 accepted
#[test]
fn what_passes() {
    let table = [
        ("https://tpp.example", "tpp.example"),
        ("https://tpp.example/", "tpp.example"),
        ("HTTPS://TPP.Example:8443/cb", "TPP.Example"),
        ("https://tpp.example:/cb", "tpp.example"),
        ("https://tpp.example.?a", "tpp.example."),
        (
            "https://tpp_1.xn--bcher-kva.example/",
            "tpp_1.xn--bcher-kva.example",
        ),
        ("https://0x7f.example/", "0x7f.example"),
        ("https://192.0.2.7/cb", "192.0.2.7"),
        ("https://[2001:db8::7]/cb", "[2001:db8::7]"),
        ("https://[::1]:443", "[::1]"),
        (
            "https://tpp.example/a/./..//b%2f;v=1,2'(3)!*~:@$",
            "tpp.example",
        ),
        (
            "https://tpp.example?state=a/b?c&d=https://x@y",
            "tpp.example",
        ),
        (
            "https://tpp.example/cb?psuid=1&xcode=2&codes=3&a=code",
            "tpp.example",
        ),
        ("https://tpp.example/psu-id=1&code=2", "tpp.example"),
        // A name that is encoded twice is decoded only once.
        ("https://tpp.example/cb?%2570su-id=1&=&&", "tpp.example"),
        ("https://tpp.example?psu+id=1&%ff=2", "tpp.example"),
    ];
    for (value, expected) in table {
        assert_eq!(host(value), Ok(expected), "{value}");
        let padded = HeaderValue::from_str(&format!("\t{value} ")).unwrap();
        let uri = RedirectUri::parse(&padded, Production).unwrap();
        assert_eq!((uri.as_str(), uri.host()), (value, expected));
    }
    let text = "https://tpp.example/cb?a=%20b";
    let parts = split(text.as_bytes(), Production).unwrap();
    assert_eq!(parts.query, Some("a=%20b"));
    let longest = format!("https://tpp.example/{}", "a".repeat(MAX_LENGTH - 20));
    assert_eq!(longest.len(), MAX_LENGTH);
    assert!(host(&longest).is_ok());
    assert_eq!(host(&format!("{longest}a")), Err(RedirectFault::TooLong));
}

//= HDR-8 refused
#[test]
fn no_absolute_https_uri_with_a_host() {
    use RedirectFault::*;
    let table = [
        ("", Scheme),
        ("/cb", Scheme),
        ("tpp.example/cb", Scheme),
        ("//tpp.example/cb", Scheme),
        ("https:/tpp.example/cb", Scheme),
        ("https:tpp.example", Scheme),
        ("http://tpp.example/cb", Scheme),
        ("ftp://tpp.example/cb", Scheme),
        ("javascript://tpp.example/%0aalert(1)", Scheme),
        ("com.tpp.app://callback", Scheme),
        ("/x?https://tpp.example", Scheme),
        ("https://", Host),
        ("https:///cb", Host),
        ("https://:443/cb", Host),
        ("https://?a", Host),
        ("https://.", Host),
        ("https://a..b/", Host),
        ("https://%65xample.com/", Host),
        ("https://tpp.example!/", Host),
        ("https://127.1/", Host),
        ("https://1.0x7f/", Host),
        ("https://0x7f/", Host),
        ("https://2130706433/", Host),
        ("https://010.0.0.1/", Host),
        ("https://1.2.3.4.5/", Host),
        ("https://1.2.3.4./", Host),
        ("https://2001:db8::7/cb", Host),
        ("https://[2001:db8::7/cb", Host),
        ("https://[fe80::1%25eth0]/", Host),
        ("https://[v1.x]/", Host),
        ("https://[1.2.3.4]/", Host),
        ("https://[::1]x/", Host),
        ("https://tpp.example:65536/", Port),
        ("https://tpp.example:+80/", Port),
        ("https://tpp.example:80a/", Port),
        ("https://user@tpp.example/", UserInfo),
        ("https://user:secret@tpp.example/", UserInfo),
        ("https://tpp.example:443@evil.example/", UserInfo),
        ("https://@tpp.example/", UserInfo),
        ("https://tpp.example/cb#", Fragment),
        ("https://tpp.example/cb?a#b", Fragment),
    ];
    for (value, fault) in table {
        assert_eq!(host(value), Err(fault), "{value}");
    }
    let long = format!("https://{}.example/", "a".repeat(64));
    assert_eq!(host(&long), Err(Host));
    let long = format!("https://{}example/", "a.".repeat(124));
    assert_eq!(host(&long), Err(Host));
}

//= HDR-8 refused
#[test]
fn characters_that_no_uri_has() {
    let table = [
        ("https://tpp.example\\@evil.example/", 20),
        ("https://tpp.example/a b", 22),
        ("https://tpp.example/\"", 21),
        ("https://tpp.example/a[0]", 22),
        ("https://tpp.example?a[0]", 22),
        ("https://tpp.example/%", 21),
        ("https://tpp.example/%2", 21),
        ("https://tpp.example/%zz", 21),
        ("https://tpp.example/\r\nX: y", 21),
        ("https://b\u{fc}cher.example/", 10),
    ];
    for (value, at) in table {
        assert_eq!(host(value), Err(RedirectFault::Character(at)), "{value}");
    }
    let not_utf8 = split(b"https://tpp.example/\xff", Production);
    assert_eq!(not_utf8, Err(RedirectFault::Character(21)));
}

//= HDR-8 refused
#[test]
fn parameters_of_the_redirect() {
    for name in TAKEN {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let spellings = [
            name.to_owned(),
            name.to_uppercase(),
            encoded.clone(),
            encoded.to_lowercase(),
            format!("+{name}%20"),
            format!("{name}%5B%5D"),
            format!("{name}%00x"),
        ];
        for spelling in spellings {
            let queries = [
                format!("?{spelling}"),
                format!("?{spelling}=x"),
                format!("?a=b&{spelling}=x"),
                format!("?a=b;{spelling}=x"),
                format!("/cb?a=b&{spelling}&c"),
                format!("?a?&{spelling}=="),
            ];
            for query in queries {
                let value = format!("https://tpp.example{query}");
                assert_eq!(host(&value), Err(RedirectFault::Parameter(name)), "{value}");
            }
        }
    }
    assert_eq!(
        host("https://tpp.example?%70su-id=1"),
        Err(RedirectFault::Parameter("psu-id"))
    );
}

#[test]
fn http_is_for_loopback_hosts_of_the_sandbox() {
    let loopback = [
        "http://localhost/cb",
        "http://LOCALHOST:3000/cb",
        "http://127.0.0.1:3000",
        "http://127.9.9.9/",
        "http://[::1]:3000/cb",
        "HTTP://[0:0:0:0:0:0:0:1]/",
    ];
    for value in loopback {
        assert!(split(value.as_bytes(), Sandbox).is_ok(), "{value}");
        assert_eq!(host(value), Err(RedirectFault::Scheme), "{value}");
    }
    let others = [
        "http://tpp.example/",
        "http://localhost.tpp.example/",
        "http://localhost./",
        "http://127.0.0.1.tpp.example/",
        "http://127.1/",
        "http://192.168.0.1/",
        "http://0.0.0.0/",
        "http://[::ffff:127.0.0.1]/",
    ];
    for value in others {
        let fault = split(value.as_bytes(), Sandbox).unwrap_err();
        assert_eq!(fault, RedirectFault::Scheme, "{value}");
    }
}

#[test]
fn hosts_that_a_tpp_may_name() {
    let hosts = ["app.tpp.example".to_owned(), "[::1]".to_owned()];
    let allowed = |value: &str| {
        let uri = RedirectUri::from_text(value, Production).unwrap();
        uri.is_at_one_of(&hosts)
    };
    assert!(allowed("https://APP.tpp.example:8443/") && allowed("https://[::1]/"));
    assert!(!allowed("https://tpp.example/") && !allowed("https://x.app.tpp.example/"));
    assert!(!allowed("https://app.tpp.example./"));
}

#[test]
fn long_nonsense_ends_quickly() {
    for filler in ["%", "[", ":", "@", "&", ";+", "://", "%70"] {
        let _ = split(filler.repeat(600).as_bytes(), Sandbox);
        let query = format!("https://a?{}", filler.repeat(600));
        let _ = split(query.as_bytes(), Sandbox);
    }
}
