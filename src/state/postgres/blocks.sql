-- CTL-2: TPPs that the bank blocks by a call. A PSU is a hash, as everywhere; a reason is the bank's own text. A change of kind 2 in the
-- table of changes says that a row here changed.
CREATE TABLE block (
    key uuid PRIMARY KEY,
    tpp text NOT NULL,
    scope text NOT NULL,
    psu uuid,
    reason text NOT NULL,
    since bigint NOT NULL,
    until bigint
);

CREATE VIEW tpp_blocks AS
SELECT tpp, scope, psu, reason, to_timestamp(since) AS since, to_timestamp(until) AS until FROM block;
