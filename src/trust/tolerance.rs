//! The faults of test certificates that a sandbox tolerates, each with a name.
//!
//! Test certificates of several CAs are malformed in known ways. `certificate_policy: tolerant` accepts exactly these faults, and the log
//! and a metric show each fault accepted; `strict`, the default, accepts none. Production is always strict (CRT-9).

use std::fmt;

/// The policy for faults of QcStatements (CRT-3, CRT-4, CRT-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificatePolicy {
    /// No fault is accepted.
    #[default]
    Strict,
    /// The faults of [`Tolerated`] are accepted; in the sandbox only.
    Tolerant,
}

macro_rules! tolerated {
    ($($(#[$doc:meta])* $variant:ident = $bit:literal, $name:literal;)+) => {
        /// A fault of QcStatements that test certificates have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tolerated { $($(#[$doc])* $variant),+ }

        impl Tolerated {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in the log and in the metric.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            const fn bit(self) -> u8 {
                match self { $(Self::$variant => $bit),+ }
            }
        }
    };
}

tolerated! {
    /// The PSD2 statement alone, without the SEQUENCE OF statements around it. Such an extension cannot contain QcCompliance
    /// and QcType, so neither is required.
    StatementUnwrapped = 1, "statement-unwrapped";
    /// The roles flattened into one SEQUENCE: object identifier, name, object identifier, name.
    RolesFlattened = 2, "roles-flattened";
    /// A PSD2 statement without a role. Operations that need a role are still refused (CRT-5).
    RolesEmpty = 4, "roles-empty";
    /// An NCA id that is not `<country>-<NCA>`, such as `Germany` or `EU-NCA`.
    NcaIdMalformed = 8, "nca-id-malformed";
}

/// A set of [`Tolerated`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Tolerances(u8);

impl Tolerances {
    /// The faults in the set, in the order of [`Tolerated::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Tolerated> {
        let all = Tolerated::ALL.iter().copied();
        all.filter(move |fault| self.contains(*fault))
    }

    /// Whether the fault is in the set.
    pub const fn contains(self, fault: Tolerated) -> bool {
        self.0 & fault.bit() != 0
    }
}

impl fmt::Debug for Tolerances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A policy, and the faults that it has accepted so far.
#[derive(Debug)]
pub(crate) struct Tolerance {
    policy: CertificatePolicy,
    used: Tolerances,
}

impl Tolerance {
    /// No fault accepted yet.
    pub(crate) const fn of(policy: CertificatePolicy) -> Self {
        Self {
            policy,
            used: Tolerances(0),
        }
    }

    /// Records a fault that the policy accepts; `None` if the policy does not accept the fault.
    pub(crate) fn allows(&mut self, fault: Tolerated) -> Option<()> {
        match self.policy {
            CertificatePolicy::Strict => None,
            CertificatePolicy::Tolerant => {
                self.used.0 |= fault.bit();
                Some(())
            }
        }
    }

    /// The faults accepted so far.
    pub(crate) const fn used(&self) -> Tolerances {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_names_are_distinct() {
        let mut tolerance = Tolerance::of(CertificatePolicy::Tolerant);
        for (index, fault) in Tolerated::ALL.iter().enumerate() {
            assert!(!tolerance.used().contains(*fault), "{fault:?}");
            assert_eq!(tolerance.allows(*fault), Some(()));
            assert_eq!(tolerance.used().iter().count(), index + 1);
        }
        let mut strict = Tolerance::of(CertificatePolicy::Strict);
        assert_eq!(strict.allows(Tolerated::RolesEmpty), None);
        assert_eq!(strict.used(), Tolerances::default());
    }
}
