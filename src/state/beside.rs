//! The quotas whose calls count beside those of another (QUO-1, SCA-22, CTL-4).
//!
//! Invariant: none is left out. Where there are more than fit, the call is not decided: a quota that is not counted is a fifth call.

use super::{QuotaHash, moves::BESIDE};

/// There are more quotas than are counted together.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a TPP has more former identities than can be counted: undo a move")]
pub struct MoreThanFit;

/// At most four quotas whose calls count beside those of another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside([Option<QuotaHash>; BESIDE]);

impl Beside {
    /// All of these quotas.
    ///
    /// # Errors
    /// There are more than fit: the call cannot be counted.
    pub fn all(quotas: impl IntoIterator<Item = QuotaHash>) -> Result<Self, MoreThanFit> {
        let mut beside = Self::default();
        let mut places = beside.0.iter_mut();
        for quota in quotas {
            let Some(place) = places.next() else {
                return Err(MoreThanFit);
            };
            *place = Some(quota);
        }
        Ok(beside)
    }

    /// The quotas.
    pub(super) fn quotas(self) -> impl Iterator<Item = QuotaHash> {
        self.0.into_iter().flatten()
    }

    /// Whether there is none.
    pub(super) fn is_empty(self) -> bool {
        self.quotas().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_quotas_than_fit_are_refused() {
        let quotas = |count| (0..count).map(|number| QuotaHash::from_bytes([number; 16]));
        for count in 0..=4 {
            let all = Beside::all(quotas(count)).unwrap();
            assert!(all.quotas().eq(quotas(count)), "{count}");
            assert_eq!(all.is_empty(), count == 0);
        }
        assert!(Beside::all(quotas(5)).is_err());
    }
}
