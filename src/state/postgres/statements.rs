//! The statements of the engine, prepared once for each connection.
//!
//! Deliberately not here: the order of statements in a transaction (`batch.rs`).

use std::pin::Pin;
use tokio_postgres::{Client, Error, Statement};

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        /// The prepared statements of a connection.
        pub(super) struct Statements {
            $($(#[$doc])* pub(super) $name: Statement,)*
        }

        impl Statements {
            /// Prepares all of them in one round trip.
            pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
                let ($($name,)*) = tokio::try_join!($(preparing(client, $sql)),*)?;
                Ok(Self { $($name),* })
            }
        }
    };
}

/// On the heap: all of them at once would fill the stack of a thread.
fn preparing<'a>(
    client: &'a Client,
    sql: &'a str,
) -> Pin<Box<dyn Future<Output = Result<Statement, Error>> + Send + 'a>> {
    Box::pin(client.prepare(sql))
}

/// Visits the rows from one key on, and removes those that are due. A row that a transaction holds is left for the next time.
macro_rules! step {
    ($table:literal, $due:literal) => {
        concat!(
            "WITH visited AS (SELECT key, (",
            $due,
            ") AS due FROM ",
            $table,
            " WHERE key >= $1 ORDER BY key LIMIT $3),
            due AS (SELECT key FROM ",
            $table,
            " WHERE key IN (SELECT key FROM visited WHERE due) AND (",
            $due,
            ")
                FOR UPDATE SKIP LOCKED),
            removed AS (DELETE FROM ",
            $table,
            " USING due WHERE ",
            $table,
            ".key = due.key RETURNING 1)
            SELECT (SELECT count(*) FROM visited), (SELECT count(*) FROM removed),
                (SELECT key FROM visited ORDER BY key DESC LIMIT 1)"
        )
    };
}

/// PSUs with their contexts: one row for each context, or one without.
macro_rules! joined_psus {
    ($which:literal) => {
        concat!(
            "SELECT psu.psu, psu.tpp, psu.learned, psu.last_sca, psu.session, psu.completed, psu.customer,
                psu.pseudonym, psu.ended, context.corporate, context.last_sca, context.consent, context.accounts, context.origin, context.used
            FROM psu LEFT JOIN context ON context.psu = psu.psu WHERE ",
            $which,
            " ORDER BY psu.psu, context.corporate"
        )
    };
}

/// A row, if the database has a proof, or a later one of the same connection.
pub(super) const PROOF: &str =
    "SELECT 1 FROM heartbeat WHERE id = $1 AND (extract(epoch FROM at) * 1000000)::bigint >= $2";

statements! {
    // Rows are locked in the order of their keys, and tables in this order, so that two transactions never wait for each other.
    load_quotas = "SELECT key, a, b, c, d FROM quota WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    load_lists = "SELECT key, call, last FROM page WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    load_requests = "SELECT key, until FROM request WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    load_tokens = "SELECT key, said, until FROM token WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    load_psus = "SELECT psu, tpp, learned, last_sca, session, completed, customer, pseudonym, ended FROM psu
        WHERE psu = ANY($1) ORDER BY psu FOR UPDATE";
    /// A statement of its own after the lock: it sees the contexts that the earlier holder of the lock committed.
    load_contexts = "SELECT psu, corporate, last_sca, consent, accounts, origin, used FROM context
        WHERE psu = ANY($1) ORDER BY psu, corporate";

    load_blocks = "SELECT key, tpp, scope, psu, reason, since, until FROM block WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    load_moves = "SELECT key, tpp, now, since FROM moved WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    /// Before all moves are read for a change of them: another transaction that would change one waits.
    lock_moves = "LOCK TABLE moved IN SHARE ROW EXCLUSIVE MODE";
    /// Every TPP that has another identity now.
    moves = "SELECT key, tpp, now, since FROM moved";
    /// Every block of a TPP.
    blocks = "SELECT key, tpp, scope, psu, reason, since, until FROM block";

    // Without ON CONFLICT: where another transaction added the row since it was looked for, this one fails, and decides again.
    add_quotas = "INSERT INTO quota SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])";
    set_quotas = "UPDATE quota SET a = n.a, b = n.b, c = n.c, d = n.d
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS n (key, a, b, c, d)
        WHERE quota.key = n.key";
    remove_quotas = "DELETE FROM quota WHERE key = ANY($1)";
    add_lists = "INSERT INTO page SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])";
    set_lists = "UPDATE page SET call = n.call, last = n.last
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS n (key, call, last) WHERE page.key = n.key";
    remove_lists = "DELETE FROM page WHERE key = ANY($1)";
    add_requests = "INSERT INTO request SELECT * FROM unnest($1::uuid[], $2::bigint[])";
    set_requests = "UPDATE request SET until = n.until
        FROM unnest($1::uuid[], $2::bigint[]) AS n (key, until) WHERE request.key = n.key";
    remove_requests = "DELETE FROM request WHERE key = ANY($1)";
    add_tokens = "INSERT INTO token SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[])";
    set_tokens = "UPDATE token SET said = n.said, until = n.until
        FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS n (key, said, until) WHERE token.key = n.key";
    remove_tokens = "DELETE FROM token WHERE key = ANY($1)";
    add_psus = "INSERT INTO psu SELECT * FROM
        unnest($1::uuid[], $2::text[], $3::boolean[], $4::bigint[], $5::uuid[], $6::bigint[], $7::uuid[], $8::bytea[], $9::bigint[])";
    set_psus = "UPDATE psu SET tpp = n.tpp, learned = n.learned, last_sca = n.last_sca, session = n.session, completed = n.completed,
            customer = n.customer, pseudonym = n.pseudonym, ended = n.ended
        FROM unnest($1::uuid[], $2::text[], $3::boolean[], $4::bigint[], $5::uuid[], $6::bigint[], $7::uuid[], $8::bytea[], $9::bigint[])
            AS n (psu, tpp, learned, last_sca, session, completed, customer, pseudonym, ended)
        WHERE psu.psu = n.psu";
    remove_psus = "DELETE FROM psu WHERE psu = ANY($1)";
    remove_contexts = "DELETE FROM context WHERE psu = ANY($1)";
    add_contexts = "INSERT INTO context SELECT * FROM
        unnest($1::uuid[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bigint[], $7::bigint[])";
    add_blocks = "INSERT INTO block SELECT * FROM
        unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[])";
    set_blocks = "UPDATE block SET tpp = n.tpp, scope = n.scope, psu = n.psu, reason = n.reason, since = n.since, until = n.until
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[])
            AS n (key, tpp, scope, psu, reason, since, until)
        WHERE block.key = n.key";
    remove_blocks = "DELETE FROM block WHERE key = ANY($1)";
    add_moves = "INSERT INTO moved SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[])";
    set_moves = "UPDATE moved SET tpp = n.tpp, now = n.now, since = n.since
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[]) AS n (key, tpp, now, since) WHERE moved.key = n.key";
    remove_moves = "DELETE FROM moved WHERE key = ANY($1)";
    /// CTL-3. The row of `outbox` is locked until the commit.
    add_events = "WITH taken AS (UPDATE outbox SET last = last + cardinality($1::bigint[])
            RETURNING last - cardinality($1::bigint[]) AS before)
        INSERT INTO event (sequence, at, kind, tpp, customer, corporate, accounts, until, detail)
        SELECT taken.before + n.number, n.at, n.kind, n.tpp, n.customer, n.corporate, n.accounts, n.until, n.detail
        FROM taken, unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::boolean[], $6::bigint[], $7::bigint[], $8::text[])
            WITH ORDINALITY AS n (at, kind, tpp, customer, corporate, accounts, until, detail, number)";
    /// At least one row.
    events = "SELECT outbox.stream, outbox.last, outbox.pruned, news.sequence, news.at, news.kind, news.tpp, news.customer, news.corporate,
            news.accounts, news.until, news.detail
        FROM outbox LEFT JOIN (SELECT * FROM event WHERE sequence > $1 ORDER BY sequence LIMIT $2) AS news ON true
        ORDER BY news.sequence";
    ended = "SELECT psu FROM psu WHERE ended IS DISTINCT FROM last_sca AND last_sca <= $1 ORDER BY last_sca LIMIT $2";
    prune_events = "WITH oldest AS (SELECT sequence, at FROM event ORDER BY sequence LIMIT $3),
        judged AS (SELECT oldest.sequence, oldest.sequence <= outbox.last - $2 OR oldest.at <= $1 AS is_due FROM oldest, outbox),
        gone AS (SELECT coalesce(min(sequence) FILTER (WHERE NOT is_due) - 1, max(sequence)) AS through FROM judged),
        removed AS (DELETE FROM event USING gone WHERE event.sequence <= gone.through)
        UPDATE outbox SET pruned = gone.through FROM gone WHERE gone.through > outbox.pruned";
    log_changes = "INSERT INTO change (kind, key) SELECT * FROM unnest($1::smallint[], $2::uuid[])";
    commit = "COMMIT";
    /// COMMIT neither waits for the disk nor for the standby.
    commit_soon = "SET LOCAL synchronous_commit = off";
    /// A row, if the server's process has found a standby to wait for and has read no other settings since this time. A process has read
    /// those without a standby before its wait for the standby is ended by them.
    waited = "SELECT 1 WHERE current_setting('synchronous_standby_names') ~ '[^[:space:]]'
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AND pg_conf_load_time()::text = $1";
    /// After the rows that a decision or an answer rests on: each statement sees what was committed before it, so that the rows were of
    /// this level too.
    key_checks = "SELECT value, (SELECT value FROM meta WHERE name = 'customer_key_check') FROM meta WHERE name = 'key_check'";
    notify = "SELECT pg_notify('portvakt_change', '')";
    attempt = "INSERT INTO attempt (id, committed) VALUES ($1, true)";
    /// Always writes, so that the answer too is on the standby: an attempt that was committed here alone is not yet "committed".
    ask = "INSERT INTO attempt (id, committed) VALUES ($1, false)
        ON CONFLICT (id) DO UPDATE SET asked = attempt.asked + 1 RETURNING committed";
    keep_clock = "UPDATE clock SET latest = greatest(latest, $1) WHERE accepted = $2 AND latest < $1";

    /// One statement, so that the PSU and its contexts are of one moment.
    psu = joined_psus!("psu.psu = $1");
    /// CTL-1: PSUs of a customer of the bank, in the order of their hashes, from one on.
    psus_of_customer = joined_psus!("psu.psu IN (SELECT psu FROM psu WHERE customer = $1 AND psu > $2 ORDER BY psu LIMIT $3)");

    /// Adds a row to the table that every transaction adds one to, because an update succeeds on a full disk. Where the database lacks the
    /// last proof it writes nothing: a state that was replaced must not look like the right one if the answer is lost.
    beat = "WITH known AS (SELECT WHERE $2::uuid IS NULL OR EXISTS (
            SELECT FROM heartbeat WHERE id = $2 AND (extract(epoch FROM at) * 1000000)::bigint >= $3::bigint)),
        proof AS (INSERT INTO attempt (id, committed) SELECT gen_random_uuid(), true FROM known)
        INSERT INTO heartbeat (id) SELECT $1::uuid FROM known
        ON CONFLICT (id) DO UPDATE SET at = greatest(heartbeat.at, now())
        RETURNING (extract(epoch FROM at) * 1000000)::bigint";
    follow_clock = "UPDATE clock SET latest = greatest(latest, $1), stepped_back = stepped_back OR $2
        WHERE accepted = $3 AND (latest + 3600 <= $1 OR $2 AND NOT stepped_back)";
    standing = "SELECT latest, stepped_back, accepted, current_setting('synchronous_commit'),
            current_setting('synchronous_standby_names'), (SELECT value FROM meta WHERE name = 'customer_key_check') FROM clock";
    /// The snapshot of this statement, the time of the database's clock, and the changes that the snapshot $1 did not have: those of
    /// transactions that had not ended or not begun. At least one row, and at most $2 changes of each.
    changes = "SELECT position.snapshot, position.at, news.kind, news.key
        FROM (SELECT pg_current_snapshot()::text AS snapshot, extract(epoch FROM now())::bigint AS at) AS position
        LEFT JOIN (
            (SELECT kind, key FROM change WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) ORDER BY xid LIMIT $2)
            UNION ALL
            (SELECT kind, key FROM change WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
                ORDER BY xid LIMIT $2)
        ) AS news ON true";

    step_quota = step!("quota", "coalesce(a, 0) <= $2 AND coalesce(b, 0) <= $2 AND coalesce(c, 0) <= $2 AND coalesce(d, 0) <= $2");
    step_page = step!("page", "call <= $2");
    step_request = step!("request", "until <= $2");
    step_token = step!("token", "until <= $2");
    /// A block without an end has none that is due.
    step_block = step!("block", "until <= $2");
    /// PSUs are only counted: the second number is that of valid sessions.
    count_psus = "WITH visited AS (SELECT psu, completed FROM psu WHERE psu >= $1 ORDER BY psu LIMIT $3)
        SELECT (SELECT count(*) FROM visited), (SELECT count(*) FROM visited WHERE completed > $2),
            (SELECT psu FROM visited ORDER BY psu DESC LIMIT 1)";
}
