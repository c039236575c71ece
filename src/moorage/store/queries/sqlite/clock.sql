-- The revision, the epoch, the change rows, and the locks of a batch.

-- name: clock_load --
SELECT epoch, revision, compacted FROM clock;

-- name: beginning_load --
SELECT at FROM beginning;

-- name: clock_raise --
UPDATE clock SET revision = revision + 1 RETURNING revision, epoch;

-- name: clock_compact --
UPDATE clock SET compacted = MAX(compacted, ?);

-- The revision is the one that this transaction has just raised.
-- name: change_insert --
INSERT INTO change (revision, n, at, kind, key, body)
VALUES ((SELECT revision FROM clock), ?, ?, ?, ?, ?);

-- One row at least: the clock, and the change rows after (revision, n) beside it, in one snapshot:
-- those of some kinds, and the first of each batch, whose body is left out if it is of another kind.
-- name: changes_load --
SELECT clock.epoch, clock.revision, clock.compacted, c.revision, c.n, c.at, c.kind, c.key, c.body
FROM clock LEFT JOIN (
    SELECT revision, n, at, kind, key,
        CASE WHEN kind IN (SELECT value FROM json_each(?3)) THEN body END AS body
    FROM change WHERE (revision, n) > (?1, ?2)
        AND (n = 0 OR kind IN (SELECT value FROM json_each(?3)))
    ORDER BY revision, n LIMIT ?4
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- name: change_time --
SELECT at FROM change WHERE revision = ?1 AND n = 0;

-- The newest revision that is old enough; revisions and times rise together.
-- name: change_before --
SELECT revision FROM change WHERE at < ? ORDER BY revision DESC, n DESC LIMIT 1;

-- name: change_at_rank --
SELECT revision FROM change ORDER BY revision DESC, n DESC LIMIT 1 OFFSET ?;

-- name: changes_delete --
DELETE FROM change WHERE revision <= ?;

-- name: changes_wipe --
DELETE FROM change;

-- The file has one owner and one writer: whoever writes holds every lock already.
-- name: compaction_lock --
SELECT 1;

-- name: ledger_lock --
SELECT 1;

-- name: structure_lock --
SELECT 1;
