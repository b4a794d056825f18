//! A TPP's identity: the organizationIdentifier of its certificate (CRT-4, ETSI TS 119 495, 5.2.1), and what operators and registers write
//! about a TPP by its identity.
//!
//! Invariants: a [`TppId`] has one spelling for each TPP, so that equal TPPs have equal ids, which are the keys of rates, quotas, bindings
//! and metrics. What is written about a TPP is kept by one of three types, and nothing else compares identities without spaces and dashes:
//!
//! - [`Permitted`] applies to exactly the TPP that it names: `PSDNO-FSA-123-456` may be another one than `PSDNO-FSA-123456` (FWD-6).
//! - [`Forbidden`] applies to every spelling, so that no CA's way to write an id avoids it.
//! - [`Registered`] is an authority's register, which is asked for exactly the TPP first (CRT-4).

use super::character::OddCharacter;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

/// `PSD<country>-<NCA>-<id>`, trimmed and in capitals; ASCII alone. A clone copies no text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TppId(Arc<str>);

impl TppId {
    /// The identity in a text, in its normalised spelling; `None` if the text has none.
    ///
    /// Only ASCII is folded: the Unicode capital of `ſ` is S, so Unicode folding would give one TPP the spelling of another.
    pub fn parse(text: &str) -> Option<Self> {
        let identity = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let identity = identity.to_ascii_uppercase();
        is_psd2_identifier(&identity).then(|| Self(identity.into()))
    }

    /// The reason why a text has no identity (ERR-10). It repeats nothing but a character.
    pub fn fault(text: &str) -> String {
        let identity = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let identity = identity.to_ascii_uppercase();
        let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
        if let Some(odd) = OddCharacter::first(identity.as_bytes(), is_printable) {
            return odd.to_string();
        }
        let Some(rest) = identity.strip_prefix("PSD") else {
            return "it does not begin with PSD".to_owned();
        };
        let mut parts = rest.splitn(3, '-');
        let [country, nca, id] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let fault = if !is_authority(country, "NCA") {
            "after PSD stands no country of two letters and a hyphen (EU is no country)"
        } else if !is_authority(country, nca) {
            "after the country stands no authority of two to eight letters and a hyphen"
        } else if id.is_empty() {
            "it ends before the id"
        } else {
            "it cannot be read"
        };
        fault.to_owned()
    }

    /// The identity as certificates and registers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identity as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The identity without the spaces and dashes of its id.
    fn bare(&self) -> BareTppId {
        let mut dashes = 0_u8;
        let kept = |c: &char| {
            let separates = *c == '-' && dashes < 2;
            dashes = dashes.saturating_add(u8::from(separates));
            separates || !matches!(c, ' ' | '-')
        };
        let bare: String = self.0.chars().filter(kept).collect();
        BareTppId(bare.into_boxed_str())
    }
}

impl fmt::Display for TppId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for TppId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

/// An identity without the spaces and dashes of its id. Private, so that nothing but the types below compares by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct BareTppId(Box<str>);

/// A TPP that the operator permits something, or that the bank makes a statement about: exactly this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermittedTpp(TppId);

impl PermittedTpp {
    /// The identity in a text; `None` if the text has none.
    pub fn parse(text: &str) -> Option<Self> {
        TppId::parse(text).map(Self)
    }

    /// Exactly this TPP.
    pub fn into_exact(self) -> TppId {
        self.0
    }

    /// The same TPP where the entry takes something away.
    pub fn as_forbidden(&self) -> ForbiddenTpp {
        ForbiddenTpp::of(&self.0)
    }
}

/// A TPP that the operator or the bank forbids something, in every spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForbiddenTpp(BareTppId);

impl ForbiddenTpp {
    /// The identity in a text; `None` if the text has none.
    pub fn parse(text: &str) -> Option<Self> {
        TppId::parse(text).map(|tpp| Self::of(&tpp))
    }

    /// This TPP in every spelling.
    pub fn of(tpp: &TppId) -> Self {
        Self(tpp.bare())
    }

    /// The TPP that a row of the state names by [`Self::as_str`]; `None` if the row has none.
    pub fn stored(text: &str) -> Option<Self> {
        // An id may consist of spaces and dashes only, and one dash more changes nothing.
        Self::parse(&format!("{text}-"))
    }

    /// The identity without the spaces and dashes of its id.
    pub fn as_str(&self) -> &str {
        &self.0.0
    }

    /// Whether it names this TPP, in any spelling.
    pub fn names(&self, tpp: &TppId) -> bool {
        self.0 == tpp.bare()
    }
}

/// What the operator permits to single TPPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permitted<V>(BTreeMap<TppId, V>);

impl<V> Permitted<V> {
    /// Adds an entry. Returns that of the same TPP before.
    pub fn insert(&mut self, tpp: PermittedTpp, value: V) -> Option<V> {
        self.0.insert(tpp.0, value)
    }

    /// The entry of exactly this TPP.
    pub fn get(&self, tpp: &TppId) -> Option<&V> {
        self.0.get(tpp)
    }

    /// An entry that differs from this TPP in spaces and dashes, for a hint to the operator only.
    pub fn alike(&self, tpp: &TppId) -> Option<&TppId> {
        let bare = tpp.bare();
        self.0.keys().find(|other| other.bare() == bare)
    }

    /// The TPPs with an entry.
    pub fn tpps(&self) -> impl Iterator<Item = &TppId> {
        self.0.keys()
    }

    /// The values of all entries.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Permitted<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// What the operator forbids to single TPPs, or limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden<V>(BTreeMap<ForbiddenTpp, V>);

impl<V> Forbidden<V> {
    /// Adds an entry. Returns that of the same TPP before, in whatever spelling.
    pub fn insert(&mut self, tpp: ForbiddenTpp, value: V) -> Option<V> {
        self.0.insert(tpp, value)
    }

    /// The entry of this TPP, in whatever spelling.
    pub fn get(&self, tpp: &TppId) -> Option<&V> {
        // Without entries, which is usual, the identity needs no copy.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&ForbiddenTpp::of(tpp))
    }

    /// The entry that a key names, in whatever spelling.
    pub fn get_mut(&mut self, tpp: &ForbiddenTpp) -> Option<&mut V> {
        self.0.get_mut(tpp)
    }

    /// The TPPs with an entry.
    pub fn tpps(&self) -> impl Iterator<Item = &ForbiddenTpp> {
        self.0.keys()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Forbidden<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// The entries of an authority's register (CRT-4).
#[derive(Clone, Debug)]
pub struct Registered<V> {
    entries: HashMap<TppId, V>,
    /// The identities that differ only in spaces and dashes, by their bare identity.
    alike: HashMap<BareTppId, Vec<TppId>>,
}

impl<V> Registered<V> {
    /// Adds an entry, in place of one of exactly this identity.
    pub fn insert(&mut self, tpp: TppId, value: V) {
        if !self.entries.contains_key(&tpp) {
            let alike = self.alike.entry(tpp.bare()).or_default();
            alike.push(tpp.clone());
        }
        self.entries.insert(tpp, value);
    }

    /// The entry of exactly this identity; otherwise the one entry that differs only in spaces and dashes, if there is one only.
    pub fn get(&self, tpp: &TppId) -> Option<&V> {
        if let Some(exact) = self.entries.get(tpp) {
            return Some(exact);
        }
        match self.alike.get(&tpp.bare()).map(Vec::as_slice) {
            Some([only]) => self.entries.get(only),
            Some(_) | None => None,
        }
    }

    /// Whether an entry is this TPP's in some spelling.
    pub fn has_alike(&self, tpp: &ForbiddenTpp) -> bool {
        self.alike.contains_key(&tpp.0)
    }

    /// Whether there is an entry of exactly this identity.
    pub fn has(&self, tpp: &TppId) -> bool {
        self.entries.contains_key(tpp)
    }

    /// The values of all entries.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of entries that differ from another one only in spaces and dashes. Only a certificate with exactly such an identity is found.
    pub fn spelled_alike(&self) -> usize {
        let groups = self.alike.values().map(Vec::len);
        groups.filter(|identities| *identities > 1).sum()
    }
}

impl<V> Default for Registered<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            alike: HashMap::new(),
        }
    }
}

fn is_psd2_identifier(identifier: &str) -> bool {
    let Some((country, rest)) = identifier
        .strip_prefix("PSD")
        .and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    let Some((nca, id)) = rest.split_once('-') else {
        return false;
    };
    is_authority(country, nca)
        && !id.is_empty()
        && id.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A country of two letters and an authority of two to eight. `EU` is not a country of ISO 3166-1.
pub fn is_authority(country: &str, nca: &str) -> bool {
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    country.len() == 2
        && letters(country)
        && country != "EU"
        && (2..=8).contains(&nca.len())
        && letters(nca)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        for good in [
            "PSDNO-FSA-123456",
            "PSDFI-FINFSA-29884997",
            "PSDDE-BAFIN-A B",
        ] {
            assert!(is_psd2_identifier(good), "{good}");
        }
        for bad in [
            "PSDNO-FSA",
            "PSDNO-FSA-",
            "PSDNOR-FSA-1",
            "NTRNO-123456",
            "PSD12-FSA-1",
            "PSDNO-F-1",
            "PSDNO-FIN_FSA-1",
            "PSDEU-NCA-1",
            "",
            "PSDNO-FSA-\u{e6}",
        ] {
            assert!(!is_psd2_identifier(bad), "{bad}");
        }
    }

    #[test]
    fn only_ascii_is_folded() {
        let identity = TppId::parse("\tpsdno-fsa-a1 ").unwrap();
        assert_eq!(identity.as_str(), "PSDNO-FSA-A1");
        for other in [
            "P\u{17f}DNO-FSA-A1",
            "PSDNO-F\u{17f}A-A1",
            "PSDNO-FSA-\u{ff21}1",
            "PSDNO-FSA-A\u{661}",
            "PSDNO-FSA-A1\u{a0}",
            "PSDNO-FSA-A1\u{200b}",
            "PSDNO-FSA-A1\0",
        ] {
            assert_eq!(TppId::parse(other), None, "{other}");
        }
    }

    /// FWD-6, CRT-4: one table for the three types.
    #[test]
    fn what_permits_is_exact_and_what_forbids_forgives() {
        let mut permitted = Permitted::default();
        let mut forbidden = Forbidden::default();
        let mut registered = Registered::default();
        permitted.insert(PermittedTpp::parse("PSDNO-FSA-123456").unwrap(), ());
        forbidden.insert(ForbiddenTpp::parse("PSDNO-FSA-123456").unwrap(), ());
        registered.insert(TppId::parse("PSDNO-FSA-123456").unwrap(), ());
        let table = [
            ("PSDNO-FSA-123456", [true, true, true]),
            ("psdno-fsa-123456", [true, true, true]),
            ("PSDNO-FSA-123-456", [false, true, true]),
            ("PSDNO-FSA-12 34 56", [false, true, true]),
            ("PSDNO-FSA-1234567", [false; 3]),
            ("PSDSE-FSA-123456", [false; 3]),
        ];
        for (text, expected) in table {
            let tpp = TppId::parse(text).unwrap();
            let found = [
                permitted.get(&tpp).is_some(),
                forbidden.get(&tpp).is_some(),
                registered.get(&tpp).is_some(),
            ];
            assert_eq!(found, expected, "{text}");
        }
        for text in ["psdno-fsa-12 34-56", "PSDNO-FSA--"] {
            let named = ForbiddenTpp::parse(text).unwrap();
            assert_eq!(ForbiddenTpp::stored(named.as_str()), Some(named));
        }
        assert_eq!(ForbiddenTpp::stored("PSDNO-FSA"), None);
        // Of two entries that are alike, only the exact one counts.
        registered.insert(TppId::parse("PSDNO-FSA-1234-56").unwrap(), ());
        let found = |text: &str| registered.get(&TppId::parse(text).unwrap()).is_some();
        assert!(found("PSDNO-FSA-1234-56") && !found("PSDNO-FSA-123-456"));
    }
}
