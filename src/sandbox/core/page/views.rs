//! The pages for the PSU: the number first, because the accounts depend on it, then the app, the context, and the approval.
//!
//! Every page says who asks and for what. Its one form contains the request's token and a one-time token, and no address
//! contains either.

use super::super::control::Pending;
use super::super::html::Page;
use super::super::language::{Language, grouped};
use super::super::payment::{CROSS_BORDER, INSTANT};
use super::approval::{Choice, Context};
use super::subject::{Shown, Subject, Sum, Transfer};
use super::words::{Words, about};
use axum::body::Body;
use axum::http::{Response, StatusCode};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};

/// The step of a PSU on whose device the bank's app is not configured.
pub(super) const WITHOUT_APP: &str = "without-app";

/// The view of one SCA.
pub(super) struct View<'a> {
    /// The language of the browser.
    pub(super) language: Language,
    /// The bank's time zone.
    pub(super) zone: TimeZone,
    /// The request's token.
    pub(super) request: &'a str,
    /// The request.
    pub(super) pending: &'a Pending,
    /// Its subject.
    pub(super) subject: &'a Subject,
}

/// A page with one message and no form.
pub(super) fn notice(
    language: Language,
    status: StatusCode,
    title: &str,
    text: &str,
) -> Response<Body> {
    let content = html! { p role="alert" { (text) } };
    page(language, title, content).answer(status)
}

/// A page with this heading.
pub(super) fn page(language: Language, title: &str, content: Markup) -> Page<'_> {
    let words = Words::of(language);
    Page {
        language: language.tag(),
        bank: words.bank,
        title,
        foot: words.foot,
        is_wide: false,
        content,
    }
}

/// The question who the PSU is.
pub(super) fn identity_field(words: &Words, hint: &str, is_wrong: bool) -> Markup {
    html! {
        div.card {
            h2 { (words.identify) }
            label.field for="identity" { (words.number) }
            input type="text" id="identity" name="identity" inputmode="numeric" maxlength="11" autocomplete="off"
                required aria-describedby="hint" aria-invalid=[is_wrong.then_some("true")];
            p.hint #hint { (hint) }
        }
    }
}

impl View<'_> {
    /// The first page: asks for the number. `alert` says why it is shown again.
    pub(super) fn identify(&self, form: &str, alert: Option<&str>) -> Response<Body> {
        let words = self.words();
        let is_wrong = alert == Some(words.number_wrong);
        let fields = identity_field(words, words.number_hint, is_wrong);
        self.answer(form, alert, &fields, words.next)
    }

    /// The wait for the bank's app.
    pub(super) fn app(&self, form: &str, alert: Option<&str>) -> Response<Body> {
        let words = self.words();
        let fields = html! {
            div.card {
                h2 { (words.app) }
                div.phone aria-hidden="true" {}
                p { (words.app_text) }
                div.buttons { button type="submit" name="step" value=(WITHOUT_APP) { (words.app_none) } }
            }
        };
        self.answer(form, alert, &fields, words.next)
    }

    /// The choice of a context.
    pub(super) fn context(
        &self,
        form: &str,
        alert: Option<&str>,
        contexts: &[Context],
    ) -> Response<Body> {
        let words = self.words();
        let fields = html! {
            fieldset.card {
                legend { (words.context) }
                @for context in contexts {
                    label.choice {
                        input type="radio" name="context" value=(context.value()) required checked[!context.is_corporate()];
                        span { (context.name) small { (self.kind(context)) } }
                    }
                }
            }
        };
        self.answer(form, alert, &fields, words.next)
    }

    /// The last page: asks for approval.
    pub(super) fn approve(&self, form: &str, context: &Context, today: Date) -> Response<Body> {
        let words = self.words();
        let whose = html! {
            p.soft { (words.for_whom) " " (context.name) " (" (self.kind(context)) ")" }
        };
        let (fields, label) = match self.subject {
            Subject::Payments {
                payments, total, ..
            } => (self.payments(payments, total.as_ref()), words.sign),
            _ if self.pending.asks_consent => (self.consent(context, today), words.give),
            _ => {
                let knows = about(words.knows, self.tpp());
                (html! { div.card { p { (knows) } } }, words.allow)
            }
        };
        self.answer(form, None, &html! { (whose) (fields) }, label)
    }

    fn consent(&self, context: &Context, today: Date) -> Markup {
        let words = self.words();
        // §Limits: SCA must be renewed after 180 days.
        let until = today.saturating_add(jiff::Span::new().days(180));
        html! {
            fieldset.card aria-describedby="untick" {
                legend { (about(words.accounts, self.tpp())) }
                @for choice in &context.accounts { (self.account(choice)) }
                p.hint #untick {
                    @if context.accounts.iter().any(|choice| choice.is_open) { (words.untick) } @else { (words.tick) }
                }
            }
            div.card {
                h2 { (words.grants) }
                ul.plain { @for granted in words.granted { li { (granted) } } }
                p { (words.granted_until) " " strong { (self.language.day(until)) } ". " (words.granted_limits) }
            }
        }
    }

    fn account(&self, choice: &Choice) -> Markup {
        let (words, account) = (self.words(), &choice.account);
        html! {
            label.choice {
                input type="checkbox" name="account" value=(account.id) checked[choice.is_open];
                span {
                    (account.name)
                    small { (grouped(&account.bban)) @if choice.is_readable { " – " (words.open_today) } }
                }
                span.sum { (self.sum(&choice.available)) small { (words.available) } }
            }
        }
    }

    fn payments(&self, payments: &[Shown], total: Option<&Sum>) -> Markup {
        let [one, of] = self.words().one_of;
        html! {
            @for (place, payment) in payments.iter().enumerate() {
                section.card {
                    @if payments.len() > 1 {
                        h2 { (one) " " (place.saturating_add(1)) " " (of) " " (payments.len()) }
                    }
                    (self.payment(payment))
                }
            }
            @if let Some(total) = total {
                p.card.total { span { (self.words().total) } strong { (self.sum(total)) } }
            }
        }
    }

    fn payment(&self, payment: &Shown) -> Markup {
        let words = self.words();
        let product = match payment.product.as_str() {
            CROSS_BORDER => words.cross_border,
            INSTANT => words.instant,
            _ => words.domestic,
        };
        let fee = match payment.fee.amount {
            0 => words.no_fee.to_owned(),
            _ => self.sum(&payment.fee),
        };
        html! {
            dl {
                (row(words.product, &html! { (product) }))
                @if let Some((account, owner)) = &payment.debtor {
                    (row(words.from, &html! {
                        (owner.name) span { (account.name) ", " (grouped(&account.bban)) }
                    }))
                }
                @for transfer in &payment.transfers { (self.transfer(transfer)) }
                (row(words.fee, &html! { (fee) }))
                (row(words.date, &html! { (self.language.day(payment.due)) }))
                @if let Some(frequency) = &payment.frequency { (row(words.repeats, &html! { (frequency) })) }
            }
        }
    }

    fn transfer(&self, transfer: &Transfer) -> Markup {
        let words = self.words();
        html! {
            (row(words.to, &html! { (transfer.creditor) span { (grouped(&transfer.number)) } }))
            div { dt { (words.amount) } dd.sum { (self.sum(&transfer.amount)) } }
            @if let Some(debit) = &transfer.debit { (row(words.leaves, &html! { (self.sum(debit)) })) }
            @if let Some(message) = &transfer.message { (row(words.message, &html! { (message) })) }
            @if let Some(reference) = &transfer.reference { (row(words.reference, &html! { (reference) })) }
        }
    }

    /// Who asks and for what, the fields, and the two buttons.
    fn answer(
        &self,
        form: &str,
        alert: Option<&str>,
        fields: &Markup,
        label: &str,
    ) -> Response<Body> {
        let words = self.words();
        let (title, asks) = match self.subject {
            Subject::Accounts => (words.accounts_title, words.asks_accounts),
            Subject::Registration => (words.registration_title, words.asks_registration),
            Subject::Payments { payments, .. } => match payments.len() {
                0 => (words.payment_title, words.asks_nothing),
                1 => (words.payment_title, words.asks_payment),
                _ => (words.payments_title, words.asks_payments),
            },
            Subject::Unknown => (words.other_title, words.asks_other),
        };
        let content = html! {
            @if let Some(alert) = alert { p role="alert" { (alert) } }
            div.card.asks {
                p { strong { (self.tpp()) } " " (asks) }
                p.soft { (self.role()) ", " (words.registered_as) " " (self.pending.tpp) }
                @if let Some(expires) = self.pending.expires() {
                    p.soft { (words.open_until) " " (self.language.time(&expires.to_zoned_datetime(self.zone.clone()))) "." }
                }
            }
            form method="post" action="sca" {
                input type="hidden" name="request" value=(self.request);
                input type="hidden" name="form" value=(form);
                (fields)
                div.buttons {
                    button.primary type="submit" name="step" value="next" { (label) }
                    button type="submit" name="step" value="refuse" formnovalidate { (words.refuse) }
                }
            }
        };
        page(self.language, title, content).answer(StatusCode::OK)
    }

    fn words(&self) -> &'static Words {
        Words::of(self.language)
    }

    /// The TPP's name, or its number where its certificate has no name.
    fn tpp(&self) -> &str {
        self.pending
            .tpp_name
            .as_deref()
            .unwrap_or(&self.pending.tpp)
    }

    /// The role in which the TPP asks: the operation required it.
    fn role(&self) -> &'static str {
        match self.pending.asks_consent {
            true => self.words().information_role,
            false => self.words().initiation_role,
        }
    }

    fn kind(&self, context: &Context) -> &'static str {
        match context.is_corporate() {
            true => self.words().corporate,
            false => self.words().private,
        }
    }

    fn sum(&self, sum: &Sum) -> String {
        self.language.sum(sum.amount, sum.digits, &sum.currency)
    }
}

/// A row of a list of terms.
pub(super) fn row(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}
