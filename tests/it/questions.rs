//! docs/tpp/questions.md: each question is put to a gateway, and its answer alone says what the page promises. A test fails where the page
//! names a reason that no answer here has.

use crate::{
    bank::{Bank, parameter, request, unknown},
    harness::{
        Answer, Call, Gate, Protocol, Reply, Responder, Tpp, accepted,
        pki::{Ca, CaSpec, Issued, LeafSpec, QcType, Role},
        world,
    },
};
use openssl::base64::encode_block;
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};

const PAGE: &str = "docs/tpp/questions.md";

const OTHER: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";

const DAY: u64 = 24 * 3_600;

/// The reasons that the page names under a question.
fn named(question: usize) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join(PAGE)).unwrap();
    let (_, section) = page.split_once(&format!("\n**{question}. ")).unwrap();
    let section = section.split("\n**").next().unwrap();
    let quoted = section.split('`').skip(1).step_by(2);
    let reasons = portvakt::interface::Reason::ALL;
    let is_reason = |word: &&str| reasons.iter().any(|reason| reason.slug() == *word);
    quoted.filter(is_reason).map(str::to_owned).collect()
}

/// The answers to a question have the reasons that the page names, and no other.
fn answers(question: usize, answers: &[&Answer]) {
    let found: BTreeSet<_> = answers.iter().map(|answer| answer.reason()).collect();
    assert_eq!(found, named(question), "question {question}");
}

fn send(gate: &Gate, call: &Call) -> Answer {
    gate.send(call, Protocol::Http1)
}

/// The texts of all faults.
fn texts(answer: &Answer) -> String {
    let json = answer.json();
    let faults = json["faults"].as_array().unwrap();
    let texts = faults.iter().map(|fault| fault["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// The values of a member of all faults.
fn of_faults<'a>(json: &'a Value, member: &str) -> Vec<&'a str> {
    let faults = json["faults"].as_array().unwrap().iter();
    faults.filter_map(|fault| fault[member].as_str()).collect()
}

#[test]
fn the_signature() {
    let gate = Gate::start();
    // 1. The line that is wrong: the client signed another target.
    let own = gate.seal(&Call::accounts());
    let other = Call::accounts().altered(|request| request.target = "/v1/agreements".into());
    let wrong = send(
        &gate,
        &other.signing(&[
            "(request-target)",
            "date",
            "x-request-id",
            "psu-id",
            "tpp-redirect-uri",
        ]),
    );
    answers(1, &[&wrong]);
    let json = wrong.json();
    let verified = json["signingString"].as_str().unwrap();
    assert!(
        verified.starts_with("(request-target): get /v1/agreements\ndate: "),
        "{verified}"
    );
    assert!(
        !verified.contains(own.request.header("psu-id").unwrap()),
        "{verified}"
    );

    // 2. The clock, also where the signature is wrong as well.
    let late = Call::accounts()
        .off_by(-300)
        .signature(|signature| signature.replace("signature=\"", "signature=\"AAAA"));
    let (late, early) = (
        send(&gate, &late),
        send(&gate, &Call::accounts().off_by(90)),
    );
    answers(2, &[&late, &early]);
    assert_ne!(texts(&late), texts(&early).replace("90", "300"));
    for (answer, least) in [(&late, 299), (&early, 89)] {
        let text = texts(answer);
        let mut numbers = text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok());
        assert!(
            numbers.any(|seconds: u64| (least..least + 5).contains(&seconds)),
            "{text}"
        );
    }

    // 3. The header that is not covered.
    let uncovered = send(
        &gate,
        &Call::accounts().signing(&["date", "psu-id", "tpp-redirect-uri"]),
    );
    answers(3, &[&uncovered]);
    let text = texts(&uncovered);
    assert!(
        text.contains("x-request-id") && !text.contains("psu-id"),
        "{text}"
    );

    // 4. The issuer, first RDN first.
    let serial = world()
        .both
        .identity
        .key_id()
        .split_once(',')
        .unwrap()
        .0
        .to_owned();
    let reversed = r"C=NO,O=Portvakt Test CA\, AS,2.5.4.97=NTRNO-000000000,CN=Portvakt Test CA G1";
    let reversed = send(
        &gate,
        &Call::accounts().key_id(&format!("{serial},CA={reversed}")),
    );
    answers(4, &[&reversed]);
    let text = texts(&reversed);
    assert!(
        text.contains(
            r"CA=CN=Portvakt Test CA G1,2.5.4.97=NTRNO-000000000,O=Portvakt Test CA\, AS,C=NO"
        ),
        "{text}"
    );

    // 5. An encoded word around the whole value.
    let word = |value: &str| format!("=?utf-8?B?{}?=", encode_block(value.as_bytes()));
    accepted(&gate, &Call::accounts().signature(word));
    assert_eq!(named(5), BTreeSet::new());
}

#[test]
fn bodies_and_repetitions() {
    // 6. No body, no Digest; a body with one; a body that was written anew.
    let gate = Gate::start();
    accepted(&gate, &Call::accounts());
    let bare = Call::payment().altered(|request| {
        request
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("digest"));
    });
    let bare = send(&gate, &bare);
    let json = bare.json();
    assert_eq!(of_faults(&json, "header"), ["Digest"], "{json}");
    let anew = |body: &mut Option<Vec<u8>>| body.as_mut().unwrap().push(b' ');
    let written = send(
        &gate,
        &Call::payment().altered(move |request| anew(&mut request.body)),
    );
    answers(6, &[&bare, &written]);

    // 7. X-Request-ID, used a second time.
    let once = Call::payment().with("X-Request-ID", "used-once");
    assert_eq!(send(&gate, &once).status, 200);
    let again = send(&gate, &once);
    assert_eq!(again.status, 409);
    answers(7, &[&again]);

    // 8. Four calls, and too many of any kind.
    let balances: Vec<_> = (0..5).map(|_| send(&gate, &Call::balances())).collect();
    let exceeded = balances.last().unwrap();
    assert_eq!(exceeded.status, 429);
    let wait = exceeded.header("retry-after").unwrap();
    assert!((1..=DAY).contains(&wait.parse().unwrap()), "{wait}");
    let limit = exceeded.header("ratelimit").unwrap();
    assert!(limit.contains(&format!("t={wait}")), "{limit}");
    let busy = Gate::builder()
        .line("rates: {per_tpp: 1, per_address: off}")
        .start();
    let limited = busy.exceed(Call::plain);
    assert_eq!(limited.status, 429);
    assert!(limited.header("retry-after").is_some());
    answers(8, &[exceeded, &limited]);
    accepted(&gate, &Call::balances().present());
}

#[test]
fn the_psu() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let tpp = &world().both;
    let list = || Call::new("GET", "/v1/accounts").with("PSU-ID", OTHER);
    let of_both = json!({"tpp": tpp.id(), "psu_id": OTHER});
    // 9. Why SCA is needed.
    let nobody = send(&gate, &Call::accounts().without("PSU-ID"));
    let foreign = send(&gate, &list());
    gate.introduce(of_both.clone());
    let corporate = list().with("PSU-Context", "CORPORATE");
    let other_context = send(
        &gate,
        &corporate.with("PSU-Corporate-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c33ff"),
    );
    let ended = send(&gate, &list().present().with("TPP-Session-ID", "ended"));
    accepted(&gate, &list().only(Protocol::Http1));
    clock.set(Timestamp::from_unix(1_790_000_000 + 181 * DAY));
    let old = send(&gate, &list());
    let all = [&nobody, &foreign, &other_context, &ended, &old];
    answers(9, &all);
    let distinct: BTreeSet<_> = all.iter().map(|answer| texts(answer)).collect();
    assert_eq!(distinct.len(), all.len(), "{distinct:?}");
    for answer in all {
        assert!(answer.json()["_links"]["scaRedirect"]["href"].is_string());
    }

    // 10. 180 days, and 90 without the PSU.
    assert!(texts(&old).contains("180 days"), "{}", texts(&old));
    gate.introduce(of_both);
    let transactions = list().at("/v1/accounts/42/transactions?dateFrom=2026-01-01");
    let too_old = send(&gate, &transactions);
    answers(10, &[&too_old]);
    assert!(texts(&too_old).contains("90 days"), "{}", texts(&too_old));
}

/// 11. Two SCAs of one PSU.
#[test]
fn the_psu_id_stays() {
    let (gate, bank) = Bank::behind_a_gate();
    let sca = |session: Option<&str>| {
        let call = unknown("GET", "/v1/accounts").without("TPP-Session-ID");
        let call = session.map_or(call.clone(), |session| call.with("TPP-Session-ID", session));
        let last = bank.last_page(&request(&gate, &call), "01010112345");
        let redirect = bank.submit(&format!("{last}&step=next"));
        ["psu-id", "tpp-session-id"].map(|name| parameter(&redirect, name))
    };
    let [first, second, own] = [sca(None), sca(None), sca(Some("own"))];
    assert!(first[0] == second[0] && second[0] == own[0]);
    assert_ne!(first[1], second[1]);
    assert_eq!(own[1], "own");
    assert_eq!(named(11), BTreeSet::new());
}

fn leaf(change: impl FnOnce(&mut LeafSpec)) -> Call {
    let mut spec = world().leaf();
    change(&mut spec);
    Call::accounts().by(&world().issue(&spec))
}

/// 12. 403 with the exact reason.
#[test]
fn the_certificate() {
    let gate = Gate::start();
    let stranger = Ca::root(&CaSpec::development_root()).unwrap();
    let untrusted = Call::accounts().by(&Tpp::of(stranger.issue(&world().leaf()).unwrap()));
    let past = time::OffsetDateTime::now_utc() - time::Duration::DAY;
    let expired = leaf(|spec| spec.not_after = past);
    let person = leaf(|spec| spec.qc_type = Some(QcType::Esign));
    let plain = leaf(|spec| spec.roles = None);
    let role = leaf(|spec| spec.roles = Some(vec![Role::PaymentInitiation]));
    let mut found: Vec<_> = [untrusted, expired, person, plain, role]
        .iter()
        .map(|call| send(&gate, call))
        .collect();

    let serial: &[u8] = &[0x41, 2];
    let issuing = Issued {
        der: world().issuing.der().to_vec(),
        pem: world().issuing.pem(),
        key_pem: world().issuing_key.clone(),
    };
    let responder = Responder::start(&world().issuing.pem(), &issuing, &[], &[serial]);
    let checking = Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
        .start();
    found.push(send(
        &checking,
        &leaf(|spec| {
            spec.serial = Some(serial.to_vec());
            spec.ocsp_urls = vec![responder.url()];
        }),
    ));

    let version = Clock::System
        .now()
        .to_string()
        .replace(|c: char| !c.is_ascii_digit(), "");
    let entity = json!({"CA_OwnerID": "NO_FSA", "EntityCode": "NO_FSA!7999999", "EntityType": "PSD_AISP",
        "Properties": [{"ENT_NAT_REF_COD": "999999"}, {"ENT_AUT": ["2019-01-01"]}],
        "Services": [{"NO": ["PS_080"]}], "__EBA_EntityVersion": format!("{version}000")});
    let registered = Gate::builder()
        .file(
            "eba.json",
            json!([[{"__EBA_Disclaimer": ["none"]}], [entity]]).to_string(),
        )
        .file("tpps.yaml", "allow: []\nblock: [{tpp: PSDNO-FSA-111111}]\n")
        .line("registers: {check: on, eba: eba.json, local: tpps.yaml}")
        .start();
    found.push(send(&registered, &Call::accounts()));
    found.push(send(&registered, &Call::accounts().by(&world().aisp)));
    for answer in &found {
        assert_eq!(answer.status, 403, "{}", answer.json());
    }
    answers(12, &found.iter().collect::<Vec<_>>());
}

#[test]
fn the_bank() {
    // 13. An answer of the core's own has no reason; the gateway's has.
    let gate = Gate::start();
    gate.upstream()
        .reply(Reply::json(404, r#"{"code": "RESOURCE_UNKNOWN"}"#));
    let own = send(&gate, &Call::plain());
    assert_eq!((own.status, own.reason()), (404, String::new()));
    gate.upstream()
        .reply(Reply::Raw(b"no HTTP\r\n\r\n".to_vec()));
    let nonsense = send(&gate, &Call::plain());
    let impatient = Gate::builder().upstream("read_timeout: 1s").start();
    impatient.upstream().reply(Reply::Silence);
    let silence = send(&impatient, &Call::plain());
    // 14. The core may have executed it.
    let lost = send(&impatient, &Call::payment());
    assert_eq!(lost.status, 504);
    answers(14, &[&lost]);
    gate.upstream().stop();
    let down = send(&gate, &Call::plain());
    answers(13, &[&nonsense, &silence, &down]);

    // 15. What support needs.
    let call = Call::plain().with("X-Request-ID", "support-1");
    let [one, other] = [send(&gate, &call), send(&gate, &call)];
    for answer in [&one, &other] {
        assert_eq!(answer.header("x-request-id"), Some("support-1"));
    }
    let id = |answer: &Answer| answer.json()["id"].as_str().unwrap().to_owned();
    assert_ne!(id(&one), id(&other));
    assert_eq!(named(15), BTreeSet::new());
}

//= SBX-9 accepted
#[test]
fn the_app() {
    // 17. A PSU without the app: the same redirect, by the default flow.
    let (gate, bank) = Bank::behind_a_gate();
    let call = unknown("GET", "/v1/accounts").with("TPP-Redirect-Preferred", "false");
    let token = request(&gate, &call);
    let app = bank.last_page(&token, "01010112345");
    assert!(!app.contains("account="), "{app}");
    let back = bank.submit(&bank.without_app(&token, &app));
    assert_eq!(parameter(&back, "context"), "PRIVATE");
    let psu = parameter(&back, "psu-id");
    let read = unknown("GET", "/v1/accounts").with("PSU-ID", &psu);
    let answer = send(&gate, &read);
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(named(17), BTreeSet::new());
}
