//! A bundle for people: its lists and their next updates, how many anchors, what ends soon, what changed since the bundle in use or the one
//! before, which services are withdrawn, and which TPPs would lose trust.

use crate::{
    bundle::{
        BundleDocument, BundleTrust, CURRENT, DOCUMENT, GatewayConfig, ListEntry, Use, dated,
        describe, diff, newest, read, withdrawn,
    },
    fault::Refusal,
    losses::{Judge, Losses, SeenCertificates},
};
use portvakt_base::{clock::Timestamp, private_file};
use std::path::{Path, PathBuf};

/// How long before its end an anchor is shown: three months, as certificates of services are replaced.
const SOON_SECONDS: u64 = 90 * 86_400;

/// A bundle, and the one that it is compared with.
#[derive(Debug)]
pub struct Shown {
    /// The folder of the bundle.
    pub folder: PathBuf,
    /// The path by which it was named, and the link to it if it is in use: by these a gateway finds it.
    pub ways: Vec<PathBuf>,
    /// The bundle.
    pub bundle: BundleDocument,
    /// The bundle in use, if this is another one; otherwise the bundle before.
    pub before: Option<Earlier>,
    /// The name of the bundle in use, if this is another one.
    pub in_use: Option<String>,
    /// What is damaged beside it: why the next import is refused, or nothing is compared.
    pub damaged: Vec<String>,
}

/// The bundle that another one is compared with.
#[derive(Debug)]
pub struct Earlier {
    /// The name of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The bundle.
    pub bundle: BundleDocument,
}

impl Earlier {
    fn read(folder: PathBuf) -> Result<Self, Refusal> {
        Ok(Self {
            name: name_of(&folder),
            bundle: read(&folder)?,
            folder,
        })
    }
}

impl Shown {
    /// Opens a folder: one bundle, or the folder of bundles, of which the newest is shown. By the time the next import judges which one is the
    /// newest.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, Refusal> {
        let folder = match path.join(DOCUMENT).is_file() {
            true => path.to_owned(),
            false => dated(path)?.pop().ok_or_else(|| {
                Refusal::new(format_args!("{}: it holds no bundle", path.display()))
            })?,
        };
        let bundle = read(&folder)?;
        let mut ways = vec![folder.clone()];
        // A link leads to the dated folder, whose neighbours are the other bundles.
        let folder = folder
            .canonicalize()
            .map_err(|error| Refusal::new(format_args!("{}: {error}", folder.display())))?;
        let parent = private_file::folder_of(&folder);
        let neighbours = dated(parent)?;
        let current = parent.join(CURRENT).canonicalize().ok();
        let link = way_by_link(path, &folder);
        ways.extend(link.filter(|link| !ways.contains(link)));
        let in_use = current.filter(|current| *current != folder && neighbours.contains(current));
        let mut others = neighbours.iter().rev();
        let before = in_use.clone();
        let before = before.or_else(|| others.find(|other| **other < folder).cloned());
        let mut damaged = damaged(parent, now)?;
        let before = before.and_then(|before| match Earlier::read(before) {
            Ok(before) => Some(before),
            Err(fault) => {
                damaged.push(format!("nothing is compared: {fault}"));
                None
            }
        });
        Ok(Self {
            bundle,
            before,
            damaged,
            in_use: in_use.as_deref().map(name_of),
            ways,
            folder,
        })
    }

    /// Why a gateway of this configuration refuses the bundle, why the next import is refused, and what else is damaged; none if all is well.
    pub fn faults(&self, config: GatewayConfig<'_>) -> Vec<String> {
        let refused = self.refused(config).into_iter();
        refused.chain(self.damaged.iter().cloned()).collect()
    }

    /// The lines to show, as of a time, with these faults.
    pub fn lines(&self, faults: &[String], now: Timestamp) -> Vec<String> {
        let bundle = &self.bundle;
        let mut lines = vec![format!("bundle {}", self.folder.display())];
        if let Some(in_use) = &self.in_use {
            lines.push(format!("not in use: {CURRENT} leads to {in_use}"));
        }
        lines.extend(faults.iter().cloned());
        lines.extend([
            format!("made {}, as of {}", bundle.made, bundle.as_of),
            format!(
                "{} anchors for seals, {} for websites",
                bundle.count(Use::Seals),
                bundle.count(Use::Websites)
            ),
            String::new(),
            "list  version  sequence  issued                next update           seals  websites"
                .to_owned(),
        ]);
        lines.push(list_line(&bundle.list_of_lists, None, now));
        for list in &bundle.lists {
            lines.push(list_line(list, Some(bundle), now));
        }
        if !bundle.pivots.is_empty() {
            lines.push(format!("pivots followed: {}", bundle.pivots.join(", ")));
        }
        if !bundle.named.is_empty() {
            let count = bundle.named.len();
            lines.push(format!(
                "CAs that the lists name and that vouch for nothing, such as withdrawn ones: {count}"
            ));
        }
        if !bundle.earlier.is_empty() {
            let earlier = bundle.earlier.iter();
            let earlier = earlier.map(|it| format!("{} (sequence {})", it.territory, it.sequence));
            let earlier: Vec<_> = earlier.collect();
            lines.push(format!(
                "lists of earlier bundles only: {}",
                earlier.join(", ")
            ));
        }
        if !bundle.missing.is_empty() {
            lines.push(format!("no file of: {}", bundle.missing.join(", ")));
        }
        lines.extend(self.ended_signers(now));
        lines.extend(self.ends(now));
        lines.extend(self.left_out());
        lines.extend(self.changes());
        lines.extend(self.withdrawn());
        lines
    }

    /// The lines that say which TPPs would lose trust by this bundle, as of a time, and by which files.
    ///
    /// # Errors
    /// The anchors of a bundle cannot be read.
    pub fn losses(
        &self,
        seen: &SeenCertificates,
        config: GatewayConfig<'_>,
        now: Timestamp,
    ) -> Result<Vec<String>, Refusal> {
        let trust = BundleTrust::read(&self.folder, config)?;
        let after = Judge {
            bundle: &self.bundle,
            trust: &trust,
        };
        let read = |of: &Earlier| BundleTrust::read(&of.folder, config);
        let old = self.before.as_ref().map(read).transpose()?;
        let before = self.before.as_ref().zip(old.as_ref());
        let before = before.map(|(before, trust)| Judge {
            bundle: &before.bundle,
            trust,
        });
        let mut lines = vec![String::new()];
        lines.extend(seen.files());
        lines.extend(Losses::find(seen, before, after, now).lines());
        Ok(lines)
    }

    /// The reason why a gateway would not take the bundle into use, by the judgement of the gateway.
    fn refused(&self, config: GatewayConfig<'_>) -> Option<String> {
        let judged = self.ways.iter();
        let judged = judged.map(|way| BundleTrust::read(way, config));
        let judged: Result<Vec<_>, _> = judged.collect();
        match judged {
            Err(refusal) => Some(refusal.to_string()),
            Ok(all) if config.own.is_empty() && !all.iter().all(BundleTrust::has_anchors) => Some(
                "the gateway refuses this bundle where trust.anchors names no anchors: it has none"
                    .to_owned(),
            ),
            Ok(_) => None,
        }
    }

    /// The lists whose signer's certificate has ended.
    fn ended_signers(&self, now: Timestamp) -> Vec<String> {
        let lists = std::iter::once(&self.bundle.list_of_lists).chain(&self.bundle.lists);
        let ended = lists.filter_map(|list| {
            let end = list.signer_not_after.filter(|end| *end < now)?;
            // Not by its subject, which may have the identity number of a person.
            let digest = &list.signer_sha256;
            Some(format!(
                "  {} ended {end}: SHA-256 {digest:.16}",
                list.territory
            ))
        });
        let ended: Vec<_> = ended.collect();
        if ended.is_empty() {
            return ended;
        }
        let title = "signers of lists whose certificate has ended; the lists serve on:";
        [String::new(), title.to_owned()]
            .into_iter()
            .chain(ended)
            .collect()
    }

    /// The certificates that have ended, and those that end soon.
    fn ends(&self, now: Timestamp) -> Vec<String> {
        let soon = now.unix().saturating_add(SOON_SECONDS);
        let anchors = self.bundle.anchors.iter();
        let mut ending: Vec<_> = anchors.filter(|it| it.not_after.unix() <= soon).collect();
        ending.sort_by_key(|anchor| anchor.not_after);
        let (ended, ending): (Vec<_>, Vec<_>) =
            ending.into_iter().partition(|it| it.not_after < now);
        let mut lines = Vec::new();
        for (title, verb, anchors) in [
            ("certificates that have ended:", "ended", ended),
            ("certificates that end within 90 days:", "ends", ending),
        ] {
            if anchors.is_empty() {
                continue;
            }
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(
                anchors
                    .iter()
                    .map(|anchor| format!("  {verb} {}: {}", anchor.not_after, describe(anchor))),
            );
        }
        lines
    }

    fn left_out(&self) -> Vec<String> {
        if self.bundle.left_out.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![
            String::new(),
            "services of which something is missing: an anchor, or the key by which their CA would be named:".to_owned(),
        ];
        lines.extend(self.bundle.left_out.iter().map(|it| {
            format!(
                "  {} {} ({}): {}",
                it.territory, it.service, it.provider, it.reason
            )
        }));
        lines
    }

    fn changes(&self) -> Vec<String> {
        let Some(before) = &self.before else {
            return Vec::new();
        };
        let mut lines = vec![String::new(), format!("changes since {}:", before.name)];
        let changes = diff(&before.bundle, &self.bundle);
        match changes.is_empty() {
            true => lines.push("  none".to_owned()),
            false => lines.extend(changes.iter().map(|change| format!("  {change}"))),
        }
        lines
    }

    fn withdrawn(&self) -> Vec<String> {
        let Some(before) = &self.before else {
            return Vec::new();
        };
        let gone = withdrawn(&before.bundle, &self.bundle);
        if gone.is_empty() {
            return Vec::new();
        }
        let title = format!(
            "services that are granted no more, or under another name, since {}:",
            before.name
        );
        let mut lines = vec![String::new(), title];
        lines.extend(gone.iter().map(|service| format!("  {service}")));
        lines
    }
}

/// Why the next import into a folder is refused for the bundles that it has, as far as they are damaged.
fn damaged(folder: &Path, now: Timestamp) -> Result<Vec<String>, Refusal> {
    let current = folder.join(CURRENT);
    let dangling = private_file::is_dangling(&current).then(|| {
        let current = current.display();
        format!("{current}: it leads to no folder that is there, so that no bundle is in use, and the next import is refused")
    });
    let damaged = newest(folder, now)?.damaged.into_iter();
    let damaged = damaged.map(|fault| format!("the next import is refused: {fault}"));
    Ok(dangling.into_iter().chain(damaged).collect())
}

/// The link to the bundle in use, beside the path by which a bundle was named or in it, if it leads to this folder.
fn way_by_link(path: &Path, folder: &Path) -> Option<PathBuf> {
    let beside = path.parent().map(|parent| parent.join(CURRENT));
    let links = [Some(path.join(CURRENT)), beside];
    let leads = |link: &PathBuf| link.canonicalize().is_ok_and(|end| end == folder);
    links.into_iter().flatten().find(leads)
}

/// The name of a folder.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A row of the table of lists.
fn list_line(list: &ListEntry, bundle: Option<&BundleDocument>, now: Timestamp) -> String {
    let next = match list.next_update {
        Some(next) if next < now => format!("{next} (past)"),
        Some(next) => next.to_string(),
        None => "closed".to_owned(),
    };
    let of = |wanted: Use| bundle.map(|bundle| of_territory(bundle, &list.territory, wanted));
    let number = |count: Option<usize>| count.map_or_else(String::new, |count| count.to_string());
    let row = format!(
        "{:<4}  {:>7}  {:>8}  {:<20}  {next:<20}  {:>5}  {:>8}",
        list.territory,
        list.version,
        list.sequence,
        list.issued.to_string(),
        number(of(Use::Seals)),
        number(of(Use::Websites)),
    );
    row.trim_end().to_owned()
}

/// How many anchors a country's list has for a use.
fn of_territory(bundle: &BundleDocument, territory: &str, wanted: Use) -> usize {
    let anchors = bundle.anchors.iter().filter(|anchor| {
        let mut services = anchor.services.iter();
        services.any(|it| it.territory == territory && it.uses.contains(&wanted))
    });
    anchors.count()
}
