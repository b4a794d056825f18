//! The default folder of the files that the gateway makes.

use crate::interface::operations::Environment;
use std::path::Path;

/// The folder that packages and systemd's `StateDirectory=portvakt` make.
const SYSTEM: &str = "/var/lib/portvakt";

/// The same for the sandbox: one state for both environments would let test calls use up ids and consents of production (CRT-9).
const SYSTEM_SANDBOX: &str = "/var/lib/portvakt/sandbox";

/// The folder beside that of the configuration.
const BESIDE: &str = "../state";

/// The state.
pub(super) const FILE: &str = "portvakt.db";

/// The key of its hashes.
pub(super) const HASH_KEY: &str = "hash.key";

/// The keys of SCA tokens.
pub(super) const TOKEN_KEYS: &str = "sca-token.keys";

/// The default folder, relative to the folder `base` of the configuration: `/var/lib/portvakt` where it exists, or `sandbox` in it. A
/// folder `../state` goes first, because a gateway that has its state there must not begin anew.
pub(super) fn default(base: &Path, environment: Environment) -> &'static str {
    choose(base, Path::new(SYSTEM), environment)
}

fn choose(base: &Path, system: &Path, environment: Environment) -> &'static str {
    if !system.is_dir() || base.join(BESIDE).exists() {
        return BESIDE;
    }
    match environment {
        Environment::Production => SYSTEM,
        Environment::Sandbox => SYSTEM_SANDBOX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_exists_stays_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (base, system) = (folder.path().join("etc"), folder.path().join("lib"));
        let choose = |environment| choose(&base, &system, environment);
        assert_eq!(choose(Environment::Production), BESIDE);
        for made in [&base, &system] {
            std::fs::create_dir(made).unwrap();
        }
        assert_eq!(choose(Environment::Production), SYSTEM);
        assert_eq!(choose(Environment::Sandbox), SYSTEM_SANDBOX);
        std::fs::create_dir(folder.path().join("state")).unwrap();
        assert_eq!(choose(Environment::Production), BESIDE);
    }
}
