//! The checks that refuse a request, and those that are only observed (FWD-6): a mode for each check, and for single TPPs.
//!
//! One process serves one environment (CRT-9), so the modes of its configuration are those of that environment.

use super::Stage;
use crate::interface::{BareTppId, Refusal, TppId};
use std::collections::{BTreeMap, BTreeSet};

/// The effect of a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The request is refused.
    Refuse,
    /// The request continues, and the failed check is logged and counted.
    Observe,
}

/// The mode of each check. By default every check refuses.
#[derive(Clone, Debug, Default)]
pub struct Enforcement {
    observed: BTreeSet<Stage>,
    observed_by_tpp: BTreeMap<BareTppId, BTreeSet<Stage>>,
}

/// The permission to waive a refusal. Only an [`Enforcement`] creates one.
#[derive(Debug)]
pub struct Waiver {
    _minted: (),
}

impl Enforcement {
    /// `observed` are the checks that are only observed. A TPP in `observed_by_tpp` has its own set instead.
    ///
    /// [`Stage::Match`], [`Stage::Envelope`] and [`Stage::Body`] always refuse: no later check can judge without them.
    pub const fn new(
        observed: BTreeSet<Stage>,
        observed_by_tpp: BTreeMap<BareTppId, BTreeSet<Stage>>,
    ) -> Self {
        Self {
            observed,
            observed_by_tpp,
        }
    }

    /// The mode of a check. `tpp` is the TPP in the caller's certificate, if a certificate has been read.
    pub fn mode(&self, stage: Stage, tpp: Option<&TppId>) -> Mode {
        let own = tpp
            .filter(|_| !self.observed_by_tpp.is_empty())
            .and_then(|tpp| self.observed_by_tpp.get(&tpp.bare()));
        if own.unwrap_or(&self.observed).contains(&stage) {
            Mode::Observe
        } else {
            Mode::Refuse
        }
    }

    /// The permission to waive this refusal, if its check is observed. A refusal with status 5xx means that the check could not be made, so
    /// it is never waived.
    pub(super) fn waiver(
        &self,
        stage: Stage,
        refusal: &Refusal,
        tpp: Option<&TppId>,
    ) -> Option<Waiver> {
        let judged = refusal.reason().status() < 500;
        (judged && self.mode(stage, tpp) == Mode::Observe).then_some(Waiver { _minted: () })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Reason;

    #[test]
    fn a_tpp_has_its_own_modes() {
        let id = |text| TppId::parse(text).unwrap();
        let tpp = "PSDNO-FSA-123456";
        let own = BTreeSet::from([Stage::Payload]);
        let enforcement = Enforcement::new(
            BTreeSet::from([Stage::Date]),
            BTreeMap::from([(id(tpp).bare(), own)]),
        );
        let table = [
            (Stage::Date, None, Mode::Observe),
            (Stage::Date, Some("PSDNO-FSA-1"), Mode::Observe),
            (Stage::Date, Some(tpp), Mode::Refuse),
            (Stage::Payload, Some("PSDNO-FSA-123-456"), Mode::Observe),
            (Stage::Payload, Some("PSDNO-FSA-1"), Mode::Refuse),
            (Stage::Payload, None, Mode::Refuse),
        ];
        for (stage, tpp, mode) in table {
            assert_eq!(
                enforcement.mode(stage, tpp.map(id).as_ref()),
                mode,
                "{stage:?} {tpp:?}"
            );
        }
    }

    #[test]
    fn by_default_every_check_refuses() {
        let enforcement = Enforcement::default();
        for stage in Stage::ALL {
            assert_eq!(enforcement.mode(*stage, None), Mode::Refuse);
        }
    }

    #[test]
    fn a_check_that_could_not_be_made_is_not_waived() {
        let enforcement = Enforcement::new(BTreeSet::from([Stage::Sca]), BTreeMap::new());
        let waiver = |reason| enforcement.waiver(Stage::Sca, &Refusal::new(reason), None);
        assert!(waiver(Reason::ScaRequired).is_some());
        assert!(waiver(Reason::StateUnavailable).is_none());
    }
}
