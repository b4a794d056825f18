//! What became of the lines of each TPP in an import.

use crate::state::{Binding, Bound};

/// The effect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Stored.
    Kept,
    /// Would bind a PSU-ID.
    New,
    /// Would update a PSU-ID of the same TPP.
    Known,
    /// Would take a PSU-ID from a TPP that only learned it.
    TakenOver,
    /// Stored, or would be: replaces the accounts of a consent of the same time.
    Replaced,
    /// Refused: the bank bound the PSU-ID to another TPP.
    Elsewhere,
}

impl Effect {
    /// The effect of a stored line.
    pub(super) const fn of_bound(bound: Bound) -> Self {
        match bound {
            Bound::Here => Self::Kept,
            Bound::Replaced => Self::Replaced,
            Bound::Elsewhere => Self::Elsewhere,
        }
    }

    /// The effect that storing a line would have.
    pub(super) const fn of_binding(binding: Binding) -> Self {
        match binding {
            Binding::None => Self::New,
            Binding::Here => Self::Known,
            Binding::Contradicted => Self::Replaced,
            Binding::LearnedElsewhere => Self::TakenOver,
            Binding::Elsewhere => Self::Elsewhere,
        }
    }
}

/// The counts of one TPP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfTpp {
    pub(super) kept: u64,
    pub(super) new: u64,
    pub(super) known: u64,
    pub(super) taken_over: u64,
    pub(super) replaced: u64,
    pub(super) elsewhere: u64,
}

impl OfTpp {
    /// Counts a line.
    pub(super) fn count(&mut self, effect: Effect) {
        let count = match effect {
            Effect::Kept => &mut self.kept,
            Effect::New => &mut self.new,
            Effect::Known => &mut self.known,
            Effect::TakenOver => &mut self.taken_over,
            Effect::Replaced => &mut self.replaced,
            Effect::Elsewhere => &mut self.elsewhere,
        };
        *count = count.saturating_add(1);
    }

    /// The number of stored lines.
    pub(super) const fn stored(&self) -> u64 {
        self.kept.saturating_add(self.replaced)
    }

    /// What a report says of the TPP.
    pub(super) fn text(&self, dry_run: bool) -> String {
        let Self {
            new,
            known,
            taken_over,
            replaced,
            elsewhere,
            ..
        } = self;
        let replacing = match replaced {
            0 => String::new(),
            _ => format!(" ({replaced} with other accounts than a consent of the same time)"),
        };
        let stored = if dry_run {
            let known = known.saturating_add(*replaced);
            format!(
                "{new} new, {known} known{replacing}, {taken_over} taken over from a learned binding"
            )
        } else {
            format!("{} kept{replacing}", self.stored())
        };
        format!("{stored}, {elsewhere} of another TPP")
    }
}
