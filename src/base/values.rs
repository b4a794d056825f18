//! Enums of closed sets whose values have names, in metrics, logs and files: a misspelt or unknown value does not compile.

/// Declares such an enum. `ALL` has the values in the order of the declaration, which [`Ord`] keeps.
#[macro_export]
macro_rules! values {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// All, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                let mut all = Self::ALL.iter().copied();
                all.find(|value| value.name() == name)
            }

            /// The index in `ALL`.
            #[allow(
                clippy::as_conversions,
                reason = "an enum without fields counts its variants from 0"
            )]
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}
