//! The statuses of a payment, and the list of those that count as pending.
//!
//! The ledger and the history of an account import it, payments too. Deliberately not here: the transitions (payment.rs).

use super::bank::BankFault;

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// The status of a payment (§Payment transaction status values), the least advanced first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Status { $($(#[$doc])* $variant),+ }

        impl Status {
            /// Every one.
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The interface's code.
            pub(super) const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

statuses! {
    /// Received, and not signed.
    Received = "RCVD",
    /// Signed, and under review.
    Pending = "PDNG",
    /// Signed, without funds.
    WithoutFunds = "ACCP",
    /// Signed, for another day than was asked for.
    Changed = "ACWC",
    /// Signed, and waits for its day.
    Signed = "ACTC",
    /// Booked, and in transit.
    InSettlement = "ACSP",
    /// Booked at once, and in transit.
    WithoutPosting = "ACWP",
    /// It has arrived.
    Settled = "ACSC",
    /// Some parts of a bulk were refused.
    Partly = "PART",
    /// Cancelled.
    Cancelled = "CANC",
    /// Refused.
    Rejected = "RJCT",
}

impl Status {
    /// Signed and not booked.
    pub(super) const fn is_pending(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::WithoutFunds | Self::Changed | Self::Signed
        )
    }

    /// Whether the amount has left the debtor's account.
    pub(super) const fn is_booked(self) -> bool {
        matches!(
            self,
            Self::InSettlement | Self::WithoutPosting | Self::Settled
        )
    }

    /// Whether it ended without a booking.
    pub(super) const fn is_refused(self) -> bool {
        matches!(self, Self::Rejected | Self::Cancelled)
    }

    /// Parses the stored form.
    pub(super) fn read(word: &str) -> Result<Self, BankFault> {
        let mut all = Self::ALL.iter().copied();
        all.find(|status| status.word() == word)
            .ok_or(BankFault::Kept("a status"))
    }
}

/// The pending statuses, as a list in SQL.
pub(super) const PENDING: &str = "('PDNG', 'ACCP', 'ACWC', 'ACTC')";
