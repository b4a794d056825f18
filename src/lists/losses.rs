//! The TPPs that would lose trust by a bundle: by the certificates that gateways have seen (`--seen`), and by two bundles.
//!
//! Invariants: a certificate loses trust if the gateway trusts it by the bundle before at the time, and refuses it by the new one; every
//! certificate that was seen within 30 days is counted once, and one that cannot be judged is named. The operator's own anchors
//! (`trust.anchors`) count as far as they are at hand (`--anchors`).

// The files of gateways.
mod seen;

pub use seen::SeenCertificates;

use crate::bundle::{BundleDocument, BundleTrust, Deciding, Standing, describe};
use portvakt_base::clock::Timestamp;
use portvakt_trust::KeyHash;
use seen::{DamagedLines, Seen};
use std::collections::BTreeSet;

/// A bundle with its anchors.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'b> {
    /// The description.
    pub bundle: &'b BundleDocument,
    /// The anchors.
    pub trust: &'b BundleTrust,
}

/// What becomes of the certificates.
#[derive(Debug, Default)]
pub struct Losses {
    /// One line for each certificate that would lose trust, by TPP.
    lost: Vec<String>,
    /// One line for each that neither bundle calls qualified, though the new one has its CA, by TPP.
    unqualified: Vec<String>,
    /// One line for each that the gateway refuses whatever the bundle has, by TPP.
    refused: Vec<String>,
    /// One line for each that cannot be judged, by TPP.
    not_judged: Vec<String>,
    /// One line for each whose last day lies ahead, by TPP.
    ahead: Vec<String>,
    /// The lines of the files that are no certificate.
    damaged: DamagedLines,
    /// The TPPs of all that were seen within 30 days.
    tpps: BTreeSet<String>,
    trusted: usize,
    not_valid: usize,
    neither: usize,
}

impl Losses {
    /// Judges the certificates that were seen within 30 days by a bundle and by the one before it.
    pub fn find(
        seen: &SeenCertificates,
        before: Option<Judge<'_>>,
        after: Judge<'_>,
        now: Timestamp,
    ) -> Self {
        let mut losses = Self {
            damaged: seen.damaged.clone(),
            ..Self::default()
        };
        for seen in seen.found.values().filter(|seen| seen.is_recent(now)) {
            losses.tpps.insert(seen.tpp.clone());
            losses.add(seen, judge(seen, before, after, now));
        }
        for seen in seen.ahead.values() {
            let text = match judge(seen, before, after, now) {
                Outcome::Lost(why) => format!(": it would lose trust{why}"),
                _ => String::new(),
            };
            losses.ahead.push(format!("{}{text}", seen.line()));
        }
        for lines in [
            &mut losses.lost,
            &mut losses.unqualified,
            &mut losses.refused,
            &mut losses.not_judged,
            &mut losses.ahead,
        ] {
            lines.sort();
        }
        losses
    }

    fn add(&mut self, seen: &Seen, outcome: Outcome) {
        let count = match outcome {
            Outcome::Lost(why) => {
                self.lost.push(format!("{}{why}", seen.line()));
                return;
            }
            Outcome::Unqualified(why) => {
                self.unqualified.push(format!("{}: {why}", seen.line()));
                return;
            }
            Outcome::Refused(why) => {
                self.refused.push(format!("{}: {why}", seen.line()));
                return;
            }
            Outcome::NotJudged(why) => {
                self.not_judged.push(format!("{}: {why}", seen.line()));
                return;
            }
            Outcome::Trusted => &mut self.trusted,
            Outcome::NotValid => &mut self.not_valid,
            Outcome::Neither => &mut self.neither,
        };
        *count = count.saturating_add(1);
    }

    /// The lines to show.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "TPPs that would lose trust, of {} seen within 30 days:",
            self.tpps.len()
        )];
        match (self.lost.is_empty(), self.not_judged.is_empty()) {
            (true, true) => lines.push("  none".to_owned()),
            (true, false) => lines.push("  none of those that could be judged".to_owned()),
            (false, _) => lines.extend(self.lost.iter().map(|line| format!("  {line}"))),
        }
        lines.push(self.counts());
        for (named, text) in [
            (&self.not_judged, "not judged, so that they may lose trust:"),
            (
                &self.ahead,
                "last seen on a day that lies ahead, so not counted (the clock of a gateway was wrong, or the file was altered):",
            ),
            (
                &self.refused,
                "refused already, whatever the bundle has, by what they say themselves and by --certificate-types:",
            ),
            (
                &self.unqualified,
                "trusted by neither bundle, and refused by this one unless an anchor of your own (trust.anchors) has the CA itself:",
            ),
        ] {
            if !named.is_empty() {
                lines.push(text.to_owned());
                lines.extend(named.iter().map(|line| format!("  {line}")));
            }
        }
        if self.neither > 0 {
            let text = "trusted by neither: by an anchor of your own (trust.anchors), or below an intermediate that is not at hand (--intermediates)";
            lines.push(text.to_owned());
        }
        lines.extend(self.damaged_lines());
        lines
    }

    /// How many certificates were judged, and how.
    fn counts(&self) -> String {
        let (lost, trusted, not_valid) = (self.lost.len(), self.trusted, self.not_valid);
        let neither = [self.neither, self.unqualified.len(), self.refused.len()];
        let neither: usize = neither.iter().sum();
        let judged: usize = [lost, trusted, neither, not_valid].iter().sum();
        let not_judged = match self.not_judged.len() {
            0 => String::new(),
            count => format!("; not judged: {count}"),
        };
        format!(
            "certificates judged: {judged}; {lost} would lose trust, {trusted} are trusted, {neither} are trusted by neither bundle, {not_valid} have ended or have not begun{not_judged}"
        )
    }

    /// The lines of the files that are no certificate, the first of them by name.
    fn damaged_lines(&self) -> Vec<String> {
        let DamagedLines { count, named } = &self.damaged;
        if *count == 0 {
            return Vec::new();
        }
        let mut lines = vec![format!(
            "not judged: lines of the files that are no certificate: {count}"
        )];
        lines.extend(named.iter().map(|line| format!("  {line}")));
        if *count > named.len() {
            lines.push("  and more".to_owned());
        }
        lines
    }
}

/// What becomes of one certificate.
enum Outcome {
    /// It loses trust. The text says by which anchor and why, if that is known.
    Lost(String),
    Trusted,
    NotValid,
    /// Its CA is listed in the new bundle, and vouches for it in neither, for this reason.
    Unqualified(String),
    /// The gateway refuses it whatever the bundle has, for this reason.
    Refused(String),
    /// It cannot be judged, for this reason.
    NotJudged(String),
    Neither,
}

fn judge(seen: &Seen, before: Option<Judge<'_>>, after: Judge<'_>, now: Timestamp) -> Outcome {
    let standing = |judge: Judge<'_>| judge.trust.standing(&seen.certificate, &seen.pool, now);
    let old = before.map_or(Standing::Untrusted, standing);
    match (old, standing(after)) {
        (_, Standing::Trusted(_)) => Outcome::Trusted,
        (Standing::Refused(why), _) | (_, Standing::Refused(why)) => Outcome::Refused(why),
        (Standing::NotJudged(why), _) | (_, Standing::NotJudged(why)) => Outcome::NotJudged(why),
        // The anchor that vouched may be there still: a nearer one decides.
        (Standing::Trusted(_), Standing::Unqualified { why, by }) => {
            let by = by.and_then(|by| match by {
                Deciding::Anchor(sha256) => anchor_text(after, &sha256),
                Deciding::Named(key) => named_text(after, key),
            });
            Outcome::Lost(format!("{}: {why}", by.unwrap_or_default()))
        }
        (Standing::Trusted(anchor), Standing::NotValid) => {
            let text = before.and_then(|before| anchor_text(before, &anchor));
            let text = text.unwrap_or_default();
            Outcome::Lost(format!(
                "{text}: a certificate of its chain has ended or has not begun"
            ))
        }
        (Standing::Trusted(anchor), Standing::Untrusted) => {
            let text = before.and_then(|before| anchor_text(before, &anchor));
            Outcome::Lost(text.unwrap_or_default())
        }
        // One of them may lead to an anchor.
        _ if seen.damaged > 0 => Outcome::NotJudged(format!(
            "{} of the certificates that came with it cannot be read",
            seen.damaged
        )),
        (Standing::NotValid, _) | (_, Standing::NotValid) => Outcome::NotValid,
        (_, Standing::Unqualified { why, .. }) => Outcome::Unqualified(why),
        (Standing::Untrusted | Standing::Unqualified { .. }, Standing::Untrusted) => {
            Outcome::Neither
        }
    }
}

/// An anchor of a bundle and its services, after a colon.
fn anchor_text(of: Judge<'_>, sha256: &str) -> Option<String> {
    let anchor = of.bundle.anchors.iter().find(|it| it.sha256 == sha256)?;
    let services = anchor.services.iter().map(|it| it.service.as_str());
    let services: Vec<_> = services.collect();
    Some(format!(": {}: {}", describe(anchor), services.join(", ")))
}

/// A CA that a bundle names without an anchor, and its state, after a colon.
fn named_text(of: Judge<'_>, key: KeyHash) -> Option<String> {
    let mut named = of.bundle.named.iter();
    let named = named.find(|it| it.key_sha256 == key)?;
    Some(format!(
        ": {} ({}): {}, {} since {}",
        named.territory, named.provider, named.service, named.state, named.since
    ))
}

#[cfg(test)]
mod tests;
