-- CTL-1: the bank's own key for its customer, as a hash, and the first second of the last day (UTC) on which the TPP used a context.
ALTER TABLE psu ADD COLUMN customer uuid;
ALTER TABLE context ADD COLUMN used bigint;

CREATE INDEX psu_customer ON psu (customer) WHERE customer IS NOT NULL;

-- CTL-4: TPPs that have another identity now, by the bank's word. A change of kind 2 in the table of changes is also one of a row here.
CREATE TABLE moved (
    key uuid PRIMARY KEY,
    tpp text NOT NULL,
    now text NOT NULL,
    since bigint NOT NULL
);

CREATE VIEW tpp_moves AS SELECT tpp, now, to_timestamp(since) AS since FROM moved;
