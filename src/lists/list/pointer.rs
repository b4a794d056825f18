//! The pointers of a list to others (TS 119 612, clause 5.3.13): where each list is, and who signs it.

use super::{
    identity::certificates,
    names::{ADDITIONAL, TSL, XML_LIST},
    scheme::{ListType, territory},
    value::{text, text_of},
};
use crate::{certificate::Certificate, fault::Refusal, tree::Element};

/// A pointer to a list in XML.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// The type of the list.
    pub list_type: ListType,
    /// The country of the list, `EU` for the list of lists.
    pub territory: String,
    /// The address of the list, as it stands.
    pub location: String,
    /// The certificates of those who may sign the list.
    pub signers: Vec<Certificate>,
    /// The line in the file.
    pub line: usize,
}

/// Reads the element `PointersToOtherTSL`. Pointers to lists in another format, such as PDF, and of another type are left out.
///
/// # Errors
/// A pointer to a list in XML lacks a part, or no certificate of its signers can be read.
pub(crate) fn read(element: &Element<'_>) -> Result<Vec<Pointer>, Refusal> {
    let mut pointers = Vec::new();
    for pointer in element.children() {
        if !pointer.is(TSL, "OtherTSLPointer") {
            return Err(pointer.refuse(format_args!("{} among pointers", pointer.local())));
        }
        pointers.extend(read_one(&pointer)?);
    }
    Ok(pointers)
}

fn read_one(element: &Element<'_>) -> Result<Option<Pointer>, Refusal> {
    let additional = element.required(TSL, "AdditionalInformation")?;
    if text(&information(&additional, ADDITIONAL, "MimeType")?)? != XML_LIST {
        return Ok(None);
    }
    let Ok(list_type) = ListType::read(&information(&additional, TSL, "TSLType")?) else {
        return Ok(None);
    };
    let identities = element.required(TSL, "ServiceDigitalIdentities")?;
    // A certificate that cannot be read is nobody's: no signature verifies by it.
    let signers: Vec<_> = identities
        .children()
        .flat_map(|identity| certificates(&identity))
        .filter_map(Result::ok)
        .collect();
    if signers.is_empty() {
        return Err(element.refuse("a pointer to a list without a certificate of its signers"));
    }
    Ok(Some(Pointer {
        list_type,
        territory: territory(&information(&additional, TSL, "SchemeTerritory")?)?,
        location: text_of(element, "TSLLocation")?,
        signers,
        line: element.line(),
    }))
}

/// The one element of this name among the elements `OtherInformation`.
fn information<'a>(
    additional: &Element<'a>,
    namespace: &str,
    local: &str,
) -> Result<Element<'a>, Refusal> {
    let all = additional
        .children()
        .filter(|other| other.is(TSL, "OtherInformation"));
    let mut found = all
        .flat_map(|other| other.children())
        .filter(|child| child.is(namespace, local));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(additional.refuse(format_args!("a pointer without {local}"))),
        (Some(_), Some(second)) => Err(second.refuse(format_args!("a second {local}"))),
    }
}
