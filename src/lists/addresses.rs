//! The addresses from which the operator fetches lists and pivots.
//!
//! Nothing is verified here: an address proves nothing, and each file that is fetched is verified by the import. But text of a list
//! becomes the input of another program, so that only plain addresses pass. Deliberately not here: fetching.

use crate::{
    fault::Refusal,
    import::{ListFile, file_of},
    list::{Claim, ListType, claimed_pointers},
};
use std::collections::{BTreeMap, BTreeSet};

/// An address, and the name of the file to save.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The name of the file: `ES.xml`, or the name that a pivot has.
    pub file: String,
    /// An address of http or https.
    pub url: String,
}

/// The addresses that a list of lists has: its pivots, and the national lists in XML.
///
/// # Errors
/// It is no list of lists, or has an address that is not plain.
pub fn addresses(file: &ListFile) -> Result<Vec<Address>, Refusal> {
    let claim = Claim::read(&file.document)?;
    if claim.list_type() != ListType::ListOfLists {
        return Err(Refusal::new("a national list; expected the list of lists"));
    }
    let mut found = Vec::new();
    let own = file.name();
    let mut names = BTreeSet::new();
    for url in claim
        .information()
        .iter()
        .filter(|url| url.ends_with(".xml"))
    {
        let name = file_of(url).filter(|name| *name != own && names.insert(*name));
        if let Some(name) = name {
            found.push(address(name.to_owned(), url)?);
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pointer in claimed_pointers(&file.document)? {
        if pointer.list_type != ListType::National {
            continue;
        }
        // A second address of a country has the same list: the first is enough.
        let count = counts.entry(pointer.territory.clone()).or_default();
        *count += 1;
        if *count == 1 {
            let name = format!("{}.xml", pointer.territory);
            let address = address(name, &pointer.location);
            found.push(address.map_err(|fault| Refusal::at(pointer.line, fault.what()))?);
        }
    }
    Ok(found)
}

/// An address of http or https, without characters that quote or divide words in a shell or in curl's configuration.
fn address(file: String, url: &str) -> Result<Address, Refusal> {
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    match is_http && url.bytes().all(is_plain) {
        true => Ok(Address {
            file,
            url: url.to_owned(),
        }),
        false => Err(Refusal::new(format_args!(
            "an address that is not plain http or https: {url}"
        ))),
    }
}

#[cfg(test)]
mod tests;
