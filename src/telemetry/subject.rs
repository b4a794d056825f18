//! The subjects of the evidence (FWD-8): whose records are counted together.
//!
//! Invariant: nobody takes the share of a verified TPP who has not shown its signature, and nobody chooses whose share of the unverified
//! callers is theirs, because the key of their hash is of this process.

use crate::{
    admission::{Record, Stage},
    interface::TppId,
    network::Network,
};
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::LazyLock,
};

/// The most verified TPPs with a share of their own; more have one together.
pub(super) const TPPS: usize = 1_024;

/// The shares of unverified callers.
pub(super) const NETWORKS: usize = 256;

/// The key of the hash of networks: one network has the same number in the audit and in both logs.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Whose records are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A TPP whose signature has verified.
    Tpp(TppId),
    /// The verified TPPs beyond those with a share of their own.
    OtherTpps,
    /// Callers from some networks, 0 to 255.
    Network(usize),
    /// The gateway itself.
    Gateway,
}

impl Subject {
    /// Callers from this network: an IPv4 address, or a /64 of IPv6.
    pub fn network(address: Option<IpAddr>) -> Self {
        let hash = KEY.hash_one(address.map(Network::of_client)).to_le_bytes();
        Self::Network(hash.first().copied().map_or(0, usize::from))
    }

    /// Whose this request is: the TPP's if its signature has verified, and otherwise of the caller from this address.
    pub fn of(record: &Record, caller: Option<IpAddr>) -> Self {
        let tpp = record.shown_tpp();
        match tpp.filter(|_| record.holds(Stage::Signature)) {
            Some(tpp) => Self::Tpp(tpp.clone()),
            None => Self::network(caller),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_a_64() {
        let of = |text: &str| Subject::network(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        let all = (0..NETWORKS).map(Subject::Network);
        let all: Vec<_> = all.collect();
        assert!((0..=u8::MAX).all(|last| all.contains(&of(&format!("192.0.2.{last}")))));
    }
}
