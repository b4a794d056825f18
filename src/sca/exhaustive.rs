//! Tokens over every length of each text, every flag, every truncation and every change of a bit or a character (SCA-12). The content is
//! framed here anew, byte by byte.
//!
//! By default sealed tokens have the shortest and the longest texts; with `PORTVAKT_EXHAUST=all` (`make exhaust`) those of every length.

use super::{
    Links, Pending, TokenFault, TokenKeys,
    token::{self, Content},
};
use crate::{
    clock::Timestamp,
    interface::{
        headers::{PsuContext, PsuId, RedirectUri},
        operations::Environment,
    },
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);
const ID: [u8; 16] = [0xa5; 16];
const AGREEMENT: u128 = 0xff;
const PSU: u128 = 0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab;

/// The texts of a token: TPP, session, redirect URI, operation, resource and name of the TPP.
type Texts<'a> = [&'a str; 6];

const TEXTS: Texts<'static> = [
    "PSDNO-FSA-123456",
    "a-session",
    "https://tpp.example/back?a=b",
    "account-list",
    "/payments/17",
    "Tredjepart AS",
];

/// Every flag but that of the corporate context, which excludes the private one.
const ALL: u8 = 0b1101_1111;

/// The bytes of a content; of the resource and the numbers only those that the flags say.
fn framed(flags: u8, texts: Texts<'_>) -> Vec<u8> {
    let mut bytes = ID.to_vec();
    bytes.extend(NOW.unix().to_be_bytes());
    bytes.push(flags);
    if flags & 64 != 0 {
        bytes.extend(AGREEMENT.to_be_bytes());
    }
    if flags & 128 != 0 {
        bytes.extend(PSU.to_be_bytes());
    }
    for (index, text) in texts.into_iter().enumerate() {
        let is_resource = index == 4;
        let is_name = index == 5;
        if is_resource && flags & 8 == 0 || is_name && text.is_empty() {
            continue;
        }
        let length = u16::try_from(text.len()).unwrap();
        bytes.extend(length.to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The texts with another one at this place.
fn with(index: usize, text: &str) -> Texts<'_> {
    let mut texts: Texts<'_> = TEXTS;
    texts[index] = text;
    texts
}

fn rewritten(content: &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    token::write(&content.id, content.expires, &content.pending, &mut bytes).unwrap();
    bytes
}

/// The texts of a content that was read.
fn texts_of(pending: &Pending) -> Texts<'_> {
    [
        pending.tpp.as_str(),
        pending.session.as_str(),
        pending.redirect_uri.as_str(),
        &pending.operation,
        pending.resource.as_deref().unwrap_or_default(),
        &pending.tpp_name,
    ]
}

/// Reads a content that holds these texts and nothing else.
fn assert_read(flags: u8, texts: Texts<'_>) -> Content {
    let bytes = framed(flags, texts);
    let content = token::read(&bytes).unwrap();
    assert_eq!((content.id, content.expires), (ID, NOW));
    // Not by `assert_eq`, which would show 64 KiB.
    assert!(texts_of(&content.pending) == texts);
    assert!(rewritten(&content) == bytes);
    content
}

//= SCA-12 accepted
//= SCA-12 refused
#[test]
fn each_set_of_flags() {
    for flags in 0..=u8::MAX {
        let is = |bit: u8| flags & bit != 0;
        for name in ["", TEXTS[5]] {
            let mut texts = with(5, name);
            if is(16) && is(32) {
                assert_eq!(token::read(&framed(flags, texts)), None, "{flags}");
                continue;
            }
            if !is(8) {
                texts[4] = "";
            }
            let pending = assert_read(flags, texts).pending;
            let found = [
                pending.environment == Environment::Production,
                pending.preferred,
                pending.asks_consent,
                pending.resource.is_some(),
                pending.context == Some(PsuContext::Private),
                pending.context == Some(PsuContext::Corporate),
                pending.corporate.is_some(),
            ];
            let expected = [1, 2, 4, 8, 16, 32, 64].map(is);
            assert_eq!(found, expected, "{flags}");
            let psu = is(128).then(|| PsuId::from_bits(PSU));
            assert_eq!(pending.psu.map(|id| id.get()), psu, "{flags}");
        }
    }
}

/// HDR-7 and HDR-8 bound these texts.
//= SCA-12 accepted
//= SCA-12 refused
#[test]
fn sessions_and_redirect_uris_of_each_length() {
    let long = "s".repeat(200);
    for length in 0..=long.len() {
        let texts = with(1, &long[..length]);
        match (1..=128).contains(&length) {
            true => drop(assert_read(ALL, texts)),
            false => assert_eq!(token::read(&framed(ALL, texts)), None, "{length}"),
        }
    }
    let long = format!("https://tpp.example/{}", "a".repeat(2_000));
    for length in 0..=long.len() {
        let uri = &long[..length];
        let is_uri = RedirectUri::from_text(uri, Environment::Production).is_ok();
        assert!(!is_uri || length <= 2_000, "{length}");
        assert!(is_uri || !(20..=2_000).contains(&length), "{length}");
        let texts = with(2, uri);
        match is_uri {
            true => drop(assert_read(ALL, texts)),
            false => assert_eq!(token::read(&framed(ALL, texts)), None, "{length}"),
        }
    }
}

/// A text of every length that two bytes can say, and of one more.
fn each_length_of(index: usize) {
    let long = "x".repeat(1 << 16);
    for length in 0..1 << 16 {
        assert_read(ALL, with(index, &long[..length]));
    }
    let mut pending = assert_read(ALL, TEXTS).pending;
    match index {
        3 => pending.operation = long,
        4 => pending.resource = Some(long),
        _ => pending.tpp_name = long,
    }
    assert_eq!(token::write(&ID, NOW, &pending, &mut Vec::new()), None);
}

//= SCA-12 accepted
#[test]
fn operations_of_each_length() {
    each_length_of(3);
}

//= SCA-12 accepted
#[test]
fn resources_of_each_length() {
    each_length_of(4);
}

//= SCA-12 accepted
#[test]
fn names_of_each_length() {
    each_length_of(5);
}

//= SCA-12 refused
#[test]
fn a_content_that_is_cut_or_longer() {
    let bytes = framed(ALL, TEXTS);
    // Tokens of an earlier version ended before the name.
    let nameless = framed(ALL, with(5, ""));
    for length in 0..bytes.len() {
        let read = token::read(&bytes[..length]);
        assert_eq!(read.is_some(), length == nameless.len(), "{length}");
    }
    for byte in 0..=u8::MAX {
        for begin in [&bytes, &nameless] {
            let longer = [&begin[..], &[byte]].concat();
            assert_eq!(token::read(&longer), None, "{byte}");
        }
    }
}

/// The seal keeps such bytes away; what is read of them is at least all of them. TPP identities have one letter case.
#[test]
fn a_content_with_another_bit_or_length() {
    let bytes = framed(ALL, TEXTS);
    let judge = |altered: &[u8]| {
        if let Some(content) = token::read(altered) {
            assert!(rewritten(&content).eq_ignore_ascii_case(altered));
        }
    };
    for bit in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        judge(&altered);
    }
    // Behind id, expiry, flags and both numbers.
    let mut at = 16 + 8 + 1 + 2 * 16;
    for text in TEXTS {
        for length in 0..=u16::MAX {
            let mut altered = bytes.clone();
            altered[at..at + 2].copy_from_slice(&length.to_be_bytes());
            judge(&altered);
        }
        at += 2 + text.len();
    }
    assert_eq!(at, bytes.len());
}

fn links() -> Links {
    let key = |id: u32, byte: u8| format!("{id:08x} {}\n", BASE64_STANDARD.encode([byte; 32]));
    let keys = TokenKeys::parse(&(key(1, 7) + &key(2, 8))).unwrap();
    let lifetime = Duration::from_secs(900);
    Links::new(
        "https://bank.example/sca",
        lifetime,
        Environment::Sandbox,
        keys,
    )
}

/// A token of a content of the sandbox.
fn sealed(links: &Links, flags: u8, texts: Texts<'_>) -> (String, Pending) {
    let pending = token::read(&framed(flags, texts)).unwrap().pending;
    let link = links.link(&pending, NOW).unwrap();
    let token = link.strip_prefix("https://bank.example/sca?request=");
    (token.unwrap().to_owned(), pending)
}

/// A token of every length that is read: 64 KiB of characters at most, of which an encoded byte takes 4/3.
//= SCA-12 accepted
//= SCA-12 refused
#[test]
fn sealed_tokens_of_each_length() {
    const FLAGS: u8 = ALL & !1;
    let links = links();
    let long = "x".repeat(1 << 16);
    // Key id, nonce and tag.
    let around = 4 + 12 + 16 + framed(FLAGS, with(4, "")).len();
    let most = 48 * 1_024 - around;
    let is_whole = std::env::var("PORTVAKT_EXHAUST").as_deref() == Ok("all");
    let lengths = (0..=most + 100).filter(|length| {
        let is_near = *length + 100 > most;
        is_whole || is_near || *length < 8 * 1_024
    });
    for length in lengths {
        let (token, pending) = sealed(&links, FLAGS, with(4, &long[..length]));
        assert_eq!(token.len(), ((around + length) * 4).div_ceil(3));
        let opened = links.open(&token, NOW).map(|opened| opened.pending);
        let expected = match length <= most {
            true => Ok(pending),
            false => Err(TokenFault::NotOurs),
        };
        assert!(opened == expected, "{length}");
    }
}

//= SCA-12 refused
#[test]
fn sealed_tokens_that_were_altered() {
    let links = links();
    for (flags, name) in [(0, ""), (ALL & !1, TEXTS[5])] {
        let (token, pending) = sealed(&links, flags, with(5, name));
        assert_eq!(links.open(&token, NOW).unwrap().pending, pending);
        let refused = |altered: &str| {
            let opened = links.open(altered, NOW);
            assert_eq!(opened, Err(TokenFault::NotOurs), "{altered}");
        };
        for place in 0..token.len() {
            let (before, rest) = (&token[..place], &token[place..]);
            refused(before);
            let after = &rest[1..];
            refused(&format!("{before}{after}"));
            for character in (0..128_u8).map(char::from) {
                if !rest.starts_with(character) {
                    refused(&format!("{before}{character}{after}"));
                }
                refused(&format!("{before}{character}{rest}"));
            }
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            refused(&BASE64_URL_SAFE_NO_PAD.encode(altered));
        }
        for place in 0..bytes.len() {
            refused(&BASE64_URL_SAFE_NO_PAD.encode(&bytes[..place]));
            refused(&BASE64_URL_SAFE_NO_PAD.encode(&bytes[place + 1..]));
        }
    }
}
