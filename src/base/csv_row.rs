//! A row of a CSV file: its fields.
//!
//! Invariant: a row is one line, so that a quote that does not end takes no other row with it.

/// The fields of a line, without white space around them.
///
/// # Errors
/// The line is no row: text follows a closing quote, a quoted field does not end, or it is not UTF-8.
pub fn fields(line: &[u8], separator: u8) -> Result<Vec<String>, String> {
    quotes(line, separator)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator)
        .trim(csv::Trim::All)
        .buffer_capacity(line.len().clamp(1, 1 << 16))
        .from_reader(line);
    let mut records = reader.records();
    match (records.next(), records.next()) {
        (Some(Ok(record)), None) => Ok(record.iter().map(str::to_owned).collect()),
        _ => Err("it is not one row of CSV in UTF-8".to_owned()),
    }
}

/// A quoted field ends before the separator. The CSV reader would take `"a-1"x` as `a-1x`, and a quote that does not end as the rest of the
/// line.
fn quotes(line: &[u8], separator: u8) -> Result<(), String> {
    let mut place = FieldState::Begin;
    for byte in line.trim_ascii_end() {
        place = match (place, byte) {
            (FieldState::Quoted, b'"') => FieldState::Closed,
            (FieldState::Quoted, _) | (FieldState::Closed | FieldState::Begin, b'"') => {
                FieldState::Quoted
            }
            (_, byte) if *byte == separator => FieldState::Begin,
            (FieldState::Closed, b' ' | b'\t') => FieldState::Closed,
            (FieldState::Closed, _) => {
                return Err("text follows the closing quote of a field".to_owned());
            }
            (FieldState::Begin | FieldState::Plain, _) => FieldState::Plain,
        };
    }
    match place {
        FieldState::Quoted => Err("a quoted field does not end in its line".to_owned()),
        _ => Ok(()),
    }
}

/// The place of a byte in a field.
#[derive(Clone, Copy)]
enum FieldState {
    Begin,
    Plain,
    Quoted,
    /// After a quote in a quoted field: the end of the field, or the first of two quotes that stand for one.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_end_before_the_separator() {
        let good = ["\"a\";b\r\n", "\"a;\"\"x\" ;b", "a \"x\" y;\"\"", "", ";"];
        for line in good {
            assert_eq!(quotes(line.as_bytes(), b';'), Ok(()), "{line}");
        }
        let table = [
            ("\"a-1\"x;b\n", "text follows the closing quote of a field"),
            ("a;\"b\" x\n", "text follows the closing quote of a field"),
            ("a;\"b\n", "a quoted field does not end in its line"),
            ("a;\"b\"\"\n", "a quoted field does not end in its line"),
        ];
        for (line, expected) in table {
            let fault = fields(line.as_bytes(), b';').unwrap_err();
            assert_eq!(fault, expected, "{line}");
        }
    }
}
