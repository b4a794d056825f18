//! The content of a token as bytes, before it is sealed.
//!
//! The format is binary: a version, the token's id, its expiry, flags, and texts with their length in two bytes. It has half the size of
//! JSON, and one encoding for each value. Invariant: [`read`] accepts all bytes or none, and never panics. Deliberately not here:
//! encryption.

use super::Pending;
use crate::{
    clock::Timestamp,
    interface::{
        TppId,
        headers::{CorporateId, PsuContext, PsuId, RedirectUri, SessionId},
        operations::Environment,
    },
    state::{Claimed, Known},
};

/// The version of the format. A different format gets a new number. The version is authenticated with the key's id.
pub(super) const VERSION: u8 = 1;

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) id: [u8; 16],
    pub(super) expires: Timestamp,
    pub(super) pending: Pending,
}

const PRODUCTION: u8 = 1;
const PREFERRED: u8 = 1 << 1;
const ASKS_CONSENT: u8 = 1 << 2;
const RESOURCE: u8 = 1 << 3;
const PRIVATE: u8 = 1 << 4;
const CORPORATE: u8 = 1 << 5;
const AGREEMENT: u8 = 1 << 6;
const PSU: u8 = 1 << 7;

/// Appends the content to `bytes`. `None` if a text is longer than 64 KiB; no header is.
pub(super) fn write(
    id: &[u8; 16],
    expires: Timestamp,
    pending: &Pending,
    bytes: &mut Vec<u8>,
) -> Option<()> {
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(&expires.unix().to_be_bytes());
    bytes.push(flags(pending));
    let ids = [
        pending.corporate.map(|id| id.to_show().to_be_bytes()),
        pending.psu.map(|id| id.get().to_be_bytes()),
    ];
    bytes.extend(ids.into_iter().flatten().flatten());
    // The name is the last field and is omitted if empty, because an earlier version wrote none.
    let name = Some(&pending.tpp_name).filter(|name| !name.is_empty());
    let texts = [
        Some(pending.tpp.as_str()),
        Some(pending.session.as_str()),
        Some(pending.redirect_uri.as_str()),
        Some(pending.operation.as_str()),
        pending.resource.as_deref(),
        name.map(String::as_str),
    ];
    for text in texts.into_iter().flatten() {
        let length = u16::try_from(text.len()).ok()?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Some(())
}

/// Reads the bytes of [`write`].
pub(super) fn read(bytes: &[u8]) -> Option<Content> {
    let mut rest = bytes;
    let id = take(&mut rest)?;
    let expires = Timestamp::from_unix(u64::from_be_bytes(take(&mut rest)?));
    let [flags] = take(&mut rest)?;
    let is = |flag: u8| flags & flag != 0;
    let corporate = is(AGREEMENT).then(|| number(&mut rest));
    let psu = is(PSU).then(|| number(&mut rest));
    let environment = if is(PRODUCTION) {
        Environment::Production
    } else {
        Environment::Sandbox
    };
    let pending = Pending {
        environment,
        preferred: is(PREFERRED),
        asks_consent: is(ASKS_CONSENT),
        context: match (is(PRIVATE), is(CORPORATE)) {
            (false, false) => None,
            (true, false) => Some(PsuContext::Private),
            (false, true) => Some(PsuContext::Corporate),
            (true, true) => return None,
        },
        corporate: whole(corporate)?.map(|id| Claimed::by_tpp(CorporateId::from_bits(id))),
        psu: whole(psu)?.map(|id| Known::by_own_seal(PsuId::from_bits(id))),
        tpp: TppId::parse(&text(&mut rest)?)?,
        session: SessionId::from_text(&text(&mut rest)?)?,
        redirect_uri: RedirectUri::from_text(&text(&mut rest)?, environment).ok()?,
        operation: text(&mut rest)?,
        resource: whole(is(RESOURCE).then(|| text(&mut rest)))?,
        tpp_name: match rest {
            [] => String::new(),
            _ => text(&mut rest).filter(|name| !name.is_empty())?,
        },
    };
    rest.is_empty().then_some(Content {
        id,
        expires,
        pending,
    })
}

fn flags(pending: &Pending) -> u8 {
    let context = match pending.context {
        None => 0,
        Some(PsuContext::Private) => PRIVATE,
        Some(PsuContext::Corporate) => CORPORATE,
    };
    let set = [
        (pending.environment == Environment::Production, PRODUCTION),
        (pending.preferred, PREFERRED),
        (pending.asks_consent, ASKS_CONSENT),
        (pending.resource.is_some(), RESOURCE),
        (pending.corporate.is_some(), AGREEMENT),
        (pending.psu.is_some(), PSU),
    ];
    set.into_iter()
        .filter(|(is_set, _)| *is_set)
        .fold(context, |flags, (_, flag)| flags | flag)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn number(rest: &mut &[u8]) -> Option<u128> {
    take(rest).map(u128::from_be_bytes)
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes(take(rest)?));
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    std::str::from_utf8(taken).ok().map(str::to_owned)
}

/// An absent value is valid; an unreadable one is not.
fn whole<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}
