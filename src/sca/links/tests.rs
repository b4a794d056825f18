use super::*;
use crate::interface::{
    TppId,
    headers::{CorporateId, PsuContext, PsuId, RedirectUri, SessionId},
};
use crate::state::{Claimed, Known};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

fn links(keys: &str) -> Links {
    Links::new(
        "https://bank.example/sca",
        Duration::from_secs(900),
        Environment::Sandbox,
        TokenKeys::parse(keys).unwrap(),
    )
}

fn key(id: u32, byte: u8) -> String {
    let secret = base64::prelude::BASE64_STANDARD.encode([byte; 32]);
    format!("{id:08x} {secret}\n")
}

fn session(text: &str) -> SessionId {
    SessionId::from_text(text).unwrap()
}

fn uri(text: &str) -> RedirectUri {
    RedirectUri::from_text(text, Environment::Sandbox).unwrap()
}

fn pending() -> Pending {
    Pending {
        environment: Environment::Sandbox,
        tpp: TppId::parse("PSDNO-FSA-123456").unwrap(),
        tpp_name: "Tredjepart AS".into(),
        session: session("a-session"),
        redirect_uri: uri("https://tpp.example/back?a=b"),
        preferred: true,
        operation: "account-list".into(),
        resource: None,
        asks_consent: true,
        context: None,
        corporate: None,
        psu: Some(Known::by_bank(PsuId::from_bits(
            0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab,
        ))),
    }
}

fn token(link: &str) -> &str {
    link.split_once("request=").unwrap().1
}

#[test]
fn the_token_is_one_parameter_of_the_page() {
    let link = links(&key(1, 7)).link(&pending(), NOW).unwrap();
    assert!(
        link.starts_with("https://bank.example/sca?request="),
        "{link}"
    );
    let with_query = Links::new(
        "https://bank.example/sca?lang=nb",
        Duration::from_secs(900),
        Environment::Sandbox,
        TokenKeys::parse(&key(1, 7)).unwrap(),
    );
    let link = with_query.link(&pending(), NOW).unwrap();
    assert!(
        link.starts_with("https://bank.example/sca?lang=nb&request="),
        "{link}"
    );
    assert!(
        token(&link)
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    );
    assert_eq!(
        with_query.open(token(&link), NOW).unwrap().pending,
        pending()
    );
}

//= SCA-12 accepted
#[test]
fn a_token_opens_until_its_last_second() {
    let links = links(&key(1, 7));
    let link = links.link(&pending(), NOW).unwrap();
    let after = |seconds| {
        let then = Timestamp::from_unix(NOW.unix() + seconds);
        links.open(token(&link), then).map(|opened| opened.expires)
    };
    let expires = Timestamp::from_unix(NOW.unix() + 900);
    assert_eq!(after(0), Ok(expires));
    assert_eq!(after(899), Ok(expires));
    assert_eq!(after(900), Err(TokenFault::Expired));
}

#[test]
fn every_link_has_an_id_of_its_own() {
    let links = links(&key(1, 7));
    let [one, other] = [(); 2].map(|()| links.link(&pending(), NOW).unwrap());
    let id = |link: &str| links.open(token(link), NOW).unwrap().id;
    assert_ne!(one, other);
    assert_ne!(id(&one), id(&other));
}

//= SCA-12 refused
#[test]
fn a_token_that_was_altered_does_not_open() {
    let links = links(&key(1, 7));
    let link = links.link(&pending(), NOW).unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(token(&link)).unwrap();
    for at in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[at / 8] ^= 1 << (at % 8);
        let altered = URL_SAFE_NO_PAD.encode(altered);
        assert_eq!(
            links.open(&altered, NOW),
            Err(TokenFault::NotOurs),
            "bit {at}"
        );
    }
    for length in 0..bytes.len() {
        let cut = URL_SAFE_NO_PAD.encode(&bytes[..length]);
        assert_eq!(links.open(&cut, NOW), Err(TokenFault::NotOurs), "{length}");
    }
    for other in [
        "",
        "a",
        "=",
        "\u{e6}",
        &format!("{}=", token(&link)),
        &"A".repeat(100_000),
    ] {
        assert_eq!(links.open(other, NOW), Err(TokenFault::NotOurs));
    }
}

#[test]
fn nothing_personal_can_be_read() {
    let link = links(&key(1, 7)).link(&pending(), NOW).unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(token(&link)).unwrap();
    let psu = pending().psu.unwrap().get().to_be_bytes();
    for clear in [&psu[..], b"PSDNO", b"a-session", b"tpp.example", b"account"] {
        assert!(!bytes.windows(clear.len()).any(|window| window == clear));
    }
    let shown = format!("{:?} {:?}", pending(), links(&key(1, 7)));
    assert!(
        !shown.contains("a-session") && !shown.contains("0192"),
        "{shown}"
    );
    assert!(!shown.contains(&key(1, 7)[9..52]), "{shown}");
}

#[test]
fn another_environment_is_told_apart() {
    let production = Links {
        environment: Environment::Production,
        ..links(&key(1, 7))
    };
    let link = links(&key(1, 7)).link(&pending(), NOW).unwrap();
    assert_eq!(
        production.open(token(&link), NOW),
        Err(TokenFault::OtherEnvironment)
    );
}

#[test]
fn the_first_key_seals_and_both_open() {
    let both = links(&(key(1, 7) + &key(2, 8)));
    let first = links(&key(1, 7)).link(&pending(), NOW).unwrap();
    let second = links(&key(2, 8)).link(&pending(), NOW).unwrap();
    assert!(both.open(token(&first), NOW).is_ok());
    assert!(both.open(token(&second), NOW).is_ok());
    let sealed = both.link(&pending(), NOW).unwrap();
    assert!(links(&key(1, 7)).open(token(&sealed), NOW).is_ok());
    assert_eq!(
        links(&key(2, 8)).open(token(&sealed), NOW),
        Err(TokenFault::NotOurs)
    );
    // The key id alone does not open it.
    assert_eq!(
        links(&key(1, 9)).open(token(&sealed), NOW),
        Err(TokenFault::NotOurs)
    );
}

fn any_pending() -> impl Strategy<Value = Pending> {
    let context = prop_oneof![
        Just(None),
        Just(Some(PsuContext::Private)),
        Just(Some(PsuContext::Corporate))
    ];
    let redirect = "https://[a-z]{1,20}\\.example/[-a-z0-9._~/]{0,500}";
    let texts = (
        "PSD[A-D]{2}-[A-Z]{2,8}-[!-~]{1,40}",
        "[!-~]{1,128}",
        redirect,
        ".{0,40}",
        ".{0,40}",
    );
    let options = (
        proptest::option::of(".{0,80}"),
        any::<Option<u128>>(),
        any::<Option<u128>>(),
    );
    (texts, options, any::<[bool; 2]>(), context).prop_map(
        |(
            (tpp, session, redirect_uri, operation, tpp_name),
            (resource, corporate, psu),
            [preferred, asks_consent],
            context,
        )| Pending {
            environment: Environment::Sandbox,
            tpp: TppId::parse(&tpp).unwrap(),
            tpp_name,
            session: self::session(&session),
            redirect_uri: uri(&redirect_uri),
            preferred,
            operation,
            resource,
            asks_consent,
            context,
            corporate: corporate.map(|id| Claimed::by_tpp(CorporateId::from_bits(id))),
            psu: psu.map(|id| Known::by_bank(PsuId::from_bits(id))),
        },
    )
}

proptest! {
    //= SCA-15 accepted
    #[test]
    fn every_field_survives(pending in any_pending(), at in 0..u64::MAX / 2) {
        let links = links(&key(1, 7));
        let at = Timestamp::from_unix(at);
        let link = links.link(&pending, at).unwrap();
        let opened = links.open(token(&link), at).unwrap();
        prop_assert_eq!(opened.pending, pending);
        prop_assert_eq!(opened.expires.unix(), at.unix() + 900);
    }

    #[test]
    fn any_bytes_are_content_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(content) = token::read(&bytes) {
            let mut again = Vec::new();
            token::write(&content.id, content.expires, &content.pending, &mut again).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }
}
