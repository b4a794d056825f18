//! The pages of accesses: the number, and the list with a button for each access.

use super::super::super::access::Access;
use super::super::super::language::{Language, grouped};
use super::super::views::{identity_field, page, row};
use super::super::words::{Words, about};
use super::words::AccessWords;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use jiff::{Timestamp, ZonedDateTime};
use maud::{Markup, html};

/// What the list says of the button that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The access ended.
    Withdrawn,
    /// At least one access did not end.
    NotWithdrawn,
    /// The form named no access.
    Outdated,
}

impl Message {
    fn shown(self, words: &AccessWords) -> Markup {
        let (role, text) = match self {
            Self::Withdrawn => ("status", words.withdrawn),
            Self::NotWithdrawn => ("alert", words.not_withdrawn),
            Self::Outdated => ("alert", words.outdated),
        };
        html! { p role=(role) { (text) } }
    }
}

/// The first page: asks for the number. `alert` says why it is shown again.
pub(super) fn identification(
    language: Language,
    form: &str,
    alert: Option<&str>,
) -> Response<Body> {
    let (words, shared) = (AccessWords::of(language), Words::of(language));
    let is_wrong = alert == Some(shared.number_wrong);
    let content = html! {
        @if let Some(alert) = alert { p role="alert" { (alert) } }
        p { (words.intro) }
        form method="post" action="accesses" {
            input type="hidden" name="form" value=(form);
            (identity_field(shared, words.hint, is_wrong))
            div.buttons { button.primary type="submit" name="step" value="next" { (shared.next) } }
        }
    };
    page(language, words.title, content).answer(StatusCode::OK)
}

/// The page without a list, because the gateway cannot be asked.
pub(super) fn unavailable(
    language: Language,
    status: StatusCode,
    message: Option<Message>,
) -> Response<Body> {
    let words = AccessWords::of(language);
    let content = html! {
        @if let Some(message) = message { (message.shown(words)) }
        p role="alert" { (words.unavailable) }
        p { a href="accesses" { (words.again) } }
    };
    page(language, words.title, content).answer(status)
}

/// The list of accesses.
pub(super) struct List<'a> {
    /// The language of the browser.
    pub(super) language: Language,
    /// The bank's time.
    pub(super) now: &'a ZonedDateTime,
    /// The one-time token of the form.
    pub(super) form: &'a str,
    /// In the order of the places that the buttons name.
    pub(super) accesses: &'a [Access],
    /// What the last button did.
    pub(super) message: Option<Message>,
}

impl List<'_> {
    /// The page.
    pub(super) fn answer(&self) -> Response<Body> {
        let words = self.words();
        let content = html! {
            @if let Some(message) = self.message { (message.shown(words)) }
            @if self.accesses.is_empty() {
                p { (words.none) }
            } @else {
                form method="post" action="accesses" {
                    input type="hidden" name="form" value=(self.form);
                    @for (place, access) in self.accesses.iter().enumerate() { (self.access(place, access)) }
                    @if self.accesses.len() > 1 {
                        div.buttons {
                            button.primary type="submit" name="withdraw" value="all" { (words.withdraw_all) }
                        }
                    }
                }
            }
        };
        let status = match self.message {
            Some(Message::NotWithdrawn) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::OK,
        };
        page(self.language, words.title, content).answer(status)
    }

    fn access(&self, place: usize, access: &Access) -> Markup {
        let words = self.words();
        let tpp = access.tpp_name.as_deref().unwrap_or(&access.key.tpp);
        let company = access.company.as_deref();
        let heading = format!("access-{place}");
        let is_only = self.accesses.len() == 1;
        html! {
            section.card {
                h2 id=(heading.as_str()) { (tpp) @if let Some(company) = company { " – " (company) } }
                dl {
                    (row(words.registered_as, &html! { (access.key.tpp) }))
                    (row(words.for_whom, &html! { (company.unwrap_or(words.yourself)) }))
                    (row(words.accounts, &html! {
                        @for account in &access.accounts { (account.name) span { (grouped(&account.bban)) } }
                    }))
                    (row(words.since, &html! { (self.day(access.since)) }))
                    (row(words.until, &html! {
                        (self.day(access.until))
                        @if access.until.is_some_and(|until| until <= self.now.timestamp()) { span { (words.over) } }
                    }))
                    (row(words.last_use, &html! { (self.last_use(access.last_use)) }))
                }
                @if access.is_unclear { p.hint { (words.unclear) } }
                @if let Some(counted) = access.counted { p.hint { (words.counted) " " (counted) "." } }
                div.buttons {
                    button.primary[is_only] type="submit" name="withdraw" value=(place) aria-describedby=(heading.as_str()) {
                        (about(words.withdraw, tpp))
                    }
                }
            }
        }
    }

    fn day(&self, moment: Option<Timestamp>) -> String {
        match moment {
            Some(moment) => self.language.day(self.at_the_bank(moment).date()),
            None => self.words().unknown.to_owned(),
        }
    }

    fn last_use(&self, moment: Option<Timestamp>) -> String {
        match moment.map(|moment| self.at_the_bank(moment)) {
            Some(used) => {
                let (day, time) = (self.language.day(used.date()), self.language.time(&used));
                format!("{day}, {time}")
            }
            None => self.words().never.to_owned(),
        }
    }

    fn at_the_bank(&self, moment: Timestamp) -> ZonedDateTime {
        moment.to_zoned_datetime(self.now.time_zone().clone())
    }

    fn words(&self) -> &'static AccessWords {
        AccessWords::of(self.language)
    }
}
