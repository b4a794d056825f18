-- CTL-1: the bank's own key for its customer, as a hash, and the first second of the last day (UTC) on which the TPP used a context.
ALTER TABLE psu ADD COLUMN customer BLOB;
ALTER TABLE context ADD COLUMN used INTEGER;

CREATE INDEX psu_customer ON psu (customer) WHERE customer IS NOT NULL;

-- CTL-4: TPPs that have another identity now, by the bank's word.
CREATE TABLE moved (
    key BLOB PRIMARY KEY,
    tpp TEXT NOT NULL,
    now TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW tpp_moves AS
SELECT tpp, now, strftime('%Y-%m-%dT%H:%M:%SZ', since, 'unixepoch') AS since FROM moved;
