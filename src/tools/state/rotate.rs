//! `portvakt state rotate-hash-key`: gives the hash key of the state a next level.
//!
//! The key file gets a further key before a row is rewritten, and the rows move in one transaction. An interrupted command is run again: it
//! goes on with the key that is there. Invariant: a key in the file never changes. Deliberately not here: which columns have hashes
//! (`src/state/rotation.rs`).

use super::fault::StateFault;
use crate::state::{
    EngineSettings, OpenFault, StateSettings,
    postgres::maintain::Maintenance,
    rotation::{self, Levels, Rotated},
    sqlite::rotate,
};
use std::fmt::Write;

/// What the command does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Say what it would do.
    Plan,
    /// Add the next key to the file.
    Prepare,
    /// Add it, and move the state.
    Rotate,
}

impl Wanted {
    pub(super) const fn new(prepare: bool, yes: bool) -> Self {
        match (prepare, yes) {
            (true, _) => Self::Prepare,
            (false, true) => Self::Rotate,
            (false, false) => Self::Plan,
        }
    }
}

/// Runs the command on the state of the settings.
///
/// # Errors
/// The reason: the state is as before, and the file has at most one key more.
pub(super) fn run(settings: &StateSettings, wanted: Wanted) -> Result<String, StateFault> {
    let done = match &settings.engine {
        EngineSettings::Sqlite => steps(
            settings,
            wanted,
            || rotate::levels(settings),
            |levels| rotate::rotate(settings, levels),
        ),
        EngineSettings::Postgres(server) => {
            let database = Maintenance::open_existing(settings, server)?;
            steps(
                settings,
                wanted,
                || database.levels(settings),
                |levels| database.rotate(settings, levels),
            )
        }
    };
    Ok(done?)
}

fn steps(
    settings: &StateSettings,
    wanted: Wanted,
    levels: impl FnOnce() -> Result<Levels, OpenFault>,
    rotate: impl FnOnce(Levels) -> Result<Rotated, OpenFault>,
) -> Result<String, OpenFault> {
    let levels = levels()?;
    let mut said = found(settings, levels);
    match wanted {
        Wanted::Plan => {
            said += known_since(rotation::has_next(settings, levels)?);
            said += PLAN;
        }
        Wanted::Prepare => {
            rotation::prepare(settings, levels)?;
            said += match levels.keys > levels.state {
                true => "the file has the next key already: nothing changed\n",
                false => "added the next key to the file\n",
            };
            said += PREPARED;
        }
        Wanted::Rotate => {
            said += known_since(rotation::has_next(settings, levels)?);
            rotation::prepare(settings, levels)?;
            said += &rotated(settings, &rotate(levels)?);
        }
    }
    Ok(said)
}

const PLAN: &str = "would add a key to the file unless it has the next one, and rewrite every row with a hash in one transaction. Running gateways refuse \
requests that need the state from then on, until they are restarted.\nNothing changed: --yes rotates, --prepare only adds the key\n";

/// What a key that was there already means.
const fn known_since(has_next: bool) -> &'static str {
    match has_next {
        true => {
            "the file has the next key already: who has read the file since it was added knows it. After a leak since then rotate twice: a second rotation \
gets a new key\n"
        }
        false => "",
    }
}

const PREPARED: &str = "next: copy the file to the machine of every gateway of this state, keep a copy with the backups, then run the command with \
--yes on one machine\n";

fn found(settings: &StateSettings, levels: Levels) -> String {
    format!(
        "the state has level {}, and {} has keys for {}\n",
        levels.state,
        settings.hash_key.display(),
        levels.keys
    )
}

fn rotated(settings: &StateSettings, rotated: &Rotated) -> String {
    let mut text = String::new();
    for (table, rows) in &rotated.rows {
        let _ = writeln!(text, "{table:<10} {rows:>12} rows rewritten");
    }
    let _ = writeln!(
        text,
        "the state had level {}, and has level {} now\nnext: restart every gateway of this state, and keep {} with the backups",
        rotated.from,
        rotated.to,
        settings.hash_key.display()
    );
    if rotated.may_lack_standby {
        text += "the wait for the standby was cancelled: do not promote it before it has caught up, or it has the level before\n";
    }
    text += match (&settings.engine, rotated.log_is_empty) {
        (EngineSettings::Sqlite, true) => {
            "then run `portvakt state vacuum`: space that was free before may hold hashes of earlier levels\n"
        }
        (EngineSettings::Sqlite, false) => {
            "then run `portvakt state vacuum`: the log was in use and holds hashes of earlier levels, and so may space that was free\n"
        }
        (EngineSettings::Postgres(_), _) => {
            "then take a new base backup: archives of the write-ahead log and earlier backups hold hashes of earlier levels\n"
        }
    };
    text
}
