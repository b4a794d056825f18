//! Whether the certificate passes at this gateway: as that of a signature, and as that of a TLS connection.

use super::{faults::Finding, judges::Judges};
use crate::{config::ClientAuth, interface::Reason};

/// The decision on one use: the faults that the policy tolerates, or the first reason of the refusal and its text.
pub(super) type Verdict = Result<Vec<&'static str>, (Reason, String)>;

/// The decision that a finding alone makes.
pub(super) fn refused(finding: &Finding) -> Verdict {
    Err((finding.reason, finding.text.clone()))
}

/// The rows of both decisions; `None` for those that nobody made, because no anchors are given.
pub(super) fn rows(
    judges: &Judges,
    verdicts: Option<(&Verdict, &Verdict)>,
) -> [(&'static str, String); 2] {
    let (signing, client) = match verdicts {
        Some((signing, client)) => (said(signing), format!("{}{}", said(client), asked(judges))),
        None => {
            let nobody = "not judged: name anchors with --config or --anchors";
            (nobody.to_owned(), nobody.to_owned())
        }
    };
    [("signatures", signing), ("mutual TLS", client)]
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Ok(tolerated) if tolerated.is_empty() => "passes".to_owned(),
        Ok(tolerated) => format!(
            "passes, since certificate_policy: tolerant accepts {}",
            tolerated.join(", ")
        ),
        Err((reason, text)) => {
            let code = reason.code().map_or("", |code| code.as_str());
            let (status, slug) = (reason.status(), reason.slug());
            format!("refused with {status} {code} {slug}: {text}")
        }
    }
}

/// What the listener does with client certificates.
fn asked(judges: &Judges) -> &'static str {
    let configured = judges.configured.as_ref();
    match configured.map(|configured| configured.client_auth) {
        Some(ClientAuth::Off) => {
            "; this gateway asks for no client certificate (listener.client_auth: off)"
        }
        Some(ClientAuth::Optional) => "; it is optional here (listener.client_auth)",
        Some(ClientAuth::Required) => "; it is required here (listener.client_auth)",
        None => "",
    }
}
