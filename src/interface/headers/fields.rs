//! An index of the headers of one request: one pass finds the headers of the table, so that later lookups need no search.

use super::{
    table::{COUNT, Header, TABLE, find, position},
    white_space::trim,
};
use http::{HeaderMap, HeaderValue};

/// The headers of a request, indexed by the table; [`Fields::map`] has the other headers.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    map: &'a HeaderMap,
    /// The first value of each header of the table.
    first: [Option<&'a HeaderValue>; COUNT],
    /// A bit for each header of the table that stands more than once.
    repeated: u64,
}

const _: () = assert!(COUNT <= 64, "a bit for each header of the table");

impl<'a> Fields<'a> {
    /// Finds the headers of the table in a request.
    pub fn of(map: &'a HeaderMap) -> Self {
        let mut first = [None; COUNT];
        let mut repeated = 0;
        for (name, value) in map {
            let Some(position) = position(name.as_str()) else {
                continue;
            };
            match first.get_mut(position) {
                Some(Some(_)) => repeated |= 1 << position,
                Some(place) => *place = Some(value),
                None => {}
            }
        }
        Self {
            map,
            first,
            repeated,
        }
    }

    /// All headers, by name.
    pub const fn map(&self) -> &'a HeaderMap {
        self.map
    }

    /// The headers of the table that the request has, in the table's order.
    pub fn present(&self) -> impl Iterator<Item = &'static Header> {
        let both = TABLE.iter().zip(&self.first);
        both.filter(|(_, value)| value.is_some())
            .map(|(header, _)| *header)
    }

    /// The headers that may stand once and stand more than once (HDR-15).
    pub fn duplicated(&self) -> impl Iterator<Item = &'static Header> {
        let once = TABLE.iter().copied().filter(|header| header.once);
        once.filter(|header| self.repeated & 1 << header.position != 0)
    }

    fn first(&self, header: &Header) -> Option<&'a HeaderValue> {
        self.first.get(header.position).copied().flatten()
    }

    /// Every value of a header, in the order of the request.
    pub fn all(&self, header: &Header) -> impl Iterator<Item = &'a HeaderValue> {
        let repeated = self.repeated & 1 << header.position != 0;
        let rest = repeated.then(|| self.map.get_all(&header.name).into_iter().skip(1));
        self.first(header)
            .into_iter()
            .chain(rest.into_iter().flatten())
    }

    /// Every value of the header with this name, of the table or not, in any letter case.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &'a HeaderValue> {
        let header = find(name);
        let other = header.is_none().then(|| self.map.get_all(name));
        let values = header.map(|header| self.all(header));
        let other = other.into_iter().flatten();
        values.into_iter().flatten().chain(other)
    }
}

impl Header {
    /// Its first value in a request.
    pub fn get<'a>(&self, fields: &Fields<'a>) -> Option<&'a HeaderValue> {
        fields.first(self)
    }

    /// The first value that is not blank: an empty value counts as missing (HDR-5).
    pub fn get_filled<'a>(&self, fields: &Fields<'a>) -> Option<&'a HeaderValue> {
        self.get(fields)
            .filter(|value| !trim(value.as_bytes()).is_empty())
    }

    /// The values whose form is judged, without the white space around them: all of them, or only the first of a header that
    /// may stand once (HDR-15 refuses a second one).
    pub fn values<'a>(&self, fields: &Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
        let most = if self.once { 1 } else { usize::MAX };
        let values = fields.all(self).take(most);
        values.map(|value| trim(value.as_bytes()))
    }

    /// How often the header stands in a request.
    pub fn count(&self, fields: &Fields<'_>) -> usize {
        fields.all(self).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::*;
    use http::HeaderName;

    #[test]
    fn they_are_where_the_table_has_them() {
        let pairs = [
            ("accept", "a"),
            ("psu-id", " "),
            ("x-other", "o"),
            ("accept", "b"),
            ("psu-ip-port", "1"),
            ("accept", "c"),
        ];
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let fields = Fields::of(&map);
        let present: Vec<_> = fields.present().map(|header| header.written).collect();
        assert_eq!(present, ["Accept", "PSU-ID", "PSU-IP-Port"]);
        let all: Vec<_> = fields.all(&ACCEPT).collect();
        assert_eq!(all, ["a", "b", "c"]);
        assert_eq!(fields.all(&PSU_IP_PORT).count(), 1);
        assert_eq!(fields.all(&DATE).count(), 0);
        assert!(PSU_ID.get(&fields).is_some() && PSU_ID.get_filled(&fields).is_none());
        assert!(DATE.get(&fields).is_none());
        assert_eq!(fields.duplicated().count(), 0, "Accept may stand twice");
        let named = |name| fields.named(name).count();
        assert_eq!(
            [named("x-OTHER"), named("Accept"), named("x-none")],
            [1, 3, 0]
        );
        for header in TABLE {
            assert_eq!(TABLE[header.position].name, header.name);
            assert_eq!(
                find(header.written).map(|found| &found.name),
                Some(&header.name)
            );
        }
    }
}
