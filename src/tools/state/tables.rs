//! The tables that `portvakt state copy` copies, and how each is read from the file.

/// The type of a column in PostgreSQL.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    Uuid,
    Integer,
    Boolean,
    Bytes,
    Text,
}

/// A table: its name in both, its columns in PostgreSQL, and the query of the file. The first columns are the key.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, ColumnType)],
    pub(super) key: &'static str,
    pub(super) from_file: &'static str,
}

/// The tables that are copied, in this order.
pub(super) const TABLES: [Table; 9] = [
    Table {
        name: "psu",
        columns: &[
            ("psu", ColumnType::Uuid),
            ("tpp", ColumnType::Text),
            ("learned", ColumnType::Boolean),
            ("last_sca", ColumnType::Integer),
            ("session", ColumnType::Uuid),
            ("completed", ColumnType::Integer),
            ("customer", ColumnType::Uuid),
            ("pseudonym", ColumnType::Bytes),
            ("ended", ColumnType::Integer),
        ],
        key: "psu",
        from_file: "SELECT psu.psu, tpp.name, psu.learned, nullif(psu.last_sca, 0), psu.session, psu.completed,
            psu.customer, psu.pseudonym, psu.ended FROM psu JOIN tpp ON tpp.id = psu.tpp ORDER BY psu.psu",
    },
    Table {
        name: "context",
        columns: &[
            ("psu", ColumnType::Uuid),
            ("corporate", ColumnType::Bytes),
            ("last_sca", ColumnType::Integer),
            ("consent", ColumnType::Integer),
            ("accounts", ColumnType::Bytes),
            ("origin", ColumnType::Integer),
            ("used", ColumnType::Integer),
        ],
        key: "psu, corporate",
        from_file: "SELECT psu, corporate, nullif(last_sca, 0), consent, accounts, origin, used
            FROM context ORDER BY psu, corporate",
    },
    Table {
        name: "quota",
        columns: &[
            ("key", ColumnType::Uuid),
            ("a", ColumnType::Integer),
            ("b", ColumnType::Integer),
            ("c", ColumnType::Integer),
            ("d", ColumnType::Integer),
        ],
        key: "key",
        from_file: "SELECT key, a, b, c, d FROM quota ORDER BY key",
    },
    Table {
        name: "page",
        columns: &[
            ("key", ColumnType::Uuid),
            ("call", ColumnType::Integer),
            ("last", ColumnType::Integer),
        ],
        key: "key",
        from_file: "SELECT key, call, last FROM page ORDER BY key",
    },
    Table {
        name: "request",
        columns: &[("key", ColumnType::Uuid), ("until", ColumnType::Integer)],
        key: "key",
        from_file: "SELECT key, until FROM request ORDER BY key",
    },
    Table {
        name: "token",
        columns: &[
            ("key", ColumnType::Uuid),
            ("said", ColumnType::Uuid),
            ("until", ColumnType::Integer),
        ],
        key: "key",
        from_file: "SELECT key, said, until FROM token ORDER BY key",
    },
    Table {
        name: "block",
        columns: &[
            ("key", ColumnType::Uuid),
            ("tpp", ColumnType::Text),
            ("scope", ColumnType::Text),
            ("psu", ColumnType::Uuid),
            ("reason", ColumnType::Text),
            ("since", ColumnType::Integer),
            ("until", ColumnType::Integer),
        ],
        key: "key",
        from_file: "SELECT key, tpp, scope, psu, reason, since, until FROM block ORDER BY key",
    },
    Table {
        name: "moved",
        columns: &[
            ("key", ColumnType::Uuid),
            ("tpp", ColumnType::Text),
            ("now", ColumnType::Text),
            ("since", ColumnType::Integer),
        ],
        key: "key",
        from_file: "SELECT key, tpp, now, since FROM moved ORDER BY key",
    },
    Table {
        name: "event",
        columns: &[
            ("sequence", ColumnType::Integer),
            ("at", ColumnType::Integer),
            ("kind", ColumnType::Text),
            ("tpp", ColumnType::Text),
            ("customer", ColumnType::Bytes),
            ("corporate", ColumnType::Boolean),
            ("accounts", ColumnType::Integer),
            ("until", ColumnType::Integer),
            ("detail", ColumnType::Text),
        ],
        key: "sequence",
        from_file: "SELECT sequence, at, kind, tpp, customer, corporate, accounts, until, detail FROM event ORDER BY sequence",
    },
];
