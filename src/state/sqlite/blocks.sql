-- CTL-2: TPPs that the bank blocks by a call. A PSU is a hash, as everywhere; a reason is the bank's own text.
CREATE TABLE block (
    key BLOB PRIMARY KEY,
    tpp TEXT NOT NULL,
    scope TEXT NOT NULL,
    psu BLOB,
    reason TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER
) STRICT, WITHOUT ROWID;

CREATE VIEW tpp_blocks AS
SELECT tpp, scope, lower(hex(psu)) AS psu, reason,
    strftime('%Y-%m-%dT%H:%M:%SZ', since, 'unixepoch') AS since,
    strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS until
FROM block;
