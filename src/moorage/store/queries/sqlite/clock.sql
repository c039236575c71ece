-- The revision, the epoch, the change rows, and the locks of a batch.

-- name: clock_load --
SELECT epoch, revision, compacted FROM clock;

-- Also returns, for the high-water mark, the time of the batch (the parameter), and the formats; and
-- the import that is under way.
-- name: clock_raise --
UPDATE clock SET revision = revision + 1
RETURNING revision, epoch, ?1, minimum_version, newest_version, importing;

-- name: import_load --
SELECT importing FROM clock;

-- name: import_lock --
SELECT importing FROM clock;

-- name: import_write --
UPDATE clock SET importing = ?1 WHERE importing IS ?2;

-- At least the Unix time, so that no epoch is used twice, whichever state was restored.
-- name: epoch_raise --
UPDATE clock SET epoch = MAX(epoch, ?1, CAST(unixepoch() AS INTEGER) - 1) + 1
RETURNING epoch, revision;

-- name: clock_compact --
UPDATE clock SET compacted = MAX(compacted, ?);

-- The revision is the one that this transaction has just taken.
-- name: change_insert --
INSERT INTO change (revision, n, at, kind, key, body)
VALUES ((SELECT revision FROM clock), ?, ?, ?, ?, ?);

-- At least one row: the clock and the time of the given revision, joined with the change rows after
-- (revision, n), in one snapshot. Rows of the excluded kinds are left out, except the first row of
-- each batch, which then comes without its body.
-- name: changes_load --
SELECT clock.epoch, clock.revision, clock.compacted, clock.minimum_version,
    clock.importing, (SELECT at FROM change WHERE revision = ?1 AND n = 0),
    c.revision, c.n, c.at, c.kind, c.key, c.body
FROM clock LEFT JOIN (
    SELECT revision, n, at, kind, key,
        CASE WHEN kind NOT IN (SELECT value FROM json_each(?3)) THEN body END AS body
    FROM change WHERE (revision, n) > (?1, ?2)
        AND (n = 0 OR kind NOT IN (SELECT value FROM json_each(?3)))
    ORDER BY revision, n LIMIT ?4
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- name: changes_delete --
DELETE FROM change WHERE revision > ? AND revision <= ?;

-- The file has one owner and one writer: a writer already has every lock.
-- name: compaction_lock --
SELECT 1;

-- name: ledger_lock --
SELECT 1;

-- name: ledger_share --
SELECT 1;

-- name: structure_lock --
SELECT 1;

-- The stored values of rows that are about to be written, see unknown_members.py.
-- name: inventories_stored --
SELECT uuid, inventories FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: pools_stored --
SELECT name, body FROM pool WHERE name IN (SELECT value FROM json_each(?));

-- name: templates_stored --
SELECT name, body FROM pool_template WHERE name IN (SELECT value FROM json_each(?));

-- name: slots_stored --
SELECT pool, name, body FROM slot WHERE pool IN (SELECT value FROM json_each(?));

-- name: bookings_stored --
SELECT id, body FROM booking WHERE id IN (SELECT value FROM json_each(?));

-- name: leases_stored --
SELECT id, body FROM lease WHERE id IN (SELECT value FROM json_each(?));

-- name: agent_groups_stored --
SELECT name, body FROM agent_group WHERE name IN (SELECT value FROM json_each(?));

-- name: agents_stored --
SELECT uuid, body FROM agent WHERE uuid IN (SELECT value FROM json_each(?));

-- name: reporter_groups_stored --
SELECT name, body FROM reporter_group WHERE name IN (SELECT value FROM json_each(?));

-- name: reporters_stored --
SELECT reporter_group, name, body FROM reporter
WHERE reporter_group IN (SELECT value FROM json_each(?));

-- There are no receipts: the only writer knows how its commits ended.
-- name: receipts_until --
SELECT '';

-- name: receipts_delete --
SELECT 0, COALESCE(?1, ?2, ?3);

-- A page of change rows. At least one row: the clock, joined with the change rows after (revision, n), in one snapshot.
-- name: changes_window --
SELECT clock.epoch, clock.revision, clock.compacted, c.revision, c.n, c.kind, c.key, c.body, c.at
FROM clock LEFT JOIN (
    SELECT revision, n, kind, key, body, at FROM change
    WHERE (revision, n) > (?1, ?2) ORDER BY revision, n LIMIT ?3
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- The writing connection has locked the whole file, so there is nothing to lock.
-- name: service_clock_lock --
SELECT skew, downtime, alive_at, outage_ended_at FROM service_clock;

-- name: service_clock_load --
SELECT skew, downtime, alive_at, outage_ended_at FROM service_clock;

-- name: service_clock_update --
UPDATE service_clock SET skew = ?, downtime = ?, alive_at = ?, outage_ended_at = ?;
