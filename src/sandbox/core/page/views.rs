//! The pages for the PSU, in two steps: the number first, because the accounts depend on it.

use super::super::control::Pending;
use super::super::html::{self, Escaped};
use super::super::seed::WITH_AGREEMENT;
use super::approval::{Context, Shown, Subject};
use axum::body::Body;
use axum::http::{Response, StatusCode};

/// The view of one SCA.
pub(super) struct View<'a> {
    request: &'a str,
    pending: &'a Pending,
    subject: &'a Subject,
}

/// A page with one message and no link.
pub(super) fn notice(status: StatusCode, text: &str) -> Response<Body> {
    let text = format!("<p role=\"alert\">{}</p>\n", Escaped(text));
    html::page(status, "This does not work", &text)
}

impl<'a> View<'a> {
    pub(super) const fn new(request: &'a str, pending: &'a Pending, subject: &'a Subject) -> Self {
        Self {
            request,
            pending,
            subject,
        }
    }

    /// Step one: asks for the number. `again` reports that the previous one was invalid.
    pub(super) fn identify(&self, again: bool) -> Response<Body> {
        let (alert, invalid) = if again {
            let text = "<p role=\"alert\" id=\"alert\">That was no national identity number: it has 11 digits.</p>\n";
            (text, " aria-invalid=\"true\"")
        } else {
            ("", "")
        };
        let fields = format!(
            "{alert}<label for=\"identity\">Your national identity number</label>\n\
             <input type=\"text\" id=\"identity\" name=\"identity\" value=\"\" inputmode=\"numeric\" maxlength=\"11\" \
             autocomplete=\"off\" required autofocus aria-describedby=\"hint\"{invalid}>\n\
             <p id=\"hint\">A test number, any 11 digits: a new one is a new customer. {WITH_AGREEMENT} also acts for a \
             corporation.</p>\n"
        );
        self.form(&fields, "identify", "Continue")
    }

    /// Step two: asks for approval.
    pub(super) fn choose(&self, identity: &str, contexts: &[Context]) -> Response<Body> {
        let mut fields = hidden("identity", identity);
        if contexts.is_empty() {
            fields.push_str(
                "<p role=\"alert\">You have no access in the context that was asked for.</p>\n",
            );
            return self.form(&fields, "identify", "Try again");
        }
        let many = contexts.len() > 1;
        for (number, context) in contexts.iter().enumerate() {
            fields.push_str(&self.context(context, many, number == 0));
        }
        self.form(&fields, "approve", "Approve")
    }

    fn context(&self, context: &Context, many: bool, first: bool) -> String {
        let (name, value) = (Escaped(&context.name), context.value());
        let checked = |yes| if yes { " checked" } else { "" };
        let legend = if many {
            format!(
                "<label><input type=\"radio\" name=\"context\" value=\"{value}\"{}> {name}</label>",
                checked(first)
            )
        } else {
            format!("{}{name}", hidden("context", &value))
        };
        let mut html = format!("<fieldset>\n<legend>{legend}</legend>\n");
        let accounts = context
            .accounts
            .iter()
            .filter(|_| self.pending.asks_consent);
        for (account, is_open) in accounts {
            let line = format!(
                "<label><input type=\"checkbox\" name=\"account\" value=\"{}\"{}> {}, {}</label>\n",
                Escaped(&account.id),
                checked(*is_open),
                Escaped(&account.name),
                Escaped(&account.bban),
            );
            html.push_str(&line);
        }
        html + "</fieldset>\n"
    }

    /// The question, the fields, and the two buttons. The form's address has no query, so it no longer contains the token.
    fn form(&self, fields: &str, step: &str, label: &str) -> Response<Body> {
        let title = match self.subject {
            Subject::Accounts => "May your accounts be read?",
            Subject::Registration => "May you be known?",
            Subject::Payments { payments, .. } if payments.len() > 1 => "Sign payments",
            Subject::Payments { .. } => "Sign a payment",
            Subject::Other { .. } => "Sign",
        };
        let form = format!(
            "{question}<form method=\"post\" action=\"sca\">\n{request}{fields}\
             <button type=\"submit\" name=\"step\" value=\"{step}\">{label}</button>\n\
             <button type=\"submit\" name=\"step\" value=\"refuse\" formnovalidate>Refuse</button>\n</form>\n",
            question = self.question(),
            request = hidden("request", self.request),
        );
        html::page(StatusCode::OK, title, &form)
    }

    fn question(&self) -> String {
        let tpp = Escaped(&self.pending.tpp);
        match self.subject {
            Subject::Accounts => format!(
                "<p>{tpp} asks to read your accounts: balances and transactions of those that you tick. What you leave \
                 unticked is closed to it.</p>\n"
            ),
            Subject::Registration => format!(
                "<p>{tpp} asks to know you as its customer. It learns nothing of your accounts by that.</p>\n"
            ),
            Subject::Payments { payments, .. } => {
                let payments: String = payments.iter().map(payment).collect();
                format!("<p>{tpp} asks you to sign:</p>\n{payments}")
            }
            Subject::Other { path } => {
                format!("<p>{tpp} asks you to sign {}.</p>\n", Escaped(path))
            }
        }
    }
}

/// One payment, with all its transfers.
fn payment(shown: &Shown) -> String {
    let transfers = shown.amounts.iter().zip(&shown.creditors);
    let transfers: String = transfers
        .map(|(amount, creditor)| {
            let (amount, creditor) = (Escaped(amount), Escaped(creditor));
            format!("<dt>Amount</dt><dd>{amount}</dd>\n<dt>To</dt><dd>{creditor}</dd>\n")
        })
        .collect();
    let fee = shown.fee.as_ref();
    let fee = fee.map(|fee| format!("<dt>Fee</dt><dd>{}</dd>\n", Escaped(fee)));
    format!(
        "<dl>\n{transfers}{}<dt>Carried out</dt><dd>{}</dd>\n</dl>\n",
        fee.unwrap_or_default(),
        Escaped(&shown.due)
    )
}

fn hidden(name: &str, value: &str) -> String {
    let value = Escaped(value);
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">\n")
}
