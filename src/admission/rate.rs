//! General rates, which protect the gateway itself (QUO-12): per client address before the certificate is looked at,
//! per TPP only after its signature verified.
//!
//! Certificates are public, so nobody may use up another's rate by showing one. The counts are this process's own and
//! are lost with it: they say nothing of what a TPP may do in a day. The time is the machine's, since a rate is about
//! how much it can take now.

use crate::interface::{Fault, Reason, Refusal};
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
};

/// What one second may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// Requests per second from one address, an IPv6 one by its /64; none is no limit. Default 2 000.
    pub per_address: Option<NonZeroU32>,
    /// Requests per second of one TPP; none is no limit. Default 1 000.
    pub per_tpp: Option<NonZeroU32>,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self {
            per_address: NonZeroU32::new(2_000),
            per_tpp: NonZeroU32::new(1_000),
        }
    }
}

/// The counts.
pub struct Rates {
    settings: RateSettings,
    addresses: Option<DefaultKeyedRateLimiter<u128>>,
    tpps: Option<DefaultKeyedRateLimiter<u64>>,
    clock: DefaultClock,
    hasher: RandomState,
}

/// The rates were held.
#[must_use]
#[derive(Debug)]
pub struct Paced {
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
            clock: DefaultClock::default(),
            hasher: RandomState::new(),
        }
    }

    /// What they are counted against.
    pub const fn settings(&self) -> RateSettings {
        self.settings
    }

    /// Forgets whoever has been quiet. To be called now and then, off the request's path.
    pub fn tidy(&self) {
        if let Some(addresses) = &self.addresses {
            addresses.retain_recent();
            addresses.shrink_to_fit();
        }
        if let Some(tpps) = &self.tpps {
            tpps.retain_recent();
            tpps.shrink_to_fit();
        }
    }

    /// A request from an address.
    pub(super) fn address(&self, peer: Option<SocketAddr>) -> Result<Paced, Refusal> {
        let (Some(addresses), Some(peer)) = (&self.addresses, peer) else {
            return Ok(Paced { _held: () });
        };
        let held = addresses.check_key(&network(peer.ip()));
        held.map(|()| Paced { _held: () })
            .map_err(|until| self.refusal(until.wait_time_from(self.clock.now()), "this address"))
    }

    /// A request of a TPP whose signature verified.
    pub(super) fn tpp(&self, tpp: &str) -> Result<Paced, Refusal> {
        let Some(tpps) = &self.tpps else {
            return Ok(Paced { _held: () });
        };
        let held = tpps.check_key(&self.hasher.hash_one(tpp));
        held.map(|()| Paced { _held: () })
            .map_err(|until| self.refusal(until.wait_time_from(self.clock.now()), "this TPP"))
    }

    fn refusal(&self, wait: std::time::Duration, whose: &str) -> Refusal {
        let text = format!("more requests came from {whose} than are taken in a second");
        let seconds = wait.as_secs().saturating_add(1);
        Refusal::from(Fault::request(Reason::RateLimited, text)).retry_after(seconds)
    }
}

/// What one client holds: an IPv4 address, or a /64 of IPv6.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
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
        assert!(rates.tpp("a").is_ok() && rates.tpp("a").is_err() && rates.tpp("b").is_ok());
        rates.tidy();
        assert!(rates.tpp("a").is_err(), "what is recent is kept");
    }

    #[test]
    fn no_limit_is_no_limit() {
        let rates = Rates::new(RateSettings {
            per_address: None,
            per_tpp: None,
        });
        assert!((0..10_000).all(|_| rates.tpp("a").is_ok()));
    }
}
