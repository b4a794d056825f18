-- SCA-19: whether a PSU was only learned from the core's answer (1), or bound by the bank's own word (0). Whatever stood
-- here before counts as the bank's word: it is never moved, and POST /psu/unbind takes it back.
-- From here on a last_sca of 0 says that no SCA is known.
ALTER TABLE psu ADD COLUMN learned INTEGER NOT NULL DEFAULT 0;

DROP VIEW psu_sessions;

CREATE VIEW psu_sessions AS
SELECT lower(hex(psu.psu)) AS psu,
    tpp.name AS tpp,
    iif(psu.learned, 'core', 'bank') AS bound_by,
    strftime('%Y-%m-%dT%H:%M:%SZ', nullif(psu.last_sca, 0), 'unixepoch') AS last_sca,
    lower(hex(psu.session)) AS session,
    strftime('%Y-%m-%dT%H:%M:%SZ', psu.completed, 'unixepoch') AS completed,
    strftime('%Y-%m-%dT%H:%M:%SZ', psu.completed + 3600, 'unixepoch') AS expires
FROM psu JOIN tpp ON tpp.id = psu.tpp;

DROP VIEW psu_consents;

CREATE VIEW psu_consents AS
SELECT lower(hex(context.psu)) AS psu,
    tpp.name AS tpp,
    iif(context.corporate = x'', 'PRIVATE', lower(hex(context.corporate))) AS context,
    strftime('%Y-%m-%dT%H:%M:%SZ', nullif(context.last_sca, 0), 'unixepoch') AS last_sca,
    strftime('%Y-%m-%dT%H:%M:%SZ', context.consent, 'unixepoch') AS consent,
    iif(context.consent IS NULL, NULL, coalesce(length(context.accounts) / 16, 'all')) AS accounts
FROM context JOIN psu ON psu.psu = context.psu JOIN tpp ON tpp.id = psu.tpp;
