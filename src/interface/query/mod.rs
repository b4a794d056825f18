//! Queries (QRY-1 to QRY-4): the parameters that an operation declares, read once out of the query as it was received.
//!
//! Like a path, a query is read and never rewritten: a query that two servers could interpret differently is refused, so that the core
//! cannot read another date than the judged one. All faults are reported at once, in the order of the rules. A fault repeats no value, and
//! repeats a name that is not in the catalogue only if it consists of letters.
//!
//! Deliberately not here: rules that depend on the day or the PSU's consents (QUO-8, SCA-8); they read [`Query::date_from`].

mod name;
mod value;

use super::{
    Fault, Reason,
    operations::{Operation, Parameter, ParameterKind},
    similar,
};
use jiff::civil::Date;
use name::QueryName;
use std::borrow::Cow;

pub use name::is_word as is_parameter_name;
pub use value::BOOKING_STATUSES;

/// Names that the interface does not have, but a core may: they read data without the PSU (QRY-3). The list is not configurable, because
/// the rule defines it.
const DENIED_WITHOUT_PSU: [&str; 1] = ["withBalance"];

/// A valid query, parsed by an operation's parameters.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pieces: Vec<Piece<'a>>,
    from: Option<Date>,
    to: Option<Date>,
    offset: Option<i32>,
    limit: Option<i32>,
}

/// One piece between two `&`.
#[derive(Debug)]
struct Piece<'a> {
    raw: &'a str,
    name: QueryName<'a>,
    /// The decoded value; `None` if it cannot be decoded.
    value: Option<Cow<'a, str>>,
    /// The parameter with this name and its index among the operation's.
    parameter: Option<usize>,
}

impl<'a> Query<'a> {
    /// Parses a query, the text after the `?`, if there is one.
    ///
    /// # Errors
    /// All faults, in the order of the rules.
    pub fn read(
        raw: Option<&'a str>,
        operation: &Operation,
        psu_present: bool,
    ) -> Result<Self, Vec<Fault>> {
        let mut query = Self {
            pieces: pieces(raw.unwrap_or_default(), &operation.query),
            ..Self::default()
        };
        let mut faults = Vec::new();
        query.values(&operation.query, &mut faults);
        query.period(&operation.query, &mut faults);
        query.names(&operation.query, psu_present, &mut faults);
        query.missing(&operation.query, &mut faults);
        if faults.is_empty() {
            Ok(query)
        } else {
            Err(faults)
        }
    }

    /// The first day of the period that is asked for (QUO-8, SCA-8).
    pub const fn date_from(&self) -> Option<Date> {
        self.from
    }

    /// The last day of it.
    pub const fn date_to(&self) -> Option<Date> {
        self.to
    }

    /// How many entries of a list are skipped.
    pub const fn offset(&self) -> Option<i32> {
        self.offset
    }

    /// How many entries of a list are asked for.
    pub const fn limit(&self) -> Option<i32> {
        self.limit
    }

    /// The query without its offset and limit, the same for every page of a list in whatever order its parameters stand
    /// (QUO-13). Names and values are as received, so that another spelling counts as another list; but a `booked` that is the default
    /// anyway is left out, because links to later pages may name it where the first page did not.
    pub fn without_page(&self, operation: &Operation) -> String {
        let is_of_page = |piece: &&Piece<'_>| {
            let parameter = piece.parameter.and_then(|at| operation.query.get(at));
            parameter.is_some_and(|parameter| match parameter.kind {
                ParameterKind::Offset | ParameterKind::Limit => true,
                ParameterKind::BookingStatus => piece.value.as_deref() == Some("booked"),
                _ => false,
            })
        };
        let rest = self.pieces.iter().filter(|piece| !is_of_page(piece));
        let mut rest: Vec<_> = rest.map(|piece| piece.raw).collect();
        rest.sort_unstable();
        rest.join("&")
    }

    /// QRY-1.
    fn values(&mut self, parameters: &[Parameter], faults: &mut Vec<Fault>) {
        for (at, parameter) in parameters.iter().enumerate() {
            for piece in self
                .pieces
                .iter()
                .filter(|piece| piece.parameter == Some(at))
            {
                match value::read(parameter.kind, piece.value.as_deref()) {
                    Ok(value::QueryValue::From(date)) => self.from = Some(date),
                    Ok(value::QueryValue::To(date)) => self.to = Some(date),
                    Ok(value::QueryValue::Offset(offset)) => self.offset = Some(offset),
                    Ok(value::QueryValue::Limit(limit)) => self.limit = Some(limit),
                    Ok(value::QueryValue::Other) => {}
                    Err(text) => {
                        let text = piece.undecodable().map_or(text, Cow::Owned);
                        faults.push(malformed(&parameter.name, text));
                    }
                }
            }
        }
    }

    /// QRY-2.
    fn period(&self, parameters: &[Parameter], faults: &mut Vec<Fault>) {
        let inverted = matches!((self.from, self.to), (Some(from), Some(to)) if from > to);
        let named = |kind| parameters.iter().find(|parameter| parameter.kind == kind);
        let pair = (named(ParameterKind::DateFrom), named(ParameterKind::DateTo));
        if let ((Some(from), Some(to)), true) = (pair, inverted) {
            let text = format!("it is after {}", to.name);
            faults.push(Fault::query(Reason::PeriodInverted, &from.name, text));
        }
    }

    /// QRY-3.
    fn names(&self, parameters: &[Parameter], psu_present: bool, faults: &mut Vec<Fault>) {
        for (index, piece) in self.pieces.iter().enumerate() {
            let shown = || piece.shown(index);
            if !piece.name.is_readable() {
                let text = format!("its name cannot be read: {}", piece.name.fault());
                faults.push(malformed(&shown(), text));
                continue;
            }
            let may_hide = name::may_hide(piece.raw);
            if may_hide && piece.raw.contains(';') {
                let text = "it holds a semicolon, at which some servers split: percent-encode it";
                faults.push(malformed(&shown(), text));
            }
            let resembles = |parameter: &Parameter| {
                piece.parameter.is_none() && piece.name.looks_like(&parameter.name)
            };
            let near = |parameter: &&Parameter| {
                resembles(parameter) || may_hide && piece.hides(&parameter.name)
            };
            if let Some(parameter) = parameters.iter().find(near) {
                let text = near_fault(&parameter.name, resembles(parameter));
                faults.push(malformed(&shown(), text));
            }
            let denied =
                |name: &&&str| piece.name.looks_like(name) || may_hide && piece.hides(name);
            if !psu_present && let Some(denied) = DENIED_WITHOUT_PSU.iter().find(denied) {
                let text = "it is not taken without PSU-IP-Address: leave it out";
                faults.push(malformed(denied, text));
            }
        }
        for index in self.repeated() {
            let shown = self.pieces.get(index).map(|piece| piece.shown(index));
            faults.extend(shown.map(|shown| malformed(&shown, "it may stand once")));
        }
    }

    /// The indexes of the names that occurred before, each name once.
    fn repeated(&self) -> Vec<usize> {
        if self.pieces.len() < 2 {
            return Vec::new();
        }
        let named = self.pieces.iter().enumerate();
        let mut named: Vec<_> = named
            .map(|(index, piece)| (piece.name.as_str(), index))
            .collect();
        named.sort_unstable();
        let mut repeated: Vec<usize> = named
            .chunk_by(|one, other| one.0 == other.0)
            .filter_map(|same| same.get(1))
            .map(|(_, index)| *index)
            .collect();
        repeated.sort_unstable();
        repeated
    }

    /// QRY-4.
    fn missing(&self, parameters: &[Parameter], faults: &mut Vec<Fault>) {
        for (at, parameter) in parameters.iter().enumerate() {
            let is_present = || self.pieces.iter().any(|piece| piece.parameter == Some(at));
            if parameter.required && !is_present() {
                let unknown = self.pieces.iter().filter(|piece| piece.parameter.is_none());
                let meant =
                    similar::find(unknown.map(|piece| piece.name.as_str()), &parameter.name);
                let text = match meant {
                    Some(found) => {
                        format!("missing; the query has {found}: write {}", parameter.name)
                    }
                    None => "missing".to_owned(),
                };
                faults.push(Fault::query(Reason::QueryMissing, &parameter.name, text));
            }
        }
    }
}

impl Piece<'_> {
    /// Whether a server that splits the piece differently finds `known` in it, or finds it again if it is the name of the piece.
    fn hides(&self, known: &str) -> bool {
        name::hides(self.raw, known, usize::from(self.name.is(known)))
    }

    /// The reason why the value cannot be decoded; `None` if it can.
    fn undecodable(&self) -> Option<String> {
        let (_, raw) = self.raw.split_once('=').unwrap_or_default();
        self.value.is_none().then(|| name::undecodable(raw))
    }

    /// The name as a fault shows it. A name that the catalogue does not have could be personal, and is not shown.
    fn shown(&self, index: usize) -> String {
        let name = self.name.as_str();
        if self.parameter.is_some() || name::is_harmless(name) {
            name.to_owned()
        } else {
            format!("parameter {}", index.saturating_add(1))
        }
    }
}

/// The parts between `&`; an empty one is ignored. A `;` is not a separator here, and is refused.
fn pieces<'a>(raw: &'a str, parameters: &[Parameter]) -> Vec<Piece<'a>> {
    let pieces = raw.split('&').filter(|piece| !piece.is_empty());
    let read = pieces.map(|raw| {
        let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
        let name = QueryName::decode(name);
        let parameter = parameters
            .iter()
            .position(|parameter| name.is(&parameter.name));
        Piece {
            raw,
            name,
            value: name::decode(value),
            parameter,
        }
    });
    read.collect()
}

/// The fault of a piece that some servers read as a parameter: by its name, or by something in it.
fn near_fault(name: &str, resembles: bool) -> String {
    if resembles {
        return format!("some servers read this name as {name}: write it as {name}");
    }
    format!(
        "some servers find the parameter {name} in it, because they decode it once more or part it at ; & or ?: {name} stands once, by itself"
    )
}

fn malformed(name: &str, text: impl Into<String>) -> Fault {
    Fault::query(Reason::QueryMalformed, name, text)
}

#[cfg(test)]
mod tests;
