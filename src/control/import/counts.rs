//! What became of the lines of each TPP in an import.

use crate::state::{Bound, ConsentChange};

/// The effect of a line: stored, or in a dry run what storing it would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Binds a PSU-ID.
    New,
    /// Changes something of a PSU of the same TPP.
    Changed,
    /// The same: the accounts of a consent of the same time.
    Replaced,
    /// Everything was known.
    Unchanged,
    /// In a dry run: an earlier line binds the PSU-ID to the same TPP.
    Known,
    /// Takes a PSU-ID from a TPP that only learned it.
    TakenOver,
    /// Refused: there is a newer consent for other accounts.
    Outdated,
    /// Refused: the bank bound the PSU-ID to another TPP.
    Elsewhere,
}

impl Effect {
    pub(super) fn of(bound: Bound) -> Self {
        match bound {
            Bound::New => Self::New,
            Bound::TakenOver => Self::TakenOver,
            Bound::Changed(changes) => match changes.consent {
                Some(ConsentChange::OtherAccounts) => Self::Replaced,
                Some(ConsentChange::Given) | None => Self::Changed,
            },
            Bound::Unchanged => Self::Unchanged,
            Bound::ConsentOutdated => Self::Outdated,
            Bound::Elsewhere => Self::Elsewhere,
        }
    }

    /// The reason why a line is refused; `None` if it is stored.
    pub(super) const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Outdated => Some(
                "consent_at: a newer consent for other accounts is there; to replace it, give its time or a later one",
            ),
            Self::Elsewhere => {
                Some("psu_id: it belongs to another TPP; a PSU has one of its own for each TPP")
            }
            Self::New
            | Self::Changed
            | Self::Replaced
            | Self::Unchanged
            | Self::Known
            | Self::TakenOver => None,
        }
    }
}

/// The lines of one TPP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportedOfTpp {
    /// Stored; in a dry run, what would be.
    pub stored: u64,
    /// Those of them that changed something.
    pub changed: u64,
    /// Refused: a PSU-ID of another TPP, or an older consent for other accounts.
    pub refused: u64,
}

/// The counts of one TPP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfTpp {
    new: u64,
    changed: u64,
    replaced: u64,
    unchanged: u64,
    known: u64,
    taken_over: u64,
    outdated: u64,
    elsewhere: u64,
}

impl OfTpp {
    /// Counts a line.
    pub(super) fn count(&mut self, effect: Effect) {
        let count = match effect {
            Effect::New => &mut self.new,
            Effect::Changed => &mut self.changed,
            Effect::Replaced => &mut self.replaced,
            Effect::Unchanged => &mut self.unchanged,
            Effect::Known => &mut self.known,
            Effect::TakenOver => &mut self.taken_over,
            Effect::Outdated => &mut self.outdated,
            Effect::Elsewhere => &mut self.elsewhere,
        };
        *count = count.saturating_add(1);
    }

    /// The sums.
    pub(super) const fn imported(&self) -> ImportedOfTpp {
        let updated = self.changed.saturating_add(self.replaced);
        let bound = self.new.saturating_add(self.taken_over);
        let changed = bound.saturating_add(updated);
        ImportedOfTpp {
            stored: changed.saturating_add(self.unchanged),
            changed,
            refused: self.outdated.saturating_add(self.elsewhere),
        }
    }

    /// What a report says of the TPP.
    pub(super) fn text(&self, dry_run: bool) -> String {
        let Self {
            new,
            changed,
            replaced,
            unchanged,
            known,
            taken_over,
            outdated,
            elsewhere,
        } = self;
        let replacing = match replaced {
            0 => String::new(),
            _ => format!(" ({replaced} with other accounts than a consent of the same time)"),
        };
        let updated = changed.saturating_add(*replaced);
        let ImportedOfTpp { stored, .. } = self.imported();
        let stored = if dry_run {
            let known = known.saturating_add(updated).saturating_add(*unchanged);
            format!("{new} new, {known} known{replacing}")
        } else {
            format!("{stored} kept: {new} new, {updated} changed{replacing}, {unchanged} unchanged")
        };
        let outdated = match outdated {
            0 => String::new(),
            _ => format!(", {outdated} with an older consent for other accounts"),
        };
        format!(
            "{stored}, {taken_over} taken over from a learned binding, {elsewhere} of another TPP{outdated}"
        )
    }
}
