//! `portvakt tpp verify`, with generated certificates.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{SignOptions, SignedRequest, TppCommand, TppFault, TppIdentity, Unsigned, run, sign};
use clap::Parser;
use portvakt_development_pki::{Ca, CaSpec, Issued, LeafSpec};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

/// A time within the validity of the development PKI.
const NOW: u64 = 1_767_225_600;

/// The output of `verify` at [`NOW`], and whether every check passed.
fn verified(kind: &str, file: &[u8], vouches: &[(&str, &str)]) -> Result<(String, bool), TppFault> {
    let folder = tempfile::tempdir().unwrap();
    let message = folder.path().join("message");
    std::fs::write(&message, file).unwrap();
    let mut words: Vec<String> = ["tpp", "verify", kind, message.to_str().unwrap()]
        .map(str::to_owned)
        .to_vec();
    for (number, (option, content)) in vouches.iter().enumerate() {
        let file = folder.path().join(format!("{number}.pem"));
        std::fs::write(&file, content).unwrap();
        words.extend([(*option).to_owned(), file.to_str().unwrap().to_owned()]);
    }
    let line = VerifyLine::try_parse_from(words).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let mut out = Vec::new();
    let status = run(&line.command, now, &mut out)?;
    Ok((String::from_utf8(out).unwrap(), status == ExitCode::SUCCESS))
}

#[derive(Parser)]
struct VerifyLine {
    #[command(subcommand)]
    command: TppCommand,
}

/// Asserts that a message is not verified, with these texts.
#[track_caller]
fn fails(kind: &str, file: &[u8], vouches: &[(&str, &str)], wanted: &[&str]) {
    let (text, good) = verified(kind, file, vouches).unwrap();
    assert!(!good, "{text}");
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

/// A certification authority, and leaves that it issues.
static AUTHORITY: LazyLock<Ca> = LazyLock::new(|| Ca::root(&CaSpec::development_root()).unwrap());

fn leaf(change: impl FnOnce(&mut LeafSpec)) -> Issued {
    let mut spec = LeafSpec::default();
    change(&mut spec);
    AUTHORITY.issue(&spec).unwrap()
}

static SIGNER: LazyLock<Issued> = LazyLock::new(|| leaf(|_| {}));

fn signer_of(issued: &Issued) -> TppIdentity {
    TppIdentity::from_pem(&issued.pem, &issued.key_pem).unwrap()
}

fn raw_request(signed: &SignedRequest) -> String {
    let lines = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let lines: String = lines.collect();
    format!(
        "{} {} HTTP/1.1\r\n{lines}\r\n{{}}",
        signed.method, signed.target
    )
}

fn signed_now(issued: &Issued) -> SignedRequest {
    let given = [("Host", "a:1"), ("PSU-ID", "p")];
    let request = Unsigned {
        method: "POST".into(),
        target: "/v1/payments/x?allowLogicalDuplicate=true".into(),
        headers: given
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
        body: Some(b"{}".to_vec()),
    };
    let options = SignOptions::at(UNIX_EPOCH + Duration::from_secs(NOW));
    sign(&signer_of(issued), request, &options).unwrap()
}

#[test]
fn a_saved_request_is_verified() {
    let ca = AUTHORITY.pem();
    let by_ca = [("--ca", ca.as_str())];
    let signed = signed_now(&SIGNER);
    for vouches in [by_ca, [("--cert", SIGNER.pem.as_str())]] {
        let (text, good) =
            verified("--request", raw_request(&signed).as_bytes(), &vouches).unwrap();
        assert!(good, "{text}");
        assert!(text.contains("psu-id: p") && text.contains("Digest        holds"));
    }
    let bent = |change: &dyn Fn(&mut SignedRequest)| {
        let mut bent = signed.clone();
        change(&mut bent);
        raw_request(&bent).into_bytes()
    };
    let other = bent(&|request| request.set_header("PSU-ID", "q"));
    fails("--request", &other, &by_ca, &["(signature-mismatch)"]);
    let absent = bent(&|request| {
        request.set_header("PSU-Corporate-ID", "c");
        request.remove_header("X-Request-ID");
    });
    let found = ["(signature-malformed)", "(signature-coverage)"];
    fails("--request", &absent, &by_ca, &found);
    let body = raw_request(&signed).replace("{}", "{ }");
    fails("--request", body.as_bytes(), &by_ca, &["(digest-mismatch)"]);
    // HDR-15, on a name of each kind.
    for name in ["Signature", "Date", "Digest", "TPP-Signature-Certificate"] {
        let value = signed.header(name).unwrap().to_owned();
        let twice = bent(&|request| request.headers.push((name.to_owned(), value.clone())));
        let text = format!("{name} may stand once (header-duplicated)");
        fails("--request", &twice, &by_ca, &[&text]);
    }
    let no_date = bent(&|request| request.set_header("Date", "yesterday"));
    fails("--request", &no_date, &by_ca, &["(header-malformed)"]);
    let folded = raw_request(&signed).replace("PSU-ID: p", "PSU-ID : p");
    fails(
        "--request",
        folded.as_bytes(),
        &by_ca,
        &["(malformed-request)"],
    );
    // curl -v has no body.
    let lines = raw_request(&signed);
    let lines = lines.trim_end_matches("{}").trim_end();
    let verbose: String = lines.lines().map(|line| format!("> {line}\r\n")).collect();
    let verbose = format!("{verbose}> Content-Length: 2\r\n> \r\n");
    fails(
        "--request",
        verbose.as_bytes(),
        &by_ca,
        &["has not the body"],
    );
}

/// The certificate, as the gateway judges that of a request.
#[test]
fn nobody_vouches_for_a_strangers_key() {
    let ca = AUTHORITY.pem();
    let by_ca = [("--ca", ca.as_str())];
    let day = 86_400;
    let at = |seconds: u64| {
        time::OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap()).unwrap()
    };
    let table = [
        (
            leaf(|spec| spec.not_after = at(NOW - day)),
            "certificate-expired",
        ),
        (
            leaf(|spec| spec.not_before = at(NOW + day)),
            "certificate-not-yet-valid",
        ),
        (
            leaf(|spec| spec.key_usages = vec![]),
            "certificate-wrong-type",
        ),
        (leaf(|spec| spec.roles = None), "certificate-not-psd2"),
        (
            Ca::root(&CaSpec::development_root())
                .unwrap()
                .issue(&LeafSpec::default())
                .unwrap(),
            "certificate-untrusted",
        ),
    ];
    for (issued, reason) in &table {
        let message = raw_request(&signed_now(issued));
        let wanted = [format!("({reason})"), "nobody vouches".to_owned()];
        let wanted = wanted.each_ref().map(String::as_str);
        fails("--request", message.as_bytes(), &by_ca, &wanted);
        // Trust in the certificate itself replaces its chain and nothing else.
        let by_itself = [("--cert", issued.pem.as_str())];
        let (text, good) = verified("--request", message.as_bytes(), &by_itself).unwrap();
        assert_eq!(good, *reason == "certificate-untrusted", "{text}");
    }
    let message = raw_request(&signed_now(&SIGNER));
    let other = leaf(|_| {});
    let wanted = [
        "another certificate than --cert",
        "(signature-key-mismatch)",
    ];
    fails(
        "--request",
        message.as_bytes(),
        &[("--cert", other.pem.as_str())],
        &wanted,
    );
    // One of the three is required.
    for words in [
        &["tpp", "verify"][..],
        &["tpp", "verify", "--request", "x"],
        &["tpp", "verify", "--cert", "x"],
        &[
            "tpp",
            "verify",
            "--request",
            "x",
            "--cert",
            "x",
            "--ca",
            "x",
        ],
    ] {
        assert!(VerifyLine::try_parse_from(words).is_err(), "{words:?}");
    }
    let none = verified("--request", message.as_bytes(), &[("--ca", "no PEM")]);
    assert!(matches!(none, Err(TppFault::NoCertificate(_))));
}

#[test]
fn sig_12_a_saved_answer_is_verified_by_the_same_rules() {
    let body = "{\"a\":1}";
    let digest = crate::interface::headers::digest::sha256(body.as_bytes());
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    let identity = signer_of(&SIGNER);
    let answer = |listed: &str| {
        let values = [
            ("date", date),
            ("digest", digest.as_str()),
            ("x-request-id", "r"),
            ("(request-target)", "get "),
        ];
        let lines = listed.split(' ').map(|name| {
            let value = values.iter().find(|(known, _)| *known == name);
            format!("{name}: {}", value.unwrap().1)
        });
        let string = lines.collect::<Vec<_>>().join("\n");
        let signature = identity.signature(&string).unwrap();
        format!(
            "HTTP/1.1 200 OK\nDate: {date}\nDigest: {digest}\nX-Request-ID: r\nContent-Length: 7\nTPP-Signature-Certificate: {}\nSignature: keyId=\"{}\",algorithm=\"rsa-sha256\",headers=\"{listed}\",signature=\"{signature}\"\n\n{body}",
            identity.certificate_header(),
            identity.key_id()
        )
    };
    let ca = AUTHORITY.pem();
    let by_ca = [("--ca", ca.as_str())];
    let good = answer("date digest x-request-id");
    let (text, holds) = verified("--response", good.as_bytes(), &by_ca).unwrap();
    assert!(holds, "{text}");
    for listed in [
        "date x-request-id",
        "digest x-request-id",
        "date digest",
        "date",
    ] {
        let fewer = answer(listed);
        fails(
            "--response",
            fewer.as_bytes(),
            &by_ca,
            &["(signature-coverage)"],
        );
    }
    let target = answer("(request-target) date digest x-request-id");
    let wanted = ["which an answer does not have (signature-malformed)"];
    fails("--response", target.as_bytes(), &by_ca, &wanted);
    let undigested = good.replace(&format!("Digest: {digest}\n"), "");
    fails(
        "--response",
        undigested.as_bytes(),
        &by_ca,
        &["are not authenticated"],
    );
    let signature = good
        .lines()
        .find(|line| line.starts_with("Signature"))
        .unwrap();
    let twice = good.replace(signature, &format!("{signature}\n{signature}"));
    fails(
        "--response",
        twice.as_bytes(),
        &by_ca,
        &["Signature may stand once"],
    );
    let bare = b"HTTP/1.1 200 OK\n\n{}";
    let wanted = [
        "(signature-missing)",
        "(header-missing)",
        "not authenticated",
    ];
    fails(
        "--response",
        bare,
        &[("--cert", SIGNER.pem.as_str())],
        &wanted,
    );
    fails(
        "--response",
        bare,
        &by_ca,
        &["name the signer's with --cert"],
    );
    assert!(matches!(
        verified("--response", b"", &by_ca),
        Err(TppFault::Saved { .. })
    ));
}
