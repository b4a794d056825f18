//! The default folder of the files that the gateway makes.

use std::path::Path;

/// The folder that packages and systemd's `StateDirectory=portvakt` make.
const SYSTEM: &str = "/var/lib/portvakt";

/// The folder beside that of the configuration.
const BESIDE: &str = "../state";

/// The state.
pub(super) const FILE: &str = "portvakt.db";

/// The key of its hashes.
pub(super) const HASH_KEY: &str = "hash.key";

/// The keys of SCA tokens.
pub(super) const TOKEN_KEYS: &str = "sca-token.keys";

/// The default folder, relative to the folder `base` of the configuration: `/var/lib/portvakt` where it exists. A folder `../state` goes
/// first, because a gateway that has its state there must not begin anew.
pub(super) fn default(base: &Path) -> &'static str {
    choose(base, Path::new(SYSTEM))
}

fn choose(base: &Path, system: &Path) -> &'static str {
    if system.is_dir() && !base.join(BESIDE).exists() {
        SYSTEM
    } else {
        BESIDE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_exists_stays_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (base, system) = (folder.path().join("etc"), folder.path().join("lib"));
        assert_eq!(choose(&base, &system), BESIDE);
        for made in [&base, &system] {
            std::fs::create_dir(made).unwrap();
        }
        assert_eq!(choose(&base, &system), SYSTEM);
        std::fs::create_dir(folder.path().join("state")).unwrap();
        assert_eq!(choose(&base, &system), BESIDE);
    }
}
