//! Qualifications of a service, as a list has them (TS 119 612, clause 5.5.9.2). The gateway judges certificates by them.

use super::{
    names::{EXTENSION, QUALIFICATIONS, XADES, short},
    value::{boolean, text},
};
use crate::{fault::Refusal, tree::Element};
use portvakt_trust::qualification::{Assert, Criteria, KeyUsageBit, MAX_DEPTH, Qualification};

/// Reads an element `Qualifications`.
///
/// # Errors
/// A part is missing or malformed.
pub(crate) fn read(element: &Element<'_>) -> Result<Vec<Qualification>, Refusal> {
    element.children().map(|one| read_one(&one)).collect()
}

fn read_one(element: &Element<'_>) -> Result<Qualification, Refusal> {
    let is_one = element.is(QUALIFICATIONS, "QualificationElement");
    if !is_one {
        return Err(element.refuse(format_args!("{} among qualifications", element.local())));
    }
    let qualifiers = element.required(QUALIFICATIONS, "Qualifiers")?;
    let qualifiers = qualifiers
        .children()
        .map(|one| match one.attribute(None, "uri") {
            Some(uri) => Ok(short(uri.trim(), EXTENSION).to_owned()),
            None => Err(one.refuse("a qualifier without uri")),
        });
    let criteria = element.required(QUALIFICATIONS, "CriteriaList")?;
    Ok(Qualification {
        qualifiers: qualifiers.collect::<Result<_, _>>()?,
        criteria: read_criteria(&criteria, 0)?,
    })
}

fn read_criteria(element: &Element<'_>, depth: usize) -> Result<Criteria, Refusal> {
    if depth >= MAX_DEPTH {
        return Err(element.refuse("criteria nested deeper than 8"));
    }
    let mut criteria = Criteria {
        assert: assert_of(element)?,
        key_usages: Vec::new(),
        policies: Vec::new(),
        others: Vec::new(),
        nested: Vec::new(),
    };
    for child in element.children() {
        match (child.namespace(), child.local()) {
            (QUALIFICATIONS, "KeyUsage") => criteria.key_usages.push(key_usage(&child)?),
            (QUALIFICATIONS, "PolicySet") => criteria.policies.push(policies(&child)?),
            (QUALIFICATIONS, "CriteriaList") => {
                criteria.nested.push(read_criteria(&child, depth + 1)?);
            }
            (QUALIFICATIONS, "Description") => {}
            (QUALIFICATIONS, "otherCriteriaList") => {
                let names = child.children().map(|other| other.local().to_owned());
                criteria.others.extend(names);
            }
            (_, other) => return Err(child.refuse(format_args!("{other} among criteria"))),
        }
    }
    Ok(criteria)
}

fn assert_of(element: &Element<'_>) -> Result<Assert, Refusal> {
    match element.attribute(None, "assert") {
        Some("all") => Ok(Assert::All),
        Some("atLeastOne") => Ok(Assert::AtLeastOne),
        Some("none") => Ok(Assert::None),
        _ => Err(element.refuse("criteria that assert neither all, atLeastOne nor none")),
    }
}

fn key_usage(element: &Element<'_>) -> Result<Vec<KeyUsageBit>, Refusal> {
    let bits = element.children().map(|bit| {
        let name = bit.attribute(None, "name");
        Ok(KeyUsageBit {
            name: name
                .ok_or_else(|| bit.refuse("a bit of a key usage without name"))?
                .to_owned(),
            set: boolean(&bit, &text(&bit)?)?,
        })
    });
    bits.collect()
}

/// The object identifiers of a set of policies.
fn policies(element: &Element<'_>) -> Result<Vec<String>, Refusal> {
    let policies = element.children().map(|policy| {
        let identifier = policy.required(XADES, "Identifier")?;
        let text = text(&identifier)?;
        Ok(short(&text, "urn:oid:").to_owned())
    });
    policies.collect()
}
