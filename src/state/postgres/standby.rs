//! Whether commits wait for a synchronous standby, by the settings of the server.

/// The fault of a server whose commits do not wait for a standby although they must.
pub(super) fn refusal(reason: &str) -> String {
    format!("state.postgres.require_sync: {reason}")
}

/// Why commits do not wait for a standby; `None` if they do.
pub(super) fn unsafe_commits(commit: &str, standbys: &str) -> Option<String> {
    weak_commits(commit).or_else(|| {
        let is_empty = standbys.trim().is_empty();
        is_empty.then(|| "synchronous_standby_names is empty".to_owned())
    })
}

/// Why the commits of a connection do not wait for a standby, whatever standbys there are.
pub(super) fn weak_commits(commit: &str) -> Option<String> {
    let is_strong = ["on", "remote_apply"].contains(&commit);
    (!is_strong).then(|| format!("synchronous_commit is {commit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_safe_with_a_standby_and_synchronous_commit_only() {
        for (commit, standbys, safe) in [
            ("on", "s1", true),
            ("remote_apply", "ANY 1 (s1, s2)", true),
            ("on", "", false),
            ("on", " ", false),
            ("local", "s1", false),
            ("remote_write", "s1", false),
            ("off", "s1", false),
        ] {
            assert_eq!(unsafe_commits(commit, standbys).is_none(), safe, "{commit}");
        }
    }
}
