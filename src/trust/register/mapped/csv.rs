//! The rows of a CSV file: each is one line.

use super::{
    fault::MappedFault,
    member::{Member, Origin, Texts},
};
use portvakt_base::csv_row;
use std::io::{BufRead, Read as _};

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// Reads each row, in order.
pub(super) fn each(
    mut reader: impl BufRead,
    separator: u8,
    origins: &[(Member, Origin)],
    take: &mut impl FnMut(&Texts),
) -> Result<(), MappedFault> {
    let mut columns = None;
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(LONGEST_LINE);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number = number.saturating_add(1);
        let refuse = |what: String| MappedFault::Row(format!("line {number}: {what}"));
        if bounded.limit() == 0 && !line.ends_with(b"\n") {
            return Err(refuse(format!("it is longer than {LONGEST_LINE} bytes")));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fields = csv_row::fields(&line, separator).map_err(refuse)?;
        let Some((count, columns)) = &columns else {
            let found = origins.iter().map(|(_, origin)| column(&fields, origin));
            columns = Some((fields.len(), found.collect::<Result<Vec<_>, _>>()?));
            continue;
        };
        if fields.len() != *count {
            let found = fields.len();
            return Err(refuse(format!(
                "it has {found} fields, and the first line has {count}: compare separator"
            )));
        }
        let texts = columns.iter().map(|column| match column {
            Column::Of(index) => fields.get(*index).cloned().into_iter().collect(),
            Column::Constant(text) => vec![text.clone()],
        });
        take(&texts.collect());
    }
}

/// A mapped member in each row.
enum Column {
    /// The field with this index.
    Of(usize),
    Constant(String),
}

fn column(header: &[String], origin: &Origin) -> Result<Column, MappedFault> {
    let wanted = match origin {
        Origin::Constant(text) => return Ok(Column::Constant(text.clone())),
        Origin::Column(wanted) => wanted,
    };
    let mut found = header
        .iter()
        .enumerate()
        .filter(|(_, name)| *name == wanted);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(Column::Of(index)),
        (Some(_), Some(_)) => Err(MappedFault::TwoColumns(wanted.clone())),
        (None, _) => Err(MappedFault::NoColumn {
            missing: wanted.clone(),
            there: header.join(", "),
        }),
    }
}
