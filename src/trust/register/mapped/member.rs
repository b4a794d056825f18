//! What a row of a register can say, and where that comes from.

use portvakt_base::values;

values! {
    /// What a column or a constant can say of an institution.
    pub enum Member {
        /// The whole identity, as certificates have it: `PSDNO-FSA-123456`.
        Tpp = "tpp",
        /// The country of the authority, two letters.
        Country = "country",
        /// The authority, as certificates name it.
        Authority = "authority",
        /// The id that the authority gave.
        Id = "id",
        /// The name. Without this member the register names nobody.
        Name = "name",
        /// The roles.
        Roles = "roles",
        /// The countries in which it may act. Without this member it may everywhere.
        Countries = "countries",
        /// The state of the authorisation. Without this member every entry is authorised.
        Status = "status",
        /// The date of the entry's last change, from which the register's date is made.
        Changed = "changed",
    }
}

/// Where a member comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A column of CSV; a member of JSON, with a dot before each inner one.
    Column(String),
    /// The same text for every row.
    Constant(String),
}

/// The texts of a row, by the places of the members in [`Mapping::origins`](super::Mapping::origins).
pub(super) type Texts = Vec<Vec<String>>;
