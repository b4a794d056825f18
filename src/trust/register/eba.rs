//! The EBA's register of payment and e-money institutions under PSD2, in its published form: one JSON file of 200 MB.
//!
//! The file is `[disclaimer[], entities[]]`. An entity has CA_OwnerID (`NO_FSA`), EntityCode (`NO_FSA!123`), EntityType, Properties and
//! Services. Properties and Services are lists of one-key maps whose value is a string or a list of strings. The reader streams the file:
//! one entity at a time is in memory, and agents, 98 of 100 entities, are dropped. Zip archives are not read.

use super::{
    FileCounts, begin,
    listing::{Entry, Listing},
};
use crate::Roles;
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{collections::HashMap, fmt, io::BufRead};

/// The reason why a file is not the EBA's export.
#[derive(Debug, thiserror::Error)]
pub enum EbaFault {
    /// The file is not JSON, or does not have the structure of the export. The text ends with line and column.
    #[error("it is not the EBA's export: {0}")]
    Shape(#[from] serde_json::Error),
    /// The file is a zip archive.
    #[error("it is a zip archive: unpack the JSON file in it")]
    Packed,
    /// The file is something else than JSON, by its first bytes (ERR-10).
    #[error("{0}")]
    Other(&'static str),
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// The file has no institution with an authority and an id.
    #[error("it holds no institution")]
    Empty,
}

/// The EntityType of agents, which have no services of their own.
const AGENT: &str = "PSD_AG";
/// The service of payment initiation, and the number of its role.
const PAYMENT_INITIATION: (&str, u8) = ("PS_070", 2);
/// The service of account information, and the number of its role.
const ACCOUNT_INFORMATION: (&str, u8) = ("PS_080", 3);
/// The property of the national id.
const NATIONAL_ID: &str = "ENT_NAT_REF_COD";
/// The property of the name, in the languages of the register.
const NAME: &str = "ENT_NAM";
/// The property with the dates on which the authorisation changed: granted, withdrawn, granted again.
const CHANGES: &str = "ENT_AUT";
/// The property of branches in place of [`CHANGES`].
const STATUS: &str = "DER_CHI_ENT_AUT";

/// The stored content of the export.
#[derive(Debug)]
pub(super) struct EbaExport<'a> {
    /// The entries by authority and national id.
    pub(super) by_national_id: HashMap<TppId, Entry>,
    /// The entries by authority and the authority's own number of the institution.
    pub(super) by_code: HashMap<TppId, Entry>,
    /// The latest `__EBA_EntityVersion`: digits from the year to the millisecond.
    pub(super) latest: Option<String>,
    pub(super) counts: FileCounts,
    host_country: &'a str,
}

impl<'a> EbaExport<'a> {
    pub(super) fn read(mut reader: impl BufRead, host_country: &'a str) -> Result<Self, EbaFault> {
        let begin = reader.fill_buf()?;
        if begin.starts_with(b"PK") {
            return Err(EbaFault::Packed);
        }
        if let Some(what) = begin::other(begin) {
            return Err(EbaFault::Other(what));
        }
        let mut export = Self {
            by_national_id: HashMap::new(),
            by_code: HashMap::new(),
            latest: None,
            counts: FileCounts::default(),
            host_country,
        };
        let mut json = serde_json::Deserializer::from_reader(reader);
        Sections(&mut export).deserialize(&mut json)?;
        json.end()?;
        if export.by_national_id.is_empty() && export.by_code.is_empty() {
            return Err(EbaFault::Empty);
        }
        Ok(export)
    }

    fn take(&mut self, entity: &Entity) {
        let version = entity.version.first();
        if is_version(version) {
            self.counts.add_date();
            if Some(version) > self.latest.as_deref() {
                self.latest = Some(version.to_owned());
            }
        }
        if entity.kind.first() == AGENT {
            self.counts.add_agent();
            return;
        }
        let listed = self.listed(entity);
        let entry = (listed, entity.properties.texts(NAME).next());
        let mut named = false;
        let (owner, code) = (entity.owner.first(), entity.code.first());
        if let Some((country, authority)) = owner.split_once('_') {
            for id in entity.properties.texts(NATIONAL_ID) {
                named |= file(&mut self.by_national_id, country, authority, id, entry);
            }
            // `<CA_OwnerID>!<number>`; the codes of branches have more parts and do not identify an institution.
            let number = code.strip_prefix(owner);
            let number = number.and_then(|rest| rest.strip_prefix('!'));
            let number = number.unwrap_or(code);
            if !number.contains('!') {
                named |= file(&mut self.by_code, country, authority, number, entry);
            }
        }
        self.counts.add(named.then_some(listed));
    }

    /// The authorisation of an entity. A withdrawn authorisation has no services, although the register still lists them.
    fn listed(&self, entity: &Entity) -> Listing {
        let mut listed = Listing::default();
        if !is_authorised(&entity.properties) {
            return listed;
        }
        listed.authorised = true;
        for (country, services) in &entity.services.0 {
            let roles = roles(services);
            // A service without a country in the register is valid in every country.
            if country.is_empty() || country == self.host_country {
                listed.here = listed.here.or(roles);
            } else {
                listed.elsewhere = listed.elsewhere.or(roles);
            }
        }
        listed
    }
}

/// The time of the register's latest change, from its digits, in UTC.
pub(super) fn moment(version: &str) -> Option<Timestamp> {
    let seconds = version.get(..14)?;
    let civil = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", seconds).ok()?;
    let zoned = civil.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_second())
        .ok()
        .map(Timestamp::from_unix)
}

/// Whether the text is a version such as `20220428213506543`.
fn is_version(text: &str) -> bool {
    text.len() == 17 && moment(text).is_some() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the entity is authorised. The dates of ENT_AUT are those of status changes, in order, so an even number of dates ends with a
/// withdrawal. Branches have a status text instead of dates. An entity with neither counts as authorised.
fn is_authorised(properties: &Pairs) -> bool {
    match properties.texts(CHANGES).count() {
        0 => properties
            .texts(STATUS)
            .all(|status| !status.eq_ignore_ascii_case("inactive")),
        changes => changes % 2 == 1,
    }
}

fn roles(services: &Texts) -> Roles {
    let known = [PAYMENT_INITIATION, ACCOUNT_INFORMATION];
    let held = known
        .iter()
        .filter(|(service, _)| services.0.iter().any(|held| held == service));
    held.fold(Roles::default(), |roles, (_, number)| roles.with(*number))
}

/// Adds an authorisation and a name under an id; returns whether the id is valid.
fn file(
    index: &mut HashMap<TppId, Entry>,
    country: &str,
    authority: &str,
    id: &str,
    (listed, name): (Listing, Option<&str>),
) -> bool {
    let Some(identity) = identity(country, authority, id) else {
        return false;
    };
    index.entry(identity).or_default().merge(listed, name);
    true
}

/// Authorities with different names in the EBA's register and in certificates, which use two to eight letters (ETSI TS 119 495, 5.2.1):
/// country, the register's name, the certificates' name.
const AUTHORITIES: [(&str, &str, &str); 1] = [("FI", "FIN-FSA", "FINFSA")];

/// The identity in the certificates of an institution of the EBA's register; `None` if no certificate can have it (CRT-4).
pub(super) fn identity(country: &str, authority: &str, id: &str) -> Option<TppId> {
    let named = AUTHORITIES
        .iter()
        .find(|(of, name, _)| (*of, *name) == (country, authority));
    let authority = named.map_or(authority, |(.., certified)| certified);
    let id = id.trim_matches(|c: char| c.is_ascii_whitespace());
    let is_id = id.contains(|c| !matches!(c, ' ' | '-'));
    TppId::parse(&format!("PSD{country}-{authority}-{id}")).filter(|_| is_id)
}

/// The members that are read, with any JSON type: an entity with unexpected types has no identity.
#[derive(Deserialize)]
struct Entity {
    #[serde(rename = "CA_OwnerID", default)]
    owner: Texts,
    #[serde(rename = "EntityCode", default)]
    code: Texts,
    #[serde(rename = "EntityType", default)]
    kind: Texts,
    #[serde(rename = "__EBA_EntityVersion", default)]
    version: Texts,
    #[serde(rename = "Properties", default)]
    properties: Pairs,
    #[serde(rename = "Services", default)]
    services: Pairs,
}

/// The file: a list of two lists.
struct Sections<'a, 'h>(&'a mut EbaExport<'h>);

impl<'de> DeserializeSeed<'de> for Sections<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Sections<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of two lists, the disclaimer and the entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sections: A) -> Result<(), A::Error> {
        let disclaimer = sections.next_element::<IgnoredAny>()?;
        disclaimer.ok_or_else(|| de::Error::invalid_length(0, &self))?;
        let entities = sections.next_element_seed(Entities(&mut *self.0))?;
        entities.ok_or_else(|| de::Error::invalid_length(1, &self))?;
        match sections.next_element::<IgnoredAny>()? {
            Some(_) => Err(de::Error::invalid_length(3, &self)),
            None => Ok(()),
        }
    }
}

/// The entities, read one at a time.
struct Entities<'a, 'h>(&'a mut EbaExport<'h>);

impl<'de> DeserializeSeed<'de> for Entities<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entities<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list of entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entities: A) -> Result<(), A::Error> {
        while let Some(entity) = entities.next_element()? {
            self.0.take(&entity);
        }
        Ok(())
    }
}

/// A list of one-key maps, flattened. Maps with several keys, and codes without a key, are read too.
#[derive(Default)]
struct Pairs(Vec<(String, Texts)>);

impl Pairs {
    /// Every text under a name.
    fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.0.iter().filter(move |(known, _)| known == name);
        found.flat_map(|(_, texts)| texts.0.iter().map(String::as_str))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of maps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(inner) = seq.next_element::<Pairs>()? {
            pairs.extend(inner.0);
        }
        Ok(Pairs(pairs))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }

    fn visit_str<E>(self, text: &str) -> Result<Pairs, E> {
        Ok(Pairs(vec![(String::new(), Texts(vec![text.to_owned()]))]))
    }

    fn visit_unit<E>(self) -> Result<Pairs, E> {
        Ok(Pairs::default())
    }
}

/// A text or a list of texts. A number counts as a text; every other type is ignored.
#[derive(Default)]
struct Texts(Vec<String>);

impl Texts {
    /// The first text, for a property with one value.
    fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(inner) = seq.next_element::<Texts>()? {
            texts.extend(inner.0);
        }
        Ok(Texts(texts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Texts::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Texts, E> {
        Ok(Texts(vec![number.to_string()]))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Texts, E> {
        Ok(Texts::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Texts, E> {
        Ok(Texts::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Texts, E> {
        Ok(Texts::default())
    }

    fn visit_unit<E>(self) -> Result<Texts, E> {
        Ok(Texts::default())
    }
}
