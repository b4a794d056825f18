//! The scheme information of a list (TS 119 612, clause 5.3): whose list it is, its number, when it was issued and when the next comes.

use super::{
    names::{TSL, TSL_TYPE, short},
    value::{name_of, number_of, text, text_of, texts, time},
};
use crate::{fault::Refusal, tree::Element};
use portvakt_base::clock::Timestamp;
use std::fmt;

/// The version of the format (clause 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TS 119 612 up to v2.2.1.
    Five,
    /// TS 119 612 from v2.3.1; in force since 2026-04-29.
    Six,
}

impl Version {
    /// Its number.
    pub const fn number(self) -> u64 {
        match self {
            Self::Five => 5,
            Self::Six => 6,
        }
    }
}

/// The type of a list (clause 5.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The European Commission's list of the national lists.
    ListOfLists,
    /// The list of a member state.
    National,
}

impl fmt::Display for ListType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ListOfLists => "list of lists",
            Self::National => "national list",
        })
    }
}

impl ListType {
    /// Reads an element `TSLType`.
    pub(crate) fn read(element: &Element<'_>) -> Result<Self, Refusal> {
        let uri = text(element)?;
        match short(&uri, TSL_TYPE) {
            "EUlistofthelists" => Ok(Self::ListOfLists),
            "EUgeneric" => Ok(Self::National),
            _ => Err(element.refuse(format_args!("a list of another type: {uri}"))),
        }
    }
}

/// The scheme information of a list.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// The version of the format.
    pub version: Version,
    /// The number of this issue of the list; a later one is greater.
    pub sequence: u64,
    /// The type of the list.
    pub list_type: ListType,
    /// The country as the lists write it (EL for Greece, UK), `EU` for the list of lists.
    pub territory: String,
    /// The name of the scheme's operator, in English where it has one.
    pub operator: String,
    /// The names of the scheme's operator, in each language.
    pub operators: Vec<String>,
    /// The addresses of information on the scheme, in their order; those of the list of lists name pivots and Official Journals.
    pub information: Vec<String>,
    /// When the list was issued.
    pub issued: Timestamp,
    /// When the next one comes at the latest; `None` for a list that is closed (clause 5.3.15).
    pub next_update: Option<Timestamp>,
}

/// Elements that the schema requires and from which nothing is read.
const REQUIRED: [&str; 4] = [
    "SchemeOperatorAddress",
    "SchemeName",
    "StatusDeterminationApproach",
    "HistoricalInformationPeriod",
];

impl Scheme {
    /// Reads the element `SchemeInformation`.
    pub(crate) fn read(element: &Element<'_>) -> Result<Self, Refusal> {
        let version = version(element)?;
        for name in REQUIRED {
            element.required(TSL, name)?;
        }
        let information = element.required(TSL, "SchemeInformationURI")?;
        let operators = element.required(TSL, "SchemeOperatorName")?.children();
        let operators = operators.filter_map(|name| text(&name).ok());
        let next = element.required(TSL, "NextUpdate")?;
        let next = next.optional(TSL, "dateTime")?;
        Ok(Self {
            version,
            sequence: sequence(element)?,
            list_type: ListType::read(&element.required(TSL, "TSLType")?)?,
            territory: territory(&element.required(TSL, "SchemeTerritory")?)?,
            operator: name_of(element, "SchemeOperatorName")?,
            operators: operators.collect(),
            information: texts(&information, "URI")?,
            issued: time(&element.required(TSL, "ListIssueDateTime")?)?,
            next_update: next.map(|next| time(&next)).transpose()?,
        })
    }
}

/// The first issue of a list has the number 1 (clause 5.3.2).
fn sequence(element: &Element<'_>) -> Result<u64, Refusal> {
    match number_of(element, "TSLSequenceNumber")? {
        0 => Err(element
            .required(TSL, "TSLSequenceNumber")?
            .refuse("TSLSequenceNumber is 0; the first issue of a list has 1")),
        number => Ok(number),
    }
}

fn version(element: &Element<'_>) -> Result<Version, Refusal> {
    match text_of(element, "TSLVersionIdentifier")?.as_str() {
        "5" => Ok(Version::Five),
        "6" => Ok(Version::Six),
        other => {
            let line = element.required(TSL, "TSLVersionIdentifier")?;
            Err(line.refuse(format_args!("list version {other}; expected 5 or 6")))
        }
    }
}

/// Reads a territory: two capital letters, so that it can be part of a file's name.
///
/// # Errors
/// It is anything else.
pub(crate) fn territory(element: &Element<'_>) -> Result<String, Refusal> {
    let text = text(element)?;
    match text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        true => Ok(text),
        false => Err(element.refuse(format_args!("no territory of two capital letters: {text}"))),
    }
}
