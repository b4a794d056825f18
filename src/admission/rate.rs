//! General rates, which protect the gateway itself (QUO-12): per client address before the certificate is read, and per TPP only after its
//! signature verified.
//!
//! Certificates are public, so a caller must not be able to use up the rate of another TPP by sending its certificate. The counts are in
//! the memory of this process and are lost when it ends: they do not implement the daily quota. They use the monotonic time of the machine,
//! because the rates protect its present capacity.
//!
//! The construction of chains has rates of its own. A chain costs as much as ten refusals, and its caller has proven nothing yet. A TPP
//! whose certificate is cached needs no chain, so that a flood of unknown callers does not affect known TPPs.
//!
//! Requests with an unsafe method have a rate of their own beside the general one: each leaves records in the state and in the audit, which
//! are never left out, so that the rate bounds what one TPP can write to the disks.

use crate::{
    interface::{Fault, Reason, Refusal, TppId},
    network::Network,
};
use governor::{
    DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};
use http::Method;
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
    num::NonZeroU32,
};

/// The certificates in a second that are read only to name the TPP of a request that was refused before, of callers of one share: four.
const NAMED: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);

/// The same of all callers together.
const NAMED_IN_ALL: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

/// The shares of callers, by a keyed hash of their network (FWD-8).
const SHARES: u64 = 256;

/// The limits of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// Requests per second from one address; an IPv6 address counts by its /64. `None` is no limit. Default 2 000.
    pub per_address: Option<NonZeroU32>,
    /// Requests per second of one TPP. `None` is no limit. Default 1 000.
    pub per_tpp: Option<NonZeroU32>,
    /// Requests per second of one TPP with an unsafe method, which count as requests too. `None` is no limit. Default 100: of the audit's
    /// records, they fill 6 GB in a day.
    pub unsafe_per_tpp: Option<NonZeroU32>,
    /// Chains per second for callers from one address whose certificate is not cached, with a burst of two and a half times as many. `None`
    /// is no limit. Default 20.
    pub chains_per_address: Option<NonZeroU32>,
    /// The same for all addresses together. Default 200, which take about a tenth of one core.
    pub chains: Option<NonZeroU32>,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self {
            per_address: NonZeroU32::new(2_000),
            per_tpp: NonZeroU32::new(1_000),
            unsafe_per_tpp: NonZeroU32::new(100),
            chains_per_address: NonZeroU32::new(20),
            chains: NonZeroU32::new(200),
        }
    }
}

/// The counts.
pub struct Rates {
    settings: RateSettings,
    addresses: Option<DefaultKeyedRateLimiter<Network>>,
    tpps: Option<DefaultKeyedRateLimiter<u64>>,
    unsafe_of_tpps: Option<DefaultKeyedRateLimiter<u64>>,
    chains_by_address: Option<DefaultKeyedRateLimiter<Network>>,
    chains: Option<DefaultDirectRateLimiter>,
    named: DefaultKeyedRateLimiter<u64>,
    named_in_all: DefaultDirectRateLimiter,
    clock: DefaultClock,
    hasher: RandomState,
}

/// The proof that the request is within the rates.
#[must_use]
#[derive(Debug)]
pub struct WithinRate {
    _held: (),
}

impl Rates {
    /// No counts yet.
    pub fn new(settings: RateSettings) -> Self {
        Self {
            settings,
            addresses: settings
                .per_address
                .map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
            tpps: settings
                .per_tpp
                .map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
            unsafe_of_tpps: settings
                .unsafe_per_tpp
                .map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
            chains_by_address: settings
                .chains_per_address
                .map(|rate| RateLimiter::keyed(bursting(rate))),
            chains: settings
                .chains
                .map(|rate| RateLimiter::direct(Quota::per_second(rate))),
            named: RateLimiter::keyed(Quota::per_second(NAMED)),
            named_in_all: RateLimiter::direct(Quota::per_second(NAMED_IN_ALL)),
            clock: DefaultClock::default(),
            hasher: RandomState::new(),
        }
    }

    /// The limits.
    pub const fn settings(&self) -> RateSettings {
        self.settings
    }

    /// Removes callers without recent requests. Call this regularly, outside the request path.
    pub fn tidy(&self) {
        for addresses in [&self.addresses, &self.chains_by_address]
            .into_iter()
            .flatten()
        {
            addresses.retain_recent();
            addresses.shrink_to_fit();
        }
        for tpps in [&self.tpps, &self.unsafe_of_tpps].into_iter().flatten() {
            tpps.retain_recent();
            tpps.shrink_to_fit();
        }
    }

    /// Counts a request from an address.
    pub(super) fn address(&self, peer: Option<SocketAddr>) -> Result<WithinRate, Refusal> {
        let (Some(addresses), Some(peer)) = (&self.addresses, peer) else {
            return Ok(WithinRate { _held: () });
        };
        let held = addresses.check_key(&Network::of_client(peer.ip()));
        held.map(|()| WithinRate { _held: () })
            .map_err(|until| self.refusal(until.wait_time_from(self.clock.now()), "this address"))
    }

    /// Counts a request of a TPP whose signature verified.
    pub(super) fn tpp(&self, tpp: &TppId, method: &Method) -> Result<WithinRate, Refusal> {
        let unsafe_ones = self.unsafe_of_tpps.as_ref().filter(|_| !method.is_safe());
        let rates = [
            (self.tpps.as_ref(), "this TPP"),
            (unsafe_ones, "this TPP with a method that changes something"),
        ];
        for (rate, whose) in rates {
            let held = rate.map_or(Ok(()), |rate| rate.check_key(&self.hasher.hash_one(tpp)));
            held.map_err(|until| self.refusal(until.wait_time_from(self.clock.now()), whose))?;
        }
        Ok(WithinRate { _held: () })
    }

    /// Counts a chain for an unauthenticated caller.
    pub(super) fn chain(&self, peer: Option<SocketAddr>) -> Result<(), Refusal> {
        let refuse = |reason, until: NotUntil<_>| {
            let wait = until.wait_time_from(self.clock.now()).as_secs();
            Refusal::new(reason)
                .retry_after(wait.saturating_add(1))
                .for_operator(
                    "more certificates that are not known came than are chained in a second"
                        .to_owned(),
                )
        };
        if let (Some(addresses), Some(peer)) = (&self.chains_by_address, peer) {
            let held = addresses.check_key(&Network::of_client(peer.ip()));
            held.map_err(|until| refuse(Reason::TooManyAtOnce, until))?;
        }
        let held = self.chains.as_ref().map_or(Ok(()), RateLimiter::check);
        held.map_err(|until| refuse(Reason::Overloaded, until))
    }

    /// Counts a certificate that is read only to name the TPP of a refused request; false if there were enough in this second of callers
    /// from this network.
    pub(super) fn name(&self, peer: Option<SocketAddr>) -> bool {
        let network = peer.map(|peer| Network::of_client(peer.ip()));
        let share = self.hasher.hash_one(network) % SHARES;
        self.named.check_key(&share).is_ok() && self.named_in_all.check().is_ok()
    }

    fn refusal(&self, wait: std::time::Duration, whose: &str) -> Refusal {
        let text = format!("more requests came from {whose} than are taken in a second");
        let seconds = wait.as_secs().saturating_add(1);
        Refusal::from(Fault::request(Reason::RateLimited, text)).retry_after(seconds)
    }
}

/// A rate per second with a burst of two and a half times as many, because a new TPP starts with several connections.
const fn bursting(rate: NonZeroU32) -> Quota {
    let more = rate.get().saturating_mul(3).div_ceil(2);
    Quota::per_second(rate).allow_burst(rate.saturating_add(more))
}

impl fmt::Debug for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rates").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_client() {
        let rates = Rates::new(RateSettings {
            per_address: NonZeroU32::new(2),
            per_tpp: NonZeroU32::new(1),
            ..RateSettings::default()
        });
        let from =
            |address: &str| rates.address(Some(SocketAddr::new(address.parse().unwrap(), 1)));
        assert!(from("2001:db8::1").is_ok() && from("2001:db8::2").is_ok());
        let refusal = from("2001:db8::3").unwrap_err();
        assert_eq!(refusal.reason(), Reason::RateLimited);
        assert_eq!(refusal.seconds_to_retry(), Some(1));
        assert!(from("2001:db8:0:1::3").is_ok());
        assert!(from("192.0.2.1").is_ok() && from("::ffff:192.0.2.1").is_ok());
        assert!(from("192.0.2.1").is_err() && from("192.0.2.2").is_ok());
        assert!(rates.address(None).is_ok());
        let [one, other] = ["PSDNO-FSA-1", "PSDNO-FSA-2"].map(|id| TppId::parse(id).unwrap());
        let get = |tpp| rates.tpp(tpp, &Method::GET);
        assert!(get(&one).is_ok() && get(&one).is_err() && get(&other).is_ok());
        rates.tidy();
        assert!(get(&one).is_err(), "what is recent is kept");
    }

    #[test]
    fn changes_have_a_rate_of_their_own() {
        let rates = Rates::new(RateSettings {
            unsafe_per_tpp: NonZeroU32::new(1),
            ..RateSettings::default()
        });
        let [one, other] = ["PSDNO-FSA-1", "PSDNO-FSA-2"].map(|id| TppId::parse(id).unwrap());
        assert!(rates.tpp(&one, &Method::DELETE).is_ok());
        rates.tidy();
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let refusal = rates.tpp(&one, &method).unwrap_err();
            assert_eq!(refusal.reason(), Reason::RateLimited);
            assert_eq!(refusal.seconds_to_retry(), Some(1));
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(rates.tpp(&one, &method).is_ok(), "{method}");
        }
        assert!(rates.tpp(&other, &Method::POST).is_ok());
    }

    #[test]
    fn no_limit_is_no_limit() {
        let rates = Rates::new(RateSettings {
            per_address: None,
            per_tpp: None,
            unsafe_per_tpp: None,
            chains_per_address: None,
            chains: None,
        });
        let tpp = TppId::parse("PSDNO-FSA-1").unwrap();
        assert!((0..10_000).all(|_| rates.tpp(&tpp, &Method::POST).is_ok()));
        assert!((0..10_000).all(|_| rates.chain(None).is_ok()));
    }

    #[test]
    fn chains_for_strangers_end() {
        let rates = Rates::new(RateSettings {
            chains_per_address: NonZeroU32::new(2),
            chains: NonZeroU32::new(8),
            ..RateSettings::default()
        });
        let from = |address: &str| rates.chain(Some(SocketAddr::new(address.parse().unwrap(), 1)));
        assert!((0..5).all(|_| from("192.0.2.1").is_ok()));
        let refusal = from("192.0.2.1").unwrap_err();
        assert_eq!(refusal.reason(), Reason::TooManyAtOnce);
        assert_eq!(refusal.seconds_to_retry(), Some(1));
        assert!((0..3).all(|_| from("192.0.2.2").is_ok()));
        assert_eq!(
            from("192.0.2.3").unwrap_err().reason(),
            Reason::Overloaded,
            "all together"
        );
        assert!(rates.chain(None).is_err());
    }
}
