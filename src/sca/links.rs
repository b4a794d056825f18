//! scaRedirect links (SCA-12): `sca.page` + `?request=<token>`.
//!
//! A token is `base64url(key id ‖ nonce ‖ ciphertext ‖ tag)`: AES-256-GCM with a random nonce, the key's id and the
//! form's version authenticated with it. Random nonces are safe for 2³² tokens under one key (NIST SP 800-38D, 8.3), so
//! seals are counted, and a key that is used up seals no more; docs/sca.md says how to rotate keys long before.

use super::{
    Pending, TokenKeys,
    keys::{ID_LENGTH, Key},
    seals::{Counter, SealFault, Seals},
    token::{self, Content},
};
use crate::{clock::Timestamp, interface::operations::Environment};
use aws_lc_rs::{
    aead::{Aad, NONCE_LEN, Nonce},
    rand,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{fmt, sync::Arc, time::Duration};

/// What the version and the key's id are authenticated with: a key that is used for something else opens nothing here.
const PURPOSE: &[u8; 12] = b"portvakt-sca";

/// The most characters of a token that are looked at. Those that a gateway makes have some 300 to 3 500: a redirect URI
/// has at most 2 000 (HDR-8), a session id 128 (HDR-7); the rest is left to paths.
const MAX_TOKEN: usize = 64 * 1024;

/// How far ahead of now a link may have been made, in seconds: clocks differ.
const AHEAD: u64 = 60;

/// Makes links, and opens the tokens in them. Shared by all requests, without a lock.
pub struct Links {
    page: String,
    lifetime: Duration,
    environment: Environment,
    keys: TokenKeys,
    seals: Arc<Seals>,
    /// What the key sealed that seals.
    sealed: Arc<Counter>,
    /// What the other key sealed.
    sealed_before: Option<Arc<Counter>>,
}

/// A token that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The token's own id, random: what is remembered once it is spent.
    pub id: [u8; 16],
    /// The SCA that it carries.
    pub pending: Pending,
    /// The first moment at which it no longer opens.
    pub expires: Timestamp,
}

/// Why a token does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It was never made with one of this gateway's keys, or it was altered (400).
    #[error("it is not a request of this gateway, or it was altered on its way")]
    NotOurs,
    /// It was made in the other environment, with the same keys (400).
    #[error("it was made by a gateway of the other environment")]
    OtherEnvironment,
    /// Its time is over (410).
    #[error("it has expired; the TPP's next request gets a new link")]
    Expired,
}

impl Links {
    /// Links whose seals are counted in this process alone, for tests and measurements. A gateway has those of
    /// [`ScaSettings`](super::ScaSettings).
    pub fn new(
        page: impl Into<String>,
        lifetime: Duration,
        environment: Environment,
        keys: TokenKeys,
    ) -> Self {
        let seals = Arc::new(Seals::in_memory());
        Self::counted(page, lifetime, environment, keys, seals)
    }

    /// Links to a page, an absolute URL without a fragment.
    pub(super) fn counted(
        page: impl Into<String>,
        lifetime: Duration,
        environment: Environment,
        keys: TokenKeys,
        seals: Arc<Seals>,
    ) -> Self {
        let sealed = seals.counter(*keys.sealing().id());
        let sealed_before = keys.second().map(|key| seals.counter(*key.id()));
        let mut page = page.into();
        page.push(match page.split_once('?') {
            None => '?',
            Some(_) => '&',
        });
        page.push_str("request=");
        Self {
            page,
            lifetime,
            environment,
            keys,
            seals,
            sealed,
            sealed_before,
        }
    }

    /// What every link begins with.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// A link that starts this SCA, good from now until the lifetime is over.
    ///
    /// # Errors
    /// Why nothing is sealed: the key is used up, or what it sealed cannot be counted.
    pub fn link(&self, pending: &Pending, now: Timestamp) -> Result<String, SealFault> {
        self.sealed.take()?;
        let expires = now.unix().saturating_add(self.lifetime.as_secs());
        let token = seal(self.keys.sealing(), Timestamp::from_unix(expires), pending);
        let token = token.ok_or(SealFault::NotMade)?;
        let length = base64::encoded_len(token.len(), false).unwrap_or_default();
        let mut link = String::with_capacity(self.page.len().saturating_add(length));
        link.push_str(&self.page);
        URL_SAFE_NO_PAD.encode_string(token, &mut link);
        Ok(link)
    }

    /// Whether links can be made, as far as is known.
    ///
    /// # Errors
    /// Why not: for the operator.
    pub fn health(&self) -> Result<(), SealFault> {
        self.sealed.health()
    }

    /// How often each key has sealed, by the key's id.
    pub fn sealed(&self) -> impl Iterator<Item = (String, u64)> {
        let counters = std::iter::once(&self.sealed).chain(&self.sealed_before);
        counters.map(|counter| (counter.key(), counter.count()))
    }

    pub(super) const fn seals(&self) -> &Arc<Seals> {
        &self.seals
    }

    /// Opens what stands behind `request=` in a link.
    ///
    /// # Errors
    /// Why it does not open.
    pub fn open(&self, request: &str, now: Timestamp) -> Result<Opened, TokenFault> {
        let Content {
            id,
            expires,
            pending,
        } = self.unseal(request).ok_or(TokenFault::NotOurs)?;
        if pending.environment != self.environment {
            return Err(TokenFault::OtherEnvironment);
        }
        // Made by a clock that was fast: it would last longer than links do.
        let last = now
            .unix()
            .saturating_add(self.lifetime.as_secs())
            .saturating_add(AHEAD);
        if now >= expires || expires.unix() > last {
            return Err(TokenFault::Expired);
        }
        Ok(Opened {
            id,
            pending,
            expires,
        })
    }

    fn unseal(&self, request: &str) -> Option<Content> {
        if request.len() > MAX_TOKEN {
            return None;
        }
        // The engine refuses padding and bits that carry nothing: a token has one spelling.
        let mut bytes = URL_SAFE_NO_PAD.decode(request).ok()?;
        let (id, rest) = bytes.split_first_chunk_mut::<ID_LENGTH>()?;
        let (nonce, sealed) = rest.split_first_chunk_mut::<NONCE_LEN>()?;
        let key = self.keys.find(*id)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let content = key.aead().open_in_place(nonce, aad(key), sealed).ok()?;
        token::read(content)
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Links")
            .field("page", &self.page)
            .field("lifetime", &self.lifetime)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

fn seal(key: &Key, expires: Timestamp, pending: &Pending) -> Option<Vec<u8>> {
    let mut random = [0; 16 + NONCE_LEN];
    rand::fill(&mut random).ok()?;
    let (id, nonce) = random.split_first_chunk::<16>()?;
    let nonce: &[u8; NONCE_LEN] = nonce.first_chunk()?;

    let mut token = Vec::with_capacity(512);
    token.extend_from_slice(key.id());
    token.extend_from_slice(nonce);
    let clear = token.len();
    token::write(id, expires, pending, &mut token)?;
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let content = token.get_mut(clear..)?;
    let tag = key
        .aead()
        .seal_in_place_separate_tag(nonce, aad(key), content)
        .ok()?;
    token.extend_from_slice(tag.as_ref());
    Some(token)
}

/// Purpose, version of the content, key id.
fn aad(key: &Key) -> Aad<[u8; PURPOSE.len() + 1 + ID_LENGTH]> {
    let mut bytes = [0; PURPOSE.len() + 1 + ID_LENGTH];
    let parts = PURPOSE.iter().chain([&token::VERSION]).chain(key.id());
    bytes
        .iter_mut()
        .zip(parts)
        .for_each(|(to, from)| *to = *from);
    Aad::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::headers::{CorporateId, PsuContext, PsuId, RedirectUri, SessionId};
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
            tpp: "PSDNO-FSA-123456".into(),
            tpp_name: "Tredjepart AS".into(),
            session: session("a-session"),
            redirect_uri: uri("https://tpp.example/back?a=b"),
            preferred: true,
            operation: "account-list".into(),
            resource: None,
            asks_consent: true,
            context: None,
            corporate: None,
            psu: Some(PsuId::from_bits(0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab)),
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
        let psu = pending().psu.unwrap().to_be_bytes();
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
        // The id alone does not open it.
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
        let texts = (".{0,40}", "[!-~]{1,128}", redirect, ".{0,40}", ".{0,40}");
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
                tpp,
                tpp_name,
                session: self::session(&session),
                redirect_uri: uri(&redirect_uri),
                preferred,
                operation,
                resource,
                asks_consent,
                context,
                corporate: corporate.map(CorporateId::from_bits),
                psu: psu.map(PsuId::from_bits),
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
}
