//! A bundle of trust anchors that `portvakt-lists import` wrote (`trust.bundle`, CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and
//! `websites`.
//!
//! Deliberately not here: what makes a bundle one that may be loaded (`portvakt_trust::bundle`), which `portvakt-lists show` judges too; the
//! lists themselves, and whether their services are granted, which the import has judged.

// The services of its anchors.
mod services;

use super::{
    named_file::NamedFile,
    value::Value,
    warning::{Condition, NEVER, Period},
};
use crate::{
    clock::Timestamp,
    expiring::{Expiring, Level},
    trust::{
        ListedAnchors, Validity,
        bundle::{DOCUMENT, LoadedBundle, Use, load},
    },
};
use services::services;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use services::{GrantedService, GrantedServices, NextUpdate};

/// The greatest age without a warning, in seconds: the import runs daily. PortvaktBundleOld (dashboards/alerts.yml) has the same.
const MAX_AGE: u64 = 3 * 86_400;

/// How far the time of the import may lie ahead: another machine may have imported.
const AHEAD: u64 = 3_600;

/// A bundle that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustBundle {
    /// Its folder, or the link to it, as the configuration names it.
    pub path: PathBuf,
    /// When it was imported.
    pub imported: Timestamp,
    /// When the first of its lists is to be replaced; `None` if all of them are closed.
    pub next_update: Option<NextUpdate>,
    /// The services of its anchors.
    pub services: Arc<GrantedServices>,
    /// The anchors of QSealCs and of QWACs, with what the lists say of them (CRT-3).
    pub listed: Arc<ListedAnchors>,
}

/// Reads the bundle that a key names; `None` only after a fault.
pub(super) fn read(value: &Value<'_>, base: &Path) -> Option<TrustBundle> {
    let path = value.path(base)?;
    // A look for changed files sees the files of a folder, and not those of the folders in it.
    for of in Use::ALL {
        value.inspection().names(NamedFile {
            place: value.place().clone(),
            path: path.join(of.folder()),
            secret: false,
        });
    }
    let report = |faults: Vec<String>| {
        for fault in faults {
            value.fault(fault);
        }
    };
    let own = value.inspection().own_users();
    let loaded = load(&path, own).map_err(report).ok()?;
    let LoadedBundle {
        document, listed, ..
    } = loaded;
    let (made, as_of) = (document.made, document.as_of);
    if as_of != made {
        value.weakens(format!(
            "the bundle was imported as of {as_of} (--at): services that were withdrawn since are trusted"
        ));
    }
    for (of, leaves, all) in loaded.leaves {
        value.warn(format!(
            "{leaves} of {all} certificates in {} are no CA's, and are left out: nothing is issued below them, and none may vouch for itself; there is nothing to do",
            path.join(of.folder()).display()
        ));
    }
    if !document.left_out.is_empty() {
        value.warn(format!(
            "{} names services of the lists under left_out ({} of them): a CA of theirs has no anchor, or no key by which it is recognised, so that what it issued may pass below a granted CA above it; portvakt-lists show {} names them",
            path.join(DOCUMENT).display(),
            document.left_out.len(),
            path.display()
        ));
    }
    for fault in &loaded.damaged {
        value.warn(format!(
            "{fault}: this bundle is newer than the one in use, and the next import is refused until it is put back from a copy, or moved out of the folder of bundles"
        ));
    }
    let bundle = TrustBundle {
        path,
        imported: made,
        next_update: NextUpdate::of(&document),
        services: Arc::new(services(document)),
        listed: Arc::new(listed),
    };
    warn_of_age(value, made);
    warn_of_next_update(value, &bundle);
    Some(bundle)
}

/// Warns of a bundle that nobody has replaced for days, as the alert PortvaktBundleOld does.
fn warn_of_age(value: &Value<'_>, imported: Timestamp) {
    let last = Timestamp::from_unix(imported.unix().saturating_add(MAX_AGE));
    let text = format!(
        "the bundle was imported at {imported}, more than 3 days ago: services that were withdrawn since are trusted; fetch the lists and import them"
    );
    value.warn_while(Condition::After(last, text));
}

/// Warns before, and after, the first list is to be replaced, and while the import lies ahead. The anchors serve on: a late list is no
/// reason to refuse every TPP.
fn warn_of_next_update(value: &Value<'_>, bundle: &TrustBundle) {
    let imported = bundle.imported;
    let ahead =
        format!("the bundle was imported at {imported}, which lies ahead: its age is unknown");
    let (not_after, texts) = match &bundle.next_update {
        Some(NextUpdate { at, territory }) => {
            let soon = format!(
                "the list of {territory} is to be replaced by {at}, within 7 days, and its next issue has not been imported: fetch the lists and import them"
            );
            let past = format!(
                "the list of {territory} was to be replaced by {at}: its anchors still serve; fetch the lists and import them"
            );
            (*at, [ahead, soon, past])
        }
        None => (NEVER, [ahead, String::new(), String::new()]),
    };
    let not_before = Timestamp::from_unix(imported.unix().saturating_sub(AHEAD));
    value.warn_while(Condition::Period(Period {
        of: Expiring::Bundle,
        validity: Validity {
            not_before,
            not_after,
        },
        at_end: Level::Soon,
        texts,
    }));
}
