//! The PSU's browser at the bank's page: it opens the link, fills in what it is shown, and goes where it is sent.
//!
//! Invariant: the browser knows only the link, and follows no redirect: the last redirect is for the TPP. Deliberately without
//! scripts, cookies and many pages: a few must be enough.

use super::form::Form;
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use portvakt_base::terminal::Terminal;
use std::{io::Write as _, time::Duration};

/// The most pages until the browser is sent to the TPP.
const PAGES: usize = 8;

/// The time that a page is looked at, where it waits for the bank's app: the PSU's finger on the phone.
const LOOK: Duration = Duration::from_millis(700);

/// The course of a visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Visited {
    /// The actions and the pages, one line each.
    pub(super) lines: Vec<String>,
    /// Where the browser was sent, if it was.
    pub(super) redirect: Option<String>,
    /// The reason why it stopped, if it failed.
    pub(super) fault: Option<String>,
}

/// The command line of a PSU's approval.
#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    /// The scaRedirect link.
    link: String,
    /// The national identity number that the PSU types: 11 digits.
    #[arg(long, value_name = "DIGITS", default_value = "01010112345")]
    identity: String,
}

/// Opens a link as a PSU, approves, and prints the address that the bank sends the browser to.
pub(crate) fn run(args: &ApproveArgs) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let visited = runtime.block_on(approve(&args.link, &args.identity));
    match (visited.redirect, visited.fault) {
        (Some(redirect), None) => writeln!(Terminal::output(), "{redirect}")?,
        (_, fault) => {
            let pages = visited.lines.join("\n  ");
            return Err(format!("{}\n  {pages}", fault.unwrap_or_default()).into());
        }
    }
    Ok(())
}

/// Opens the link, types the number, ticks every account, and approves.
pub(super) async fn approve(link: &str, identity: &str) -> Visited {
    let mut visited = Visited::default();
    if let Err(fault) = go(link, identity, &mut visited).await {
        visited.fault = Some(fault);
    }
    visited
}

async fn go(link: &str, identity: &str, visited: &mut Visited) -> Result<(), String> {
    let (origin, target) = split(link).ok_or("there is no link to follow")?;
    let (page, token) = target.split_once('?').unwrap_or((target, ""));
    let token = format!("{} characters", token.chars().count());
    visited
        .lines
        .push(format!("→ GET {origin}{page}?({token})"));
    let mut answer = ask(origin, "GET", target, None).await?;
    for _ in 0..PAGES {
        let html = String::from_utf8_lossy(&answer.body).into_owned();
        visited.lines.push(shown(&answer, &html));
        if let Some(location) = answer.header("location").filter(|_| answer.status == 303) {
            visited.redirect = Some(location.to_owned());
            return Ok(());
        }
        let form = Form::read(&html).filter(|_| answer.status == 200);
        let mut form = form.ok_or("it showed no form")?;
        let did = fill(&mut form, identity);
        if html.contains(IN_THE_APP) {
            tokio::time::sleep(LOOK).await;
        }
        let target = beside(page, &form.action);
        visited
            .lines
            .push(format!("→ POST {origin}{target}, {did}"));
        answer = ask(origin, "POST", &target, Some(form.go_on())).await?;
    }
    Err("it kept asking".into())
}

/// The picture on the page that waits for the bank's app.
const IN_THE_APP: &str = "class=\"phone\"";

/// Fills in what the page asks for; gives what was done.
fn fill(form: &mut Form, identity: &str) -> String {
    if form.fill("identity", identity) {
        return "with a national identity number".into();
    }
    form.choose_first();
    match form.tick("account", true) {
        0 => "confirmed".into(),
        accounts => format!("with {accounts} accounts ticked"),
    }
}

/// A page by its heading, a redirect by its target.
fn shown(answer: &TppAnswer, html: &str) -> String {
    let status = answer.status;
    let heading = html
        .split_once("<h1>")
        .and_then(|(_, rest)| rest.split_once("</h1>"));
    match (answer.header("location"), heading) {
        (Some(location), _) => format!("← {status} to {location}"),
        (None, Some((heading, _))) => format!("← {status} {heading}"),
        (None, None) => format!("← {status}"),
    }
}

async fn ask(
    origin: &str,
    method: &str,
    target: &str,
    form: Option<String>,
) -> Result<TppAnswer, String> {
    let kind = "application/x-www-form-urlencoded".to_owned();
    let request = SignedRequest {
        method: method.into(),
        target: target.into(),
        headers: form
            .iter()
            .map(|_| ("Content-Type".to_owned(), kind.clone()))
            .collect(),
        body: form.map(String::into_bytes),
        signing_string: String::new(),
    };
    let answer = call(&request, origin, &CallOptions::default()).await;
    answer.map_err(|fault| fault.to_string())
}

/// Scheme and authority, and the rest.
fn split(link: &str) -> Option<(&str, &str)> {
    let authority = link.find("://")?.saturating_add(3);
    let path = link.get(authority..)?.find('/')?.saturating_add(authority);
    link.split_at_checked(path)
}

/// A relative reference without dots, on a page at `path` (RFC 3986, section 5.2.3).
fn beside(path: &str, reference: &str) -> String {
    match path.rsplit_once('/') {
        _ if reference.starts_with('/') => reference.to_owned(),
        Some((folder, _)) => format!("{folder}/{reference}"),
        None => format!("/{reference}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_references() {
        assert_eq!(
            split("http://127.0.0.1:8080/sca?request=a/b"),
            Some(("http://127.0.0.1:8080", "/sca?request=a/b"))
        );
        for bad in ["", "http://", "http://host", "/sca"] {
            assert_eq!(split(bad), None, "{bad}");
        }
        assert_eq!(beside("/sca", "sca"), "/sca");
        assert_eq!(beside("/bank/sca", "next"), "/bank/next");
        assert_eq!(beside("/bank/sca", "/next"), "/next");
    }

    #[tokio::test]
    async fn without_a_link_there_is_no_visit() {
        let visited = approve("", "1").await;
        assert_eq!(visited.redirect, None);
        assert_eq!(visited.fault.unwrap(), "there is no link to follow");
    }
}
