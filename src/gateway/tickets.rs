//! TLS session tickets: a client resumes its session without a full handshake, also at another replica.
//!
//! Without `listener.ticket_keys` the keys are random and belong to this process; rustls replaces them every six hours. With it, a ticket
//! is `key id (4) | time of issue (8) | nonce (12) | AES-256-GCM-SIV (state)`, and the associated data are key id, time and
//! `client_auth`. Invariant: a ticket is accepted only under the `client_auth` that it was issued under, because a resumed session
//! presents no certificate: a ticket of a listener that requires none must not open one that does. The state contains the client's
//! certificate, which each request is judged by as after a full handshake (TLS-3).

use crate::{
    clock::{Clock, Timestamp},
    config::{ClientAuth, TICKET_KEY_ID, TicketKeys},
    in_use::Current,
};
use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use rustls::{Error, crypto::aws_lc_rs::Ticketer, server::ProducesTickets};
use std::sync::Arc;

/// The time for which a ticket is accepted, in seconds: 12 hours, as with the keys of rustls.
const LIFETIME: u32 = 12 * 60 * 60;

/// The tolerance for the clock of another replica that is ahead, in seconds.
const AHEAD: u64 = 300;

/// The length of the key id and the time of issue.
const HEADER: usize = TICKET_KEY_ID + 8;

/// Encrypts and decrypts tickets by the keys of the current configuration.
#[derive(Debug)]
pub(super) struct Tickets {
    current: Arc<Current>,
    client_auth: ClientAuth,
    clock: Clock,
    /// The keys of this process.
    own: Arc<dyn ProducesTickets>,
}

impl Tickets {
    /// Creates the tickets of a listener.
    ///
    /// # Errors
    /// No random numbers are available.
    pub(super) fn new(
        current: Arc<Current>,
        client_auth: ClientAuth,
        clock: Clock,
    ) -> Result<Self, Error> {
        Ok(Self {
            current,
            client_auth,
            clock,
            own: Ticketer::new()?,
        })
    }

    fn associated(&self, header: &[u8]) -> Aad<Vec<u8>> {
        let client_auth = match self.client_auth {
            ClientAuth::Off => "off",
            ClientAuth::Optional => "optional",
            ClientAuth::Required => "required",
        };
        Aad::from([header, client_auth.as_bytes()].concat())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, state: &[u8]) -> Option<Vec<u8>> {
        let in_use = self.current.load();
        let Some(keys) = &in_use.ticket_keys else {
            return self.own.encrypt(state);
        };
        seal(keys, self.clock.now(), state, |header| {
            self.associated(header)
        })
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let in_use = self.current.load();
        let Some(keys) = &in_use.ticket_keys else {
            return self.own.decrypt(ticket);
        };
        open(keys, self.clock.now(), ticket, |header| {
            self.associated(header)
        })
    }
}

fn seal(
    keys: &TicketKeys,
    now: Timestamp,
    state: &[u8],
    associated: impl FnOnce(&[u8]) -> Aad<Vec<u8>>,
) -> Option<Vec<u8>> {
    let key = keys.newest();
    let header = [&key.id[..], &now.unix().to_be_bytes()].concat();
    let mut sealed = state.to_vec();
    let nonce = key
        .aead
        .seal_in_place_append_tag(associated(&header), &mut sealed)
        .ok()?;
    Some([&header[..], nonce.as_ref(), &sealed].concat())
}

fn open(
    keys: &TicketKeys,
    now: Timestamp,
    ticket: &[u8],
    associated: impl FnOnce(&[u8]) -> Aad<Vec<u8>>,
) -> Option<Vec<u8>> {
    let (header, rest) = ticket.split_at_checked(HEADER)?;
    let (id, issued) = header.split_at_checked(TICKET_KEY_ID)?;
    let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
    let key = keys.find(id)?;
    let issued = u64::from_be_bytes(issued.try_into().ok()?);
    let oldest = now.unix().saturating_sub(LIFETIME.into());
    if !(oldest..=now.unix().saturating_add(AHEAD)).contains(&issued) {
        return None;
    }
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut state = sealed.to_vec();
    let length = key
        .aead
        .open_in_place(nonce, associated(header), &mut state)
        .ok()?
        .len();
    state.truncate(length);
    Some(state)
}
