-- The revision, the epoch, the change rows, and the locks of a batch. Each of the two clocks is one row,
-- read from the end of its index and moved there with every version, so that versions which an open
-- snapshot keeps are not passed on the way (decision 0019).

-- name: clock_load --
SELECT epoch, revision, compacted FROM clock_now;

-- name: beginning_load --
SELECT at FROM beginning;

-- Also tells when the batch is written, as it was asked, for the mark, and the formats of the rows.
-- name: clock_raise --
UPDATE clock SET id = id + 1, revision = revision + 1
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING revision, epoch, $1::bigint, minimum_version, newest_version;

-- At least the time in seconds, so that no epoch comes twice, whatever was put back.
-- name: epoch_raise --
UPDATE clock
SET epoch = GREATEST(epoch, $1::bigint, floor(extract(epoch FROM clock_timestamp()))::bigint - 1) + 1
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING epoch, revision;

-- name: clock_compact --
UPDATE clock SET compacted = GREATEST(compacted, r.reached)
FROM unnest($1::bigint[]) AS r(reached) WHERE id >= (SELECT MAX(id) FROM clock);

-- The revision is the one that this transaction has just raised.
-- name: change_insert --
INSERT INTO change (revision, n, at, kind, key, body)
SELECT clock_now.revision, r.n, r.at, r.kind, r.key, r.body
FROM clock_now, unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[])
    AS r(n, at, kind, key, body);

-- One row at least: the clock, when the given revision was written, and the change rows after
-- (revision, n) beside it, in one snapshot: without those of some kinds, except that of each batch the
-- first row is there, whose body is left out if it is of such a kind.
-- name: changes_load --
SELECT clock.epoch, clock.revision, clock.compacted, clock.minimum_version,
    (SELECT at FROM change WHERE revision = $1 AND n = 0),
    c.revision, c.n, c.at, c.kind, c.key, c.body
FROM clock_now AS clock LEFT JOIN (
    SELECT revision, n, at, kind, key,
        CASE WHEN kind <> ALL (ARRAY(SELECT json_array_elements_text($3))) THEN body END AS body
    FROM change WHERE (revision, n) > ($1, $2)
        AND (n = 0 OR kind <> ALL (ARRAY(SELECT json_array_elements_text($3))))
    ORDER BY revision, n LIMIT $4
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- name: change_time --
SELECT at FROM change WHERE revision = $1 AND n = 0;

-- name: changes_count --
SELECT COUNT(*) FROM change WHERE revision > $1 AND revision <= $2;

-- From where the last ones were forgotten: what an open snapshot keeps of those is not passed again.
-- name: changes_delete --
DELETE FROM change USING unnest($1::bigint[], $2::bigint[]) AS r(compacted, reached)
WHERE revision > r.compacted AND revision <= r.reached;

-- name: changes_wipe --
DELETE FROM change;

-- One process at a time forgets change rows.
-- name: compaction_lock --
SELECT pg_try_advisory_xact_lock(778, 3);

-- Whoever locks consumers or providers holds it shared. Who holds it alone meets no half of
-- anything: to delete a class or a trait that others may begin to use, to rename a class.
-- name: ledger_lock --
SELECT pg_advisory_xact_lock(778, 1);

-- Who locks names and trees takes this first, as whoever locks rows does by itself.
-- name: ledger_share --
SELECT pg_advisory_xact_lock_shared(778, 1);

-- Names and trees are looked at and changed by one transaction at a time: no row's lock could keep
-- others from adding a child or a name.
-- name: structure_lock --
SELECT pg_advisory_xact_lock(778, 2);

-- What is stored of rows that are written again, as it is: see unknown_members.py.
-- name: inventories_stored --
SELECT uuid, inventories FROM provider
WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: pools_stored --
SELECT name, body FROM pool WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: slots_stored --
SELECT pool, name, body FROM slot WHERE pool = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: leases_stored --
SELECT id, body FROM lease WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- Nobody asks for a receipt that is an hour old.
-- name: receipts_until --
SELECT (now() - interval '1 hour')::text;

-- name: receipts_delete --
WITH gone AS (
    DELETE FROM batch WHERE id = ANY (ARRAY(
        SELECT id FROM batch
        WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz
        ORDER BY created_at LIMIT $3
    )) RETURNING created_at
)
SELECT COUNT(*), MAX(created_at)::text FROM gone;
