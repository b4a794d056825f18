//! The pages of a list that are counted with one call (QUO-13).

use crate::{Page, rows::ListRow};
use portvakt_base::clock::Timestamp;

/// The time for which later pages are counted with the call that they continue, in seconds (QUO-13).
pub(super) const PAGES: u64 = 15 * 60;

/// The maximum time by which a list may be ahead of the clock, in seconds: four calls of one second are one to three seconds ahead. A
/// larger difference means that the clock stepped back.
const CLOSE: u64 = 60;

impl ListRow {
    /// Whether a page continues this list, and needs no call of its own.
    pub(super) fn continues_with(&self, page: Page, now: Timestamp) -> bool {
        let age = now.unix().saturating_sub(self.call.unix());
        i64::from(page.offset) > self.last && age < PAGES
    }

    /// The list that a call begins, in place of the earlier list. Calls of the same second get different times, so that the return of a
    /// call removes only its own list.
    pub(super) fn begun_by(page: Page, now: Timestamp, before: Option<&Self>) -> Self {
        let next = before.map_or(0, |list| list.call.unix().saturating_add(1));
        let is_close = next <= now.unix().saturating_add(CLOSE);
        Self {
            call: Timestamp::from_unix(now.unix().max(if is_close { next } else { 0 })),
            last: page.last(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hash;

    const NOW: u64 = 1_790_000_000;

    fn page(offset: u32, limit: u32) -> Page {
        Page {
            list: Hash::from_bytes([0; 16]),
            offset,
            limit,
        }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn a_page_continues_behind_the_last_entry_for_15_minutes() {
        let list = ListRow::begun_by(page(0, 100), at(NOW), None);
        assert_eq!((list.call, list.last), (at(NOW), 99));
        for (offset, later, continues) in [
            (99, 0, false),
            (100, 0, true),
            (u32::MAX, 0, true),
            (100, PAGES - 1, true),
            (100, PAGES, false),
        ] {
            let page = page(offset, u32::MAX);
            assert_eq!(list.continues_with(page, at(NOW + later)), continues);
        }
    }

    #[test]
    fn lists_of_one_second_have_different_times() {
        let begin = |call| {
            let before = ListRow {
                call: at(call),
                last: 0,
            };
            ListRow::begun_by(page(0, 1), at(NOW), Some(&before))
                .call
                .unix()
        };
        assert_eq!(begin(NOW - 1), NOW);
        assert_eq!(begin(NOW), NOW + 1);
        assert_eq!(begin(NOW + 59), NOW + 60);
        assert_eq!(begin(NOW + 60), NOW, "the clock stepped back");
        assert_eq!(begin(u64::MAX), NOW);
    }
}
