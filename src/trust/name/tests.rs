//! Compares names with the texts that clients send for them: fixed texts, random texts, and printed issuers of real certificates.

mod rough;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{MAX_TEXT, Name, NameFault, NameMismatch};

const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const TELETEX: u8 = 0x14;
const IA5: u8 = 0x16;
const BMP: u8 = 0x1e;

const CN: &[u8] = &[0x55, 4, 3];
const C: &[u8] = &[0x55, 4, 6];
const O: &[u8] = &[0x55, 4, 10];
const OU: &[u8] = &[0x55, 4, 11];
const ORGANIZATION_IDENTIFIER: &[u8] = &[0x55, 4, 97];
const EMAIL: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];

type Pair<'a> = (&'a [u8], u8, &'a [u8]);

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut der = vec![tag];
    match u8::try_from(content.len()).unwrap() {
        short @ ..0x80 => der.push(short),
        long => der.extend([0x81, long]),
    }
    der.extend(content);
    der
}

/// A Name as in a certificate: the first RDN of the slice is the first in the certificate, and the last in RFC 2253.
fn der(rdns: &[&[Pair<'_>]]) -> Vec<u8> {
    let pair = |(oid, tag, value): &Pair<'_>| {
        element(0x30, &[element(6, oid), element(*tag, value)].concat())
    };
    let rdn =
        |pairs: &&[Pair<'_>]| element(0x31, &pairs.iter().flat_map(pair).collect::<Vec<u8>>());
    element(0x30, &rdns.iter().flat_map(rdn).collect::<Vec<u8>>())
}

fn name(rdns: &[&[Pair<'_>]]) -> Name {
    Name::from_der(&der(rdns)).unwrap()
}

/// An issuer as real clients send it: a comma, letters outside ASCII, and a type that most libraries do not know.
fn first_authority() -> Name {
    name(&[
        &[(C, PRINTABLE, b"CZ")],
        &[(CN, UTF8, b"I.CA SSL EV CA/RSA 10/2017")],
        &[(O, UTF8, "První certifikační autorita, a.s.".as_bytes())],
        &[(ORGANIZATION_IDENTIFIER, UTF8, b"NTRCZ-26439395")],
    ])
}

fn ou(value: &str) -> Name {
    name(&[&[(OU, UTF8, value.as_bytes())]])
}

#[track_caller]
fn check(name: &Name, text: impl AsRef<[u8]>, matches: bool) {
    let text = text.as_ref();
    let result = name.compare(text);
    assert_eq!(
        result.is_ok(),
        matches,
        "{name} against {}: {result:?}",
        text.escape_ascii()
    );
}

#[test]
fn sig_4_every_library_spells_the_same_name() {
    let issuer = first_authority();
    for text in [
        // Java: RFC 2253, RFC 1779 and toString; toString also with its quotation marks escaped for the header.
        r"2.5.4.97=#0c0e4e5452435a2d3236343339333935,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r#"OID.2.5.4.97=NTRCZ-26439395, O="První certifikační autorita, a.s.", CN=I.CA SSL EV CA/RSA 10/2017, C=CZ"#,
        r#"OID.2.5.4.97=NTRCZ-26439395, O=\"První certifikační autorita, a.s.\", CN=I.CA SSL EV CA/RSA 10/2017, C=CZ"#,
        // OpenSSL: RFC2253; the same without escapes for UTF-8; with one backslash escaped for the header; with long names.
        r"organizationIdentifier=NTRCZ-26439395,O=Prvn\C3\AD certifika\C4\8Dn\C3\AD autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"organizationIdentifier=NTRCZ-26439395,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"organizationIdentifier=NTRCZ-26439395,O=Prvn\\C3\\AD certifika\\C4\\8Dn\\C3\\AD autorita\\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"organizationIdentifier = NTRCZ-26439395, organizationName = První certifikační autorita\2C a.s., commonName = I.CA SSL EV CA/RSA 10/2017, countryName = CZ",
        // Python; and a PrintableString in place of the certificate's UTF-8.
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=#130E4E5452435A2D3236343339333935,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        // Letter case, semicolons, white space, Windows.
        r#"  oid.2.5.4.97 = ntrcz-26439395 ; o="PRVNÍ  CERTIFIKAČNÍ AUTORITA, A.S." ;cn=i.ca ssl ev ca/rsa 10/2017;c=cz "#,
        // Percent-encoded: the whole text, a part of it, and with escaped quotation marks.
        "2.5.4.97%3DNTRCZ-26439395%2CO%3DPrvn%C3%AD%20certifika%C4%8Dn%C3%AD%20autorita%5C%2C%20a.s.%2CCN%3DI.CA%20SSL%20EV%20CA%2FRSA%2010%2F2017%2CC%3DCZ",
        r"2.5.4.97=NTRCZ-26439395,O=První%20certifikační%20autorita\,%20a.s.,CN=I.CA%20SSL%20EV%20CA/RSA%2010/2017,C=CZ",
        r#"2.5.4.97=NTRCZ-26439395,O=\"První%20certifikační%20autorita,%20a.s.\",CN=I.CA%20SSL%20EV%20CA/RSA%2010/2017,C=CZ"#,
    ] {
        check(&issuer, text, true);
    }
    check(&issuer, issuer.to_string(), true);
}

#[test]
fn sig_4_a_name_that_differs_is_refused() {
    let issuer = first_authority();
    for text in [
        // A different value, type, number or order of RDNs; an RDN split in two, or two joined.
        r"2.5.4.97=NTRCZ-26439396,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.98=NTRCZ-26439395,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=NTRCZ-26439395,O=Prvni certifikacni autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita\,a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"C=CZ,CN=I.CA SSL EV CA/RSA 10/2017,O=První certifikační autorita\, a.s.,2.5.4.97=NTRCZ-26439395",
        r"O=První certifikační autorita\, a.s.,2.5.4.97=NTRCZ-26439395,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=NTRCZ-26439395+O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        // Percent-decoded once, not twice.
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita\,%2520a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"2.5.4.97=NTRCZ-26439395,O=První+certifikační+autorita\,+a.s.,CN=I.CA+SSL+EV+CA/RSA+10/2017,C=CZ",
        "",
        "C=CZ",
    ] {
        check(&issuer, text, false);
    }
}

#[test]
fn sig_4_bytes_and_letters() {
    let issuer = name(&[&[(O, TELETEX, b"Prvn\xed")]]);
    check(&issuer, "O=První", true);
    check(&issuer, b"O=Prvn\xed", true);
    check(&issuer, "O=PrvnÃ\u{ad}", true);
    check(&issuer, b"O=Prvn%C3%AD", true);
    check(&issuer, b"O=Prvn%ED", true);
    check(&issuer, r"O=Prvn\C3\AD", true);
    check(&issuer, "O=#1e0c005000720076006e00ed", false);
    check(&issuer, "O=#1e0a005000720076006e00ed", true);
    check(&issuer, "O=Prvn?", false);
    check(&issuer, "O=Prvni\u{301}", false);

    let greek = name(&[&[(O, BMP, &[0x03, 0x9f, 0x03, 0x94, 0x03, 0x9f, 0x03, 0xa3])]]);
    check(&greek, "O=οδος", true);
    check(&greek, "O=ΟΔΟΣ", true);

    let email = name(&[&[(EMAIL, IA5, b"ca@test.de")]]);
    for text in [
        "1.2.840.113549.1.9.1=#160a636140746573742e6465",
        "EMAILADDRESS=ca@test.de",
        "emailAddress=CA@test.de",
        "E=ca@test.de",
        "OID.1.2.840.113549.1.9.1=ca@test.de",
    ] {
        check(&email, text, true);
    }
}

#[test]
fn sig_4_white_space_is_folded_and_newlines_are_white_space() {
    let issuer = name(&[&[(O, UTF8, b" Trust\r\n Service ")]]);
    for text in [
        "O=Trust Service",
        "O=\\ Trust  Service\\ ",
        "O=\" Trust\nService\"",
        "O=Trust\\0D\\0A Service",
        "O=Trust%0D%0A%20Service",
    ] {
        check(&issuer, text, true);
    }
    check(&issuer, issuer.to_string(), true);
    check(&issuer, "O=TrustService", false);
}

#[test]
fn sig_4_an_rdn_is_a_set() {
    let issuer = name(&[
        &[(C, PRINTABLE, b"DE")],
        &[(CN, UTF8, b"a"), (OU, UTF8, b"b"), (OU, UTF8, b"c")],
    ]);
    check(&issuer, "CN=a+OU=b+OU=c,C=DE", true);
    check(&issuer, "OU=c + CN=a + OU=b, C=DE", true);
    check(&issuer, "CN=a+OU=b+OU=b,C=DE", false);
    check(&issuer, "CN=a+OU=b,C=DE", false);
    check(&issuer, "CN=a+OU=b+OU=c+OU=c,C=DE", false);
    check(&issuer, "CN=a,OU=b,OU=c,C=DE", false);
    check(&issuer, issuer.to_string(), true);
}

#[test]
fn sig_4_what_stands_inside_a_value_is_no_boundary() {
    let one = ou("x,CN=y");
    let two = name(&[&[(CN, UTF8, b"y")], &[(OU, UTF8, b"x")]]);
    let set = name(&[&[(OU, UTF8, b"x"), (CN, UTF8, b"y")]]);
    for escaped in [
        r"OU=x\,CN=y",
        r"OU=x\2CCN=y",
        r"OU=x\2cCN\=y",
        r#"OU="x,CN=y""#,
        r#"OU="x\,CN=y""#,
        r"OU=#0c06782c434e3d79",
        r"OU=x\2C\43\4E\3D\79",
    ] {
        check(&one, escaped, true);
        check(&two, escaped, false);
        check(&set, escaped, false);
    }
    check(&one, "OU=x,CN=y", false);
    check(&two, "OU=x,CN=y", true);
    check(&set, "OU=x,CN=y", false);
    check(&ou("x+CN=y"), "OU=x+CN=y", false);
    check(&ou("x+CN=y"), r"OU=x\+CN=y", true);
    check(&set, r"OU=x\+CN=y", false);
    check(&set, "OU=x+CN=y", true);
    // Text that resembles DER, an escape or a keyword is text.
    check(&ou("#020105"), r"OU=\#020105", true);
    check(&ou("#020105"), "OU=#020105", false);
    check(&name(&[&[(OU, 2, &[5])]]), "OU=#020105", true);
    check(&name(&[&[(OU, 2, &[5])]]), r"OU=\#020105", false);
    check(&name(&[&[(OU, 2, &[5])]]), "OU=5", false);
    check(&ou(r"x\2Cy"), r"OU=x\\2Cy", true);
    check(&ou("x%2Cy"), "OU=x%2Cy", true);
}

#[test]
fn sig_4_quotes_that_java_prints_as_they_are() {
    check(&ou("\"ACME\""), "OU=\"ACME\"", true);
    check(&ou("ACME"), "OU=\"ACME\"", true);
    check(&ou("ACME"), r#"OU=\"ACME\""#, true);
    check(&ou("\"ACME\""), r#"OU=\"ACME\""#, true);
    check(&ou("\"ACME\""), "OU=ACME", false);
    check(&ou("\"a\"b\""), r#"OU="a\"b""#, true);
    check(&ou("ACME \"x\" Ltd"), r#"OU="ACME ""x"" Ltd""#, true);
    check(&ou("ACME \"x\" Ltd"), r#"OU=ACME \"x\" Ltd"#, true);
    check(&ou("ACME \"x\" Ltd"), r#"OU=ACME \\\"x\\\" Ltd"#, true);
    let both = name(&[&[(OU, UTF8, b"a"), (OU, UTF8, b"\"a\"")]]);
    check(&both, r#"OU=a+OU=\"a\""#, true);
}

#[test]
fn sig_4_strings_that_java_reads_as_utf_8() {
    let bmp = name(&[&[(CN, BMP, b"\0a\0,\0b"), (OU, BMP, b"\x01\x42")]]);
    check(&bmp, r"CN=\00a\00\,\00b+OU=#1e020142", true);
    check(&bmp, "CN=\\00a\\00\\,\\00b+OU=\u{1}B", true);
    check(&bmp, r"CN=a\,b+OU=ł", true);
    check(&bmp, r"CN=\00a\00\,\00c+OU=ł", false);
    check(&bmp, r"CN=\00a,CN=\00b+OU=ł", false);
    let teletex = name(&[&[(O, TELETEX, "Første".as_bytes())]]);
    check(&teletex, "O=Første", true);
    check(&teletex, "O=FÃ¸rste", true);
    check(
        &name(&[&[(O, TELETEX, b"F\xf8rste")]]),
        "O=F\u{fffd}rste",
        false,
    );
    check(
        &name(&[&[(O, UTF8, "FÃ¸rste".as_bytes())]]),
        r"O=F\C3\B8rste",
        false,
    );
}

#[test]
fn sig_4_a_mismatch_says_what_to_change() {
    let issuer = first_authority();
    let check = |text: &str, expect: &str| {
        assert_eq!(
            issuer.compare(text.as_bytes()).unwrap_err().to_string(),
            expect,
            "{text}"
        );
    };
    check(
        r"C=CZ,CN=I.CA SSL EV CA/RSA 10/2017,O=První certifikační autorita\, a.s.,2.5.4.97=NTRCZ-26439395",
        "the RDNs stand in reverse: RFC 2253 starts with the last",
    );
    check(
        r#"C=CZ, CN=I.CA SSL EV CA/RSA 10/2017, O=\"První certifikační autorita, a.s.\", 2.5.4.97=NTRCZ-26439395"#,
        "the RDNs stand in reverse: RFC 2253 starts with the last",
    );
    check(
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita\, s.r.o.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        r"RDN 2 of the issuer is O=První certifikační autorita\, a.s. in the certificate and O=První certifikační autorita\, s.r.o. in keyId",
    );
    check(
        "C=CZ",
        "the certificate's issuer has 4 RDNs, the issuer in keyId 1",
    );
    check(
        "2.5.4.97%3DNTRCZ-26439395",
        "the certificate's issuer has 4 RDNs, the issuer in keyId 1",
    );
    check(
        "XX=1",
        "the issuer cannot be read at byte 0: this attribute type is not known; write it as a dotted OID",
    );
    // Both readings differ at the same offset: the fault shows the one that the TPP wrote.
    check(
        r"2.5.4.97=NTRCZ%20X,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ",
        "RDN 1 of the issuer is 2.5.4.97=NTRCZ-26439395 in the certificate and 2.5.4.97=NTRCZ%20X in keyId",
    );
    let latin1 = issuer.compare(b"O=\xed\xed,XX=1").unwrap_err();
    assert!(
        matches!(latin1, NameMismatch::Unreadable { at: 5, .. }),
        "{latin1:?}"
    );
    let long = issuer.compare(&[b' '; MAX_TEXT + 1]).unwrap_err();
    assert!(
        matches!(long, NameMismatch::Unreadable { at: MAX_TEXT, .. }),
        "{long:?}"
    );
    assert_eq!(
        issuer.compare(&[b' '; MAX_TEXT]),
        Err(NameMismatch::RdnCount {
            expected: 4,
            found: 0
        })
    );
}

#[test]
fn a_name_is_displayed_as_rfc_2253_has_it() {
    assert_eq!(
        first_authority().to_string(),
        r"2.5.4.97=NTRCZ-26439395,O=První certifikační autorita\, a.s.,CN=I.CA SSL EV CA/RSA 10/2017,C=CZ"
    );
    assert_eq!(name(&[]).to_string(), "");
    check(&name(&[]), "", true);
    check(&name(&[]), "C=NO", false);
}

#[test]
fn what_is_not_a_name_in_der_is_refused() {
    let check = |der: &[u8], expect: NameFault| {
        assert_eq!(Name::from_der(der).unwrap_err(), expect, "{der:02x?}")
    };
    check(&[], NameFault::NotASequence);
    check(&[0x31, 0], NameFault::NotASequence);
    check(&[0x30, 0, 0], NameFault::NotASequence);
    check(&[0x30, 2, 0x31, 0], NameFault::Rdn { rdn: 0 });
    check(&[0x30, 2, 0x30, 0], NameFault::Rdn { rdn: 0 });
    check(
        &element(0x30, &element(0x31, &element(0x30, &[6, 0, UTF8, 0]))),
        NameFault::AttributeType { rdn: 0 },
    );
    check(
        &element(0x30, &element(0x31, &element(0x30, &[6, 1, 0x55]))),
        NameFault::Rdn { rdn: 0 },
    );
    check(
        &element(
            0x30,
            &element(0x31, &element(0x30, &[6, 1, 0x55, UTF8, 0, UTF8, 0])),
        ),
        NameFault::Rdn { rdn: 0 },
    );
    let whole = der(&[&[(C, PRINTABLE, b"NO")], &[(O, UTF8, b"Bank")]]);
    for end in 0..whole.len() {
        assert!(Name::from_der(&whole[..end]).is_err());
    }
}

/// Compares 14 real certificates with their issuers as Java and OpenSSL print them. The project may not publish these certificates, so the
/// test reads them from a folder beside the project.
#[test]
fn sig_4_real_issuers_match_in_every_spelling_and_no_other() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/issuer-names.json"
    );
    let Ok(file) = std::fs::read(path) else {
        println!("skipped: no ../shared/data/issuer-names.json beside the project");
        return;
    };
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&file).unwrap();
    assert_eq!(entries.len(), 14);
    let issuers: Vec<Vec<u8>> = entries
        .iter()
        .map(|entry| {
            STANDARD
                .decode(entry["certificate"].as_str().unwrap())
                .unwrap()
        })
        .map(|der| {
            x509_parser::parse_x509_certificate(&der)
                .unwrap()
                .1
                .issuer()
                .as_raw()
                .to_vec()
        })
        .collect();
    for (entry, own) in entries.iter().zip(&issuers) {
        for text in entry["issuer"].as_object().unwrap().values() {
            let text = text.as_str().unwrap();
            let escaped = text.replace('\\', r"\\").replace('"', r#"\""#);
            let encoded =
                percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                    .to_string();
            let mojibake: String = text.bytes().map(char::from).collect();
            for other in &issuers {
                let name = Name::from_der(other).unwrap();
                for spelling in [
                    text,
                    &escaped,
                    &encoded,
                    &mojibake,
                    &text.to_uppercase(),
                    &name_of(own).to_string(),
                ] {
                    check(&name, spelling, own == other);
                }
            }
        }
    }
}

fn name_of(der: &[u8]) -> Name {
    Name::from_der(der).unwrap()
}
