//! The query (QRY-1 to QRY-4): the parameters that the operation declares.

use super::envelope::Envelope;
use crate::interface::{
    Refusal,
    operations::{Operation, ParameterKind},
    path::Target,
    query::Query,
};
use jiff::civil::Date;

/// Every server reads the query in the same way, and its parameters have their form. It keeps the values that later
/// stages use.
#[must_use]
#[derive(Debug)]
pub struct ValidQuery {
    from: Option<Date>,
    offset: Option<i32>,
    limit: Option<i32>,
    list: Option<Box<str>>,
}

impl ValidQuery {
    /// The first day that is asked for (QUO-8, SCA-8).
    pub const fn date_from(&self) -> Option<Date> {
        self.from
    }

    /// How many entries of a list are skipped.
    pub const fn offset(&self) -> Option<i32> {
        self.offset
    }

    /// How many entries of a list are asked for.
    pub const fn limit(&self) -> Option<i32> {
        self.limit
    }

    /// The part of the query that every page of a list has in common (QUO-13). None where the operation has no pages.
    pub fn list(&self) -> Option<&str> {
        self.list.as_deref()
    }
}

pub(super) fn judge(
    target: Target<'_>,
    envelope: &Envelope,
    operation: &Operation,
) -> Result<ValidQuery, Refusal> {
    match Query::read(target.query(), operation, envelope.is_psu_present()) {
        Ok(query) => Ok(ValidQuery {
            from: query.date_from(),
            offset: query.offset(),
            limit: query.limit(),
            list: has_pages(operation).then(|| query.without_page(operation).into()),
        }),
        // There is always a fault; should that ever change, nothing passes by it.
        Err(faults) => Err(Refusal::of(faults)
            .unwrap_or_else(|| Refusal::new(crate::interface::Reason::QueryMalformed))),
    }
}

fn has_pages(operation: &Operation) -> bool {
    let mut kinds = operation.query.iter().map(|parameter| parameter.kind);
    kinds.any(|kind| kind == ParameterKind::Offset)
}
