//! The status of an interface for people: `index.html`.
//!
//! Invariants: every text is escaped; the page has no script and loads nothing; no sign is a colour alone. Deliberately not here: other
//! languages than English.

use super::{
    beside::Figures,
    day::{Day, rounded_down},
    own::OwnDay,
};
use crate::{hex, interface::openapi::page::escaped};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The beginning of every such page.
pub(super) const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                                <meta name=\"generator\" content=\"portvakt report\">\n";

/// The least contrast of a text is that of links, 7.9 to 1 (WCAG 2.2, 1.4.6 asks for 7 to 1).
const STYLE: &str = "body{margin:0 auto;max-width:80rem;padding:1rem;background:#ffffff;color:#1a1a1a;\
font-family:system-ui,sans-serif;line-height:1.5}a{color:#0b4f9e;text-decoration:underline}.wide{overflow-x:auto}\
table{border-collapse:collapse}caption{text-align:left;font-weight:bold;padding:.5rem 0}\
th,td{border:1px solid #595959;padding:.3rem .6rem;text-align:right;font-variant-numeric:tabular-nums}\
th{background:#eeeeee}thead th{vertical-align:bottom}tbody th{white-space:nowrap}";

/// The columns of the dedicated interface.
const COLUMNS: [&str; 6] = [
    "Dedicated interface: availability, %",
    "Dedicated interface: downtime, s",
    "Dedicated interface: mean response time of account information, ms",
    "Dedicated interface: mean response time of payment initiation, ms",
    "Dedicated interface: errors",
    "Dedicated interface: rate of errors, %",
];

/// The columns of the own channel.
const OWN_COLUMNS: [&str; 4] = [
    "Own channel: availability, %",
    "Own channel: mean response time, ms",
    "Own channel: errors",
    "Own channel: rate of errors, %",
];

/// The text of a cell without a figure.
const NONE: &str = "no figure";

/// Renders the days. The page names the hash of the `status.json` that was rendered with it, by which a reader knows that both are of one
/// run.
pub(super) fn render(
    days: &[Day],
    own: Option<&Figures<OwnDay>>,
    bank: Option<&str>,
    status: &str,
) -> String {
    let mut page = BEGIN.to_owned();
    let hash = hex::encode(&Sha256::digest(status));
    let bank = bank.map(escaped);
    let title = match &bank {
        Some(bank) => format!("Availability of the PSD2 interface of {bank}"),
        None => "Availability of the PSD2 interface".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<meta name=\"portvakt-status-sha256\" content=\"{hash}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    if let (Some(first), Some(last)) = (days.first(), days.last()) {
        let _ = writeln!(
            page,
            "<p>The figures of each day (UTC) from {} to {}. For programs: <a href=\"status.json\">status.json</a></p>",
            first.date, last.date
        );
    }
    table(&mut page, days, own);
    notes(&mut page, own.is_some());
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn table(page: &mut String, days: &[Day], own: Option<&Figures<OwnDay>>) {
    page.push_str(
        "<h2 id=\"figures\">Figures by day</h2>\n<div class=\"wide\" role=\"region\" aria-labelledby=\"figures\" tabindex=\"0\">\n\
         <table>\n<caption>Availability, response times and errors by day</caption>\n<thead>\n<tr><th scope=\"col\">Day</th>",
    );
    let own_columns: &[&str] = if own.is_some() { &OWN_COLUMNS } else { &[] };
    for column in COLUMNS.iter().chain(own_columns) {
        let _ = write!(page, "<th scope=\"col\">{column}</th>");
    }
    page.push_str("</tr>\n</thead>\n<tbody>\n");
    for day in days {
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", day.date);
        cells(page, &figures(day));
        if let Some(own) = own {
            cells(page, &own_figures(own.of(day.date)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n</div>\n");
}

fn cells(page: &mut String, figures: &[String]) {
    for figure in figures {
        let _ = write!(page, "<td>{figure}</td>");
    }
}

/// The cells of [`COLUMNS`].
fn figures(day: &Day) -> [String; COLUMNS.len()] {
    [
        format!("{:.3}", rounded_down(day.availability())),
        day.downtime_seconds().to_string(),
        mean(day.ais.mean()),
        mean(day.pis.mean()),
        day.errors.to_string(),
        format!("{:.4}", day.error_rate()),
    ]
}

/// The cells of [`OWN_COLUMNS`].
fn own_figures(own: Option<&OwnDay>) -> [String; OWN_COLUMNS.len()] {
    let Some(own) = own else {
        return [NONE; OWN_COLUMNS.len()].map(str::to_owned);
    };
    [
        format!("{:.3}", rounded_down(own.availability)),
        mean(own.mean),
        own.errors.to_string(),
        format!("{:.4}", own.error_rate()),
    ]
}

fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| NONE.to_owned(), |mean| format!("{mean:.1}"))
}

/// The meaning of the figures.
fn notes(page: &mut String, has_own: bool) {
    page.push_str(
        "<h2>What the figures mean</h2>\n<ul>\n\
         <li>Availability is the part of the day without downtime. Downtime begins when five requests in a row get no reply within 30 \
         seconds, and ends with the next reply (EBA/GL/2018/07, guideline 2.4).</li>\n\
         <li>The figures of the dedicated interface come from the requests that it received: a time without a request counts as \
         available.</li>\n\
         <li>The mean response time is that of successful requests.</li>\n\
         <li>Errors are requests that the bank failed, or that took 30 seconds. Their rate is their part of all requests.</li>\n",
    );
    if has_own {
        page.push_str("<li>The own channel is the interface by which the bank's customers use their accounts directly.</li>\n");
    }
    let _ = writeln!(
        page,
        "<li>\u{201c}{NONE}\u{201d} stands where nothing was measured, such as a response time on a day without a successful request.</li>\n</ul>"
    );
}
