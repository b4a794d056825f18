//! The source of a value: the TPP, or the bank and its core (SCA-17, SCA-19, SCA-22, QUO-15).
//!
//! A TPP says who the PSU is and for which agreement it acts. That is a [`Claimed`] value until somebody who knows confirms it: a binding in
//! the state, the bank by a call, or the core by a header of its answer. Then it is a [`Known`] value. Every fact about a PSU, an agreement,
//! a consent or an SCA in the state, in an assertion, in the key of a quota and in a Gateway- header takes a [`Known`] value only.
//!
//! Invariant: nothing in this program makes a [`Known`] of a [`Claimed`] value without a [`CoreWord`] or a row of the state. Deliberately not
//! here: the words of a TPP that rules admit as they are. They have types of their own, and docs/threat-model.md lists them.
//!
//! A word of the TPP about its PSU is no fact (SCA-17, SCA-22). A PSU-ID that a request names is none that the bank said:
//!
//! ```compile_fail,E0308
//! use portvakt_interface::{TppId, headers::PsuId};
//! use portvakt_state::{Claimed, PsuRef};
//! fn keep(tpp: &TppId, named: Claimed<PsuId>) -> PsuRef<'_> { PsuRef { tpp, psu: named } }
//! ```
//!
//! That the bank said it compiles:
//!
//! ```
//! use portvakt_interface::{TppId, headers::PsuId};
//! use portvakt_state::{Known, PsuRef};
//! fn keep(tpp: &TppId, said: Known<PsuId>) -> PsuRef<'_> { PsuRef { tpp, psu: said } }
//! ```
//!
//! An agreement that a request names is neither stored nor part of a quota's key nor hashed for the state:
//!
//! ```compile_fail,E0308
//! use portvakt_interface::headers::CorporateId;
//! use portvakt_state::{Claimed, LearnedContext};
//! fn keep(named: Claimed<CorporateId>) -> LearnedContext<'static> { LearnedContext { corporate: Some(named), consent: None } }
//! ```
//!
//! ```compile_fail,E0308
//! use portvakt_interface::headers::CorporateId;
//! use portvakt_state::{Claimed, CorporateHash, Keys};
//! fn hash(keys: &Keys, named: Claimed<CorporateId>) -> CorporateHash { keys.corporate(named) }
//! ```
//!
//! ```
//! use portvakt_interface::headers::CorporateId;
//! use portvakt_state::{CorporateHash, Keys, Known};
//! fn hash(keys: &Keys, said: Known<CorporateId>) -> CorporateHash { keys.corporate(said) }
//! ```
//!
//! The core's word for the PSU does not confirm the agreement:
//!
//! ```compile_fail,E0308
//! use portvakt_interface::headers::{CorporateId, PsuId};
//! use portvakt_state::{Claimed, CoreWord, Known};
//! fn learn(named: Claimed<CorporateId>, word: CoreWord<PsuId>) -> Known<CorporateId> { named.confirmed(word) }
//! ```
//!
//! ```
//! use portvakt_interface::headers::CorporateId;
//! use portvakt_state::{Claimed, CoreWord, Known};
//! fn learn(named: Claimed<CorporateId>, word: CoreWord<CorporateId>) -> Known<CorporateId> { named.confirmed(word) }
//! ```
//!
//! Nor can that word, or a known value, be made up:
//!
//! ```compile_fail,E0423
//! use portvakt_interface::headers::PsuId;
//! use portvakt_state::CoreWord;
//! fn forge() -> CoreWord<PsuId> { CoreWord(std::marker::PhantomData) }
//! ```
//!
//! ```compile_fail,E0423
//! use portvakt_interface::headers::PsuId;
//! use portvakt_state::Known;
//! fn forge(id: PsuId) -> Known<PsuId> { Known(id) }
//! ```

use http::{HeaderMap, HeaderName};
use portvakt_interface::headers::{self, CorporateId, PsuId};
use std::marker::PhantomData;

/// A value that a TPP says about its PSU, which nobody confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed<T>(T);

/// A value that the bank or its core said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Known<T>(T);

/// An id of a request: known, or only claimed while PSUs are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<T> {
    /// The bank or the core said it.
    Known(Known<T>),
    /// Only the TPP says it: the core decides (SCA-19, SCA-22).
    Claimed(Claimed<T>),
}

/// The core's confirmation of a claimed id, from the head of its answer.
#[derive(Clone, Copy, Debug)]
pub struct CoreWord<T>(PhantomData<T>);

/// An id that the core can confirm.
pub trait Confirmable: Copy {
    /// The header of the core's answer that confirms the id, by `yes`.
    const CONFIRMED_BY: HeaderName;
}

impl Confirmable for PsuId {
    const CONFIRMED_BY: HeaderName = HeaderName::from_static("gateway-psu-bound");
}

impl Confirmable for CorporateId {
    const CONFIRMED_BY: HeaderName = HeaderName::from_static("gateway-psu-corporate-bound");
}

impl<T: Copy> Claimed<T> {
    /// A value of a request.
    pub const fn by_tpp(value: T) -> Self {
        Self(value)
    }

    /// The value, to show it to the bank as the TPP's word, as on the SCA page (SCA-17).
    pub const fn to_show(self) -> T {
        self.0
    }

    /// The value to seek a row of the state with. A row that is found confirms the claim; without one the value is worth nothing.
    pub(super) const fn to_seek(self) -> Known<T> {
        Known(self.0)
    }
}

impl<T: Confirmable> Claimed<T> {
    /// The value, now that the core confirmed it.
    pub fn confirmed(self, _: CoreWord<T>) -> Known<T> {
        Known(self.0)
    }
}

impl<T: Copy> Known<T> {
    /// A value that the bank said: by a call of the control listener, by an import or by a command of an operator.
    pub const fn by_bank(value: T) -> Self {
        Self(value)
    }

    /// A value that the gateway itself sealed into a token when it was known (SCA-12).
    pub const fn by_own_seal(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(self) -> T {
        self.0
    }
}

impl<T: Confirmable> CoreWord<T> {
    /// Reads the core's answer. A confirmation that is missing, repeated, or anything but `yes` is none.
    pub fn read(answer: &HeaderMap) -> Option<Self> {
        let mut values = answer.get_all(T::CONFIRMED_BY).iter();
        let value = headers::trim(values.next()?.as_bytes());
        (value == b"yes" && values.next().is_none()).then_some(Self(PhantomData))
    }
}

impl<T: Copy> Named<T> {
    /// The id, if it is known.
    pub const fn known(self) -> Option<Known<T>> {
        match self {
            Self::Known(known) => Some(known),
            Self::Claimed(_) => None,
        }
    }

    /// The id, if it is only claimed.
    pub const fn claimed(self) -> Option<Claimed<T>> {
        match self {
            Self::Known(_) => None,
            Self::Claimed(claimed) => Some(claimed),
        }
    }

    /// The id to seek a row of the state with.
    pub(super) const fn to_seek(self) -> Known<T> {
        match self {
            Self::Known(known) => known,
            Self::Claimed(claimed) => claimed.to_seek(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_one_plain_yes_is_the_cores_word() {
        let said = |values: &[&'static str]| {
            let values = values.iter().map(|value| HeaderValue::from_static(value));
            let name = CorporateId::CONFIRMED_BY;
            let answer: HeaderMap = values.map(|value| (name.clone(), value)).collect();
            assert!(CoreWord::<PsuId>::read(&answer).is_none());
            CoreWord::<CorporateId>::read(&answer).is_some()
        };
        assert!(said(&["yes"]) && said(&[" yes "]));
        for other in [
            &[][..],
            &["no"],
            &["YES"],
            &["yes, yes"],
            &["yes", "yes"],
            &[""],
        ] {
            assert!(!said(other), "{other:?}");
        }
    }
}
