//! scaRedirect links (SCA-12): `sca.page` + `?request=<token>`.
//!
//! A token is `base64url(key id ‖ nonce ‖ ciphertext ‖ tag)`: AES-256-GCM with a random nonce, which authenticates the key's id and the
//! version of the content too. Random nonces are safe for 2³² tokens under one key (NIST SP 800-38D, 8.3), so seals are counted, and a key
//! at this limit no longer seals. docs/sca.md describes how to rotate keys long before.

use super::{
    Pending, TokenKeys,
    key_id::ID_LENGTH,
    keys::Key,
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

/// The additional authenticated data, with the version and the key's id: a token that the same key sealed for another purpose does not
/// open.
const PURPOSE: &[u8; 12] = b"portvakt-sca";

/// The maximum length in characters of a token that is decoded. Tokens of a gateway have about 300 to 3 500: a redirect URI has at most 2
/// 000 (HDR-8), a session id 128 (HDR-7); the rest is for paths.
const MAX_TOKEN: usize = 64 * 1024;

/// The tolerance for a link with a creation time in the future, in seconds, because clocks differ.
const AHEAD: u64 = 60;

/// Makes links, and opens the tokens in them. All requests share it without a lock.
pub struct Links {
    page: String,
    lifetime: Duration,
    environment: Environment,
    keys: TokenKeys,
    seals: Arc<Seals>,
    /// The counter of the first key, which seals.
    sealed: Arc<Counter>,
    /// The counter of the second key, which only opens.
    sealed_before: Option<Arc<Counter>>,
}

/// An opened token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The random id of the token. The store keeps the id of a spent token.
    pub id: [u8; 16],
    /// The SCA that it carries.
    pub pending: Pending,
    /// The first second in which the token no longer opens.
    pub expires: Timestamp,
}

/// The reason why a token does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// No key of this gateway made the token, or the token was altered (400).
    #[error("it is not a request of this gateway, or it was altered on its way")]
    NotOurs,
    /// The token was made in the other environment, with the same keys (400).
    #[error("it was made by a gateway of the other environment")]
    OtherEnvironment,
    /// The token has expired (410).
    #[error("it has expired; the TPP's next request gets a new link")]
    Expired,
}

impl Links {
    /// Links whose seals are counted only in this process, for tests and measurements. [`ScaSettings`](super::ScaSettings) makes the links
    /// of a gateway.
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

    /// The start of every link.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// A link that starts this SCA and is valid from now for the lifetime.
    ///
    /// # Errors
    /// The reason why nothing is sealed: the key is at its limit, or its seals cannot be counted.
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

    /// Whether links can be made, by the last known state of the counters.
    ///
    /// # Errors
    /// The reason for the operator.
    pub fn health(&self) -> Result<(), SealFault> {
        self.sealed.health()
    }

    /// The number of seals of each key, by the key's id.
    pub fn sealed(&self) -> impl Iterator<Item = (String, u64)> {
        let counters = std::iter::once(&self.sealed).chain(&self.sealed_before);
        counters.map(|counter| (counter.key(), counter.count()))
    }

    /// The number of links made since the start, with those that could not be completed.
    pub fn made(&self) -> u64 {
        self.seals.taken()
    }

    pub(super) const fn seals(&self) -> &Arc<Seals> {
        &self.seals
    }

    /// Opens a token, the value of `request` in a link.
    ///
    /// # Errors
    /// The reason why the token does not open.
    pub fn open(&self, request: &str, now: Timestamp) -> Result<Opened, TokenFault> {
        let Content {
            id,
            expires,
            pending,
        } = self.unseal(request).ok_or(TokenFault::NotOurs)?;
        if pending.environment != self.environment {
            return Err(TokenFault::OtherEnvironment);
        }
        // A token that a fast clock made would be valid longer than the lifetime of links.
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
        // The decoder refuses padding and unused bits, so a token has one spelling.
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
mod tests;
