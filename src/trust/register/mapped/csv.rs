//! The rows of a CSV file.

use super::{
    fault::MappedFault,
    member::{Member, Origin, Texts},
};
use ::csv::{ReaderBuilder, StringRecord};
use std::io::Read;

/// The longest field, in bytes. A quote that does not end swallows the rows behind it: they must not be lost in silence.
const LONGEST_FIELD: usize = 1 << 14;

/// Reads each row, in order.
pub(super) fn each(
    reader: impl Read,
    separator: u8,
    origins: &[(Member, Origin)],
    take: &mut impl FnMut(&Texts),
) -> Result<(), MappedFault> {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .from_reader(reader);
    let columns = {
        let header = reader.headers().map_err(|error| row(&error))?;
        let found = origins.iter().map(|(_, origin)| column(header, origin));
        found.collect::<Result<Vec<_>, _>>()?
    };
    let mut record = StringRecord::new();
    while reader
        .read_record(&mut record)
        .map_err(|error| row(&error))?
    {
        if let Some(field) = record.iter().find(|field| field.len() > LONGEST_FIELD) {
            let line = record.position().map_or(0, ::csv::Position::line);
            let length = field.len();
            return Err(MappedFault::Row(format!(
                "line {line}: a field has {length} bytes, at most {LONGEST_FIELD} are read: does a quote end?"
            )));
        }
        let texts = columns.iter().map(|column| match column {
            Column::Of(index) => record.get(*index).into_iter().map(str::to_owned).collect(),
            Column::Constant(text) => vec![text.clone()],
        });
        take(&texts.collect());
    }
    Ok(())
}

/// A mapped member in each row.
enum Column {
    /// The field with this index.
    Of(usize),
    Constant(String),
}

fn column(header: &StringRecord, origin: &Origin) -> Result<Column, MappedFault> {
    let wanted = match origin {
        Origin::Constant(text) => return Ok(Column::Constant(text.clone())),
        Origin::Column(wanted) => wanted,
    };
    let mut found = header
        .iter()
        .enumerate()
        .filter(|(_, name)| name.trim() == wanted);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(Column::Of(index)),
        (Some(_), Some(_)) => Err(MappedFault::TwoColumns(wanted.clone())),
        (None, _) => Err(MappedFault::NoColumn {
            missing: wanted.clone(),
            there: header.iter().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// The fault of a row, in the operator's words.
fn row(error: &::csv::Error) -> MappedFault {
    let line = error.position().map_or(0, ::csv::Position::line);
    MappedFault::Row(match error.kind() {
        ::csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!(
            "line {line}: it has {len} fields, and the first line has {expected_len}: compare separator"
        ),
        ::csv::ErrorKind::Utf8 { .. } => {
            format!("line {line}: it is not UTF-8: save the file as UTF-8")
        }
        _ => format!("it cannot be read as CSV: {error}"),
    })
}
