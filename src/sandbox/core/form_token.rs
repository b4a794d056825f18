//! One-time tokens of forms, and what the bank remembers for each.
//!
//! Invariants: a form is accepted once, and only with a token that this process put into it; what a form is about (the person
//! who identified themselves, the context that they chose) is kept here and not in the page. Kept in memory: after a restart a
//! person begins again. Each link has a share of the forms, and so has each person: whoever opens one link again and again, or one
//! number at many links, makes the bank forget forms of that link or number, and nobody else's.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The lifetime of a form, in seconds: that of an SCA.
const LIFETIME: u64 = 15 * 60;

/// The most forms that are kept. Beyond it, the owner with the most of them loses the oldest.
const MOST: usize = 10_000;

/// The most forms of one link: a person who goes back and forth in several tabs needs a few.
const OF_A_LINK: usize = 20;

/// The forms that are open.
#[derive(Debug)]
pub(super) struct FormTokens<T> {
    open: Mutex<HashMap<String, Open<T>>>,
    /// The most that are kept.
    most: usize,
}

#[derive(Debug)]
struct Open<T> {
    expires: u64,
    /// Orders forms of the same second.
    number: usize,
    owner: Owner,
    about: T,
}

/// Whose a form is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// The link by which the page was opened.
    pub(super) link: String,
    /// The person, once one has identified themselves.
    pub(super) person: Option<String>,
}

impl<T> Default for FormTokens<T> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            most: MOST,
        }
    }
}

impl<T> FormTokens<T> {
    /// Makes the token of a new form. `now` is in seconds.
    pub(super) fn issue(&self, owner: Owner, about: T, now: u64) -> String {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, form| form.expires > now);
        let of_link = |form: &Open<T>| form.owner.link == owner.link;
        if open.values().filter(|form| of_link(form)).count() >= OF_A_LINK {
            forget_oldest(&mut open, of_link);
        }
        if open.len() >= self.most {
            let mut counts = HashMap::<_, usize>::new();
            for form in open.values() {
                let count = counts.entry(form.owner.person.clone()).or_default();
                *count = count.saturating_add(1);
            }
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            let person = most.and_then(|(person, _)| person);
            forget_oldest(&mut open, |form| form.owner.person == person);
        }
        let token = Uuid::new_v4().simple().to_string();
        let last = open.values().map(|form| form.number).max();
        let form = Open {
            expires: now.saturating_add(LIFETIME),
            number: last.map_or(0, |last| last.saturating_add(1)),
            owner,
            about,
        };
        open.insert(token.clone(), form);
        token
    }

    /// Takes the token of a submitted form; `None` if it is unknown, used or too old.
    pub(super) fn take(&self, token: &str, now: u64) -> Option<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let form = open.remove(token)?;
        (form.expires > now).then_some(form.about)
    }
}

fn forget_oldest<T>(open: &mut HashMap<String, Open<T>>, of: impl Fn(&Open<T>) -> bool) {
    let oldest = open.iter().filter(|(_, form)| of(form));
    let oldest = oldest.min_by_key(|(_, form)| (form.expires, form.number));
    let oldest = oldest.map(|(token, _)| token.clone());
    oldest.map(|token| open.remove(&token));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(link: &str, person: Option<&str>) -> Owner {
        Owner {
            link: link.to_owned(),
            person: person.map(str::to_owned),
        }
    }

    #[test]
    fn a_token_is_taken_once_and_in_time() {
        let tokens = FormTokens::default();
        let token = tokens.issue(Owner::default(), 7, 100);
        assert_eq!(tokens.take("", 100), None);
        assert_eq!(tokens.take(&token, 100), Some(7));
        assert_eq!(tokens.take(&token, 100), None);
        let late = tokens.issue(Owner::default(), 8, 100);
        assert_eq!(tokens.take(&late, 100 + LIFETIME), None);
    }

    #[test]
    fn one_link_forgets_its_own_oldest_form() {
        let tokens = FormTokens::default();
        let other = tokens.issue(of("b", None), 0, 1);
        let first = tokens.issue(of("a", None), 1, 1);
        let second = tokens.issue(of("a", None), 2, 1);
        for number in 2..OF_A_LINK + 1 {
            tokens.issue(of("a", Some("p")), number, 1);
        }
        assert_eq!(tokens.take(&first, 1), None);
        assert_eq!(tokens.take(&second, 1), Some(2));
        for number in 0..3 * OF_A_LINK {
            tokens.issue(of("a", None), number, 1);
        }
        assert_eq!(tokens.take(&other, 1), Some(0));
    }

    /// One number at many links, and pages that many links opened, cost others nothing.
    #[test]
    fn many_links_forget_their_own() {
        for noisy in [None, Some("noisy")] {
            let tokens = FormTokens {
                most: 500,
                ..FormTokens::default()
            };
            let quiet = tokens.issue(of("quiet", Some("quiet")), 7, 1);
            let first = tokens.issue(of("first", noisy), 8, 1);
            for number in 0..tokens.most {
                tokens.issue(of(&(number / OF_A_LINK).to_string(), noisy), number, 1);
            }
            assert_eq!(tokens.take(&quiet, 1), Some(7));
            assert_eq!(tokens.take(&first, 1), None);
        }
    }
}
