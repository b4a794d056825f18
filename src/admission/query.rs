//! The query (QRY-1 to QRY-4): the parameters that the operation declares.

use super::envelope::Envelope;
use crate::interface::{
    Refusal,
    operations::{Operation, ParameterKind},
    path::Target,
    query::Query,
};
use jiff::civil::Date;

/// The proof that every server interprets the query in the same way, and that its parameters are well-formed. Keeps the values that later
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
    /// The first requested day (QUO-8, SCA-8).
    pub const fn date_from(&self) -> Option<Date> {
        self.from
    }

    /// The number of entries of a list to skip.
    pub const fn offset(&self) -> Option<i32> {
        self.offset
    }

    /// The maximum number of entries of a list to return.
    pub const fn limit(&self) -> Option<i32> {
        self.limit
    }

    /// The part of the query that is the same for every page of a list (QUO-13). `None` if the operation has no pages.
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
        // There is always at least one fault. If that changes, the request is refused.
        Err(faults) => Err(Refusal::of(faults)
            .unwrap_or_else(|| Refusal::new(crate::interface::Reason::QueryMalformed))),
    }
}

fn has_pages(operation: &Operation) -> bool {
    let mut kinds = operation.query.iter().map(|parameter| parameter.kind);
    kinds.any(|kind| kind == ParameterKind::Offset)
}
