//! Who says what about the PSU.

use crate::{Keys, Known, PsuHash, PsuRef, SessionHash};
use portvakt_interface::{
    TppId,
    headers::{PsuId, SessionId},
};
use std::sync::LazyLock;

/// One of two TPPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Tpp {
    A,
    B,
}

/// Somebody's word. Each is said once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Op {
    /// An SCA is completed with consent; `said` is the report, and its session.
    Complete {
        tpp: Tpp,
        token: usize,
        said: u8,
    },
    /// The core's answer names the PSU as the TPP's own.
    Learn(Tpp),
    Bind(Tpp),
    WithdrawConsents(Tpp),
    EndSession(Tpp),
    Unbind(Tpp),
    Erase,
}

pub(super) static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys::new(&[7; 32]));

pub(super) static PSU: LazyLock<PsuHash> =
    LazyLock::new(|| KEYS.psu(Known::by_bank(PsuId::from_bits(1))));

pub(super) static TPPS: LazyLock<[TppId; 2]> =
    LazyLock::new(|| ["PSDNO-FSA-A", "PSDNO-FSA-B"].map(|id| TppId::parse(id).unwrap()));

pub(super) static SESSIONS: LazyLock<[[SessionHash; 4]; 2]> = LazyLock::new(|| {
    [Tpp::A, Tpp::B].map(|tpp| [0, 1, 2, 3].map(|said| KEYS.session(tpp.id(), &session_id(said))))
});

/// The session of a report.
pub(super) fn session(tpp: Tpp, said: u8) -> SessionHash {
    SESSIONS[usize::from(tpp == Tpp::B)][usize::from(said)]
}

pub(super) fn session_id(said: u8) -> SessionId {
    SessionId::from_text(&said.to_string()).unwrap()
}

impl Tpp {
    pub(super) fn id(self) -> &'static TppId {
        &TPPS[usize::from(self == Self::B)]
    }

    pub(super) fn of(id: &TppId) -> Self {
        if *id == TPPS[0] { Self::A } else { Self::B }
    }

    pub(super) fn psu(self) -> PsuRef<'static> {
        PsuRef {
            tpp: self.id(),
            psu: Known::by_bank(PsuId::from_bits(1)),
        }
    }
}
