//! YAML within the limits of a bundle's document. Invariant: time and memory are bounded.

use super::fault::{DocumentFault, MAX_EVENTS, MAX_NESTING, MAX_NODES};
use serde::Deserialize;
use serde_saphyr::{
    Error,
    budget::BudgetBreach,
    granit_parser::{Event, Parser},
};

/// Reads YAML within the limits of a document.
pub(super) fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DocumentFault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: MAX_EVENTS,
            max_depth: MAX_NESTING,
        },
        with_snippet: false,
    };
    let parsed = serde_saphyr::from_str_with_options(text, options);
    parsed.map_err(|error| match error.without_snippet() {
        Error::Message { .. } => tagged(text).unwrap_or_else(|| fault_of(&error)),
        _ => fault_of(&error),
    })
}

/// The first tag. The parser takes two keys for different if their tags are; that they are one field, serde says in a message without a
/// place, or with that of what is around it.
fn tagged(text: &str) -> Option<DocumentFault> {
    let events = Parser::new_from_str(text).map_while(Result::ok);
    let mut tags = events.filter_map(|(event, span)| match event {
        Event::Scalar(.., Some(tag))
        | Event::SequenceStart(.., Some(tag))
        | Event::MappingStart(.., Some(tag)) => Some(DocumentFault::Tag {
            line: u64::try_from(span.start.line()).unwrap_or(u64::MAX),
            tag: tag.to_string(),
        }),
        _ => None,
    });
    tags.next()
}

/// What is wrong. The parser's own words stand behind ours only, and not for a limit, which they do not name.
fn fault_of(error: &Error) -> DocumentFault {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key, location } => {
            let line = location.line();
            match key.clone() {
                Some(key) => DocumentFault::KeyTwice { line, key },
                None => DocumentFault::OtherKeyTwice { line },
            }
        }
        Error::Budget { breach, location } => {
            let line = location.line();
            match breach {
                BudgetBreach::Depth { .. } => DocumentFault::TooDeep { line },
                BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => {
                    DocumentFault::TooManyValues { line }
                }
                _ => DocumentFault::TooMuch { line },
            }
        }
        other => DocumentFault::NoDocument(other.to_string()),
    }
}
