-- Windows: a bounded number of rows after a given one.

-- At least one row: the clock, joined with the change rows after (revision, n), in one snapshot.
-- name: changes_window --
SELECT clock.epoch, clock.revision, clock.compacted, c.revision, c.n, c.kind, c.key, c.body
FROM clock LEFT JOIN (
    SELECT revision, n, kind, key, body FROM change
    WHERE (revision, n) > (?1, ?2) ORDER BY revision, n LIMIT ?3
) AS c ON TRUE
ORDER BY c.revision, c.n;
