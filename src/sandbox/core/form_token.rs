//! One-time tokens of forms, and what the bank remembers for each.
//!
//! Invariants: a form is accepted once, and only with a token that this process put into it; what a form is about (the person
//! who identified themselves, the context that they chose) is kept here and not in the page. Kept in memory: after a restart a
//! person begins again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The lifetime of a form, in seconds: that of an SCA.
const LIFETIME: u64 = 15 * 60;

/// The most forms that are kept. Beyond it, the oldest is forgotten.
const MOST: usize = 10_000;

/// The forms that are open.
#[derive(Debug)]
pub(super) struct FormTokens<T> {
    open: Mutex<HashMap<String, Open<T>>>,
}

#[derive(Debug)]
struct Open<T> {
    expires: u64,
    about: T,
}

impl<T> Default for FormTokens<T> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
        }
    }
}

impl<T> FormTokens<T> {
    /// Makes the token of a new form. `now` is in seconds.
    pub(super) fn issue(&self, about: T, now: u64) -> String {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST {
            open.retain(|_, form| form.expires > now);
        }
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, form)| form.expires);
            let oldest = oldest.map(|(token, _)| token.clone());
            oldest.map(|token| open.remove(&token));
        }
        let token = Uuid::new_v4().simple().to_string();
        let expires = now.saturating_add(LIFETIME);
        open.insert(token.clone(), Open { expires, about });
        token
    }

    /// Takes the token of a submitted form; `None` if it is unknown, used or too old.
    pub(super) fn take(&self, token: &str, now: u64) -> Option<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let form = open.remove(token)?;
        (form.expires > now).then_some(form.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_once_and_in_time() {
        let tokens = FormTokens::default();
        let token = tokens.issue(7, 100);
        assert_eq!(tokens.take("", 100), None);
        assert_eq!(tokens.take(&token, 100), Some(7));
        assert_eq!(tokens.take(&token, 100), None);
        let late = tokens.issue(8, 100);
        assert_eq!(tokens.take(&late, 100 + LIFETIME), None);
    }

    #[test]
    fn the_oldest_form_is_forgotten_first() {
        let tokens = FormTokens::default();
        let first = tokens.issue(0, 1);
        let second = tokens.issue(1, 2);
        for number in 2..=MOST {
            tokens.issue(number, 3);
        }
        assert_eq!(tokens.take(&first, 3), None);
        assert_eq!(tokens.take(&second, 3), Some(1));
    }
}
