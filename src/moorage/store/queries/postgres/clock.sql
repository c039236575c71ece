-- The revision, the epoch, the change rows, and the locks of a batch. Each of the two clocks is one
-- row. Each update raises its id, and reads begin at the end of the index, so that they do not scan
-- old versions that an open snapshot keeps (decision 0019).

-- name: clock_load --
SELECT epoch, revision, compacted FROM clock_now;

-- Also returns, for the high-water mark, the time of the batch (the parameter), and the formats; and
-- the import that is under way.
-- name: clock_raise --
UPDATE clock SET id = id + 1, revision = revision + 1
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING revision, epoch, $1::bigint, minimum_version, newest_version, importing;

-- name: import_load --
SELECT importing FROM clock_now;

-- Whatever is committed afterwards has seen the mark, or has raised the clock before.
-- name: import_lock --
SELECT importing FROM clock ORDER BY id DESC LIMIT 1 FOR UPDATE;

-- name: import_write --
UPDATE clock SET id = id + 1, importing = r.after
FROM (SELECT unnest($1::text[]), unnest($2::text[])) AS r(after, before)
WHERE id >= (SELECT MAX(id) FROM clock) AND importing IS NOT DISTINCT FROM r.before;

-- At least the Unix time, so that no epoch is used twice, whichever state was restored.
-- name: epoch_raise --
UPDATE clock
SET epoch = GREATEST(epoch, $1::bigint, floor(extract(epoch FROM clock_timestamp()))::bigint - 1) + 1
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING epoch, revision;

-- name: clock_compact --
UPDATE clock SET compacted = GREATEST(compacted, r.reached)
FROM unnest($1::bigint[]) AS r(reached) WHERE id >= (SELECT MAX(id) FROM clock);

-- The revision is the one that this transaction has just taken.
-- name: change_insert --
INSERT INTO change (revision, n, at, kind, key, body)
SELECT revision, unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[])
FROM clock_now;

-- At least one row: the clock and the time of the given revision, joined with the change rows after
-- (revision, n), in one snapshot. Rows of the excluded kinds are left out, except the first row of
-- each batch, which then comes without its body.
-- name: changes_load --
SELECT clock.epoch, clock.revision, clock.compacted, clock.minimum_version,
    clock.importing, (SELECT at FROM change WHERE revision = $1 AND n = 0),
    c.revision, c.n, c.at, c.kind, c.key, c.body
FROM clock_now AS clock LEFT JOIN (
    SELECT revision, n, at, kind, key,
        CASE WHEN kind <> ALL (ARRAY(SELECT json_array_elements_text($3))) THEN body END AS body
    FROM change WHERE (revision, n) > ($1, $2)
        AND (n = 0 OR kind <> ALL (ARRAY(SELECT json_array_elements_text($3))))
    ORDER BY revision, n LIMIT $4
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- Starts where the last deletion ended: deleted rows that a snapshot keeps are not scanned again.
-- name: changes_delete --
DELETE FROM change USING unnest($1::bigint[], $2::bigint[]) AS r(compacted, reached)
WHERE revision > r.compacted AND revision <= r.reached;

-- Only one process at a time deletes change rows and receipts.
-- name: compaction_lock --
SELECT pg_try_advisory_xact_lock(778, 3);

-- Transactions that lock consumers or providers take this lock shared. The exclusive lock waits for
-- all of them: for deleting a class or a trait that others may begin to use, for renaming a class.
-- name: ledger_lock --
SELECT pg_advisory_xact_lock(778, 1);

-- Taken before `structure_lock`; the statements that lock rows take it themselves.
-- name: ledger_share --
SELECT pg_advisory_xact_lock_shared(778, 1);

-- Only one transaction at a time reads and changes names and trees: row locks cannot prevent others
-- from adding a child or a name.
-- name: structure_lock --
SELECT pg_advisory_xact_lock(778, 2);

-- The stored values of rows that are about to be written, see unknown_members.py.
-- name: inventories_stored --
SELECT uuid, inventories FROM provider
WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: pools_stored --
SELECT name, body FROM pool WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: templates_stored --
SELECT name, body FROM pool_template WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: slots_stored --
SELECT pool, name, body FROM slot WHERE pool = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: bookings_stored --
SELECT id, body FROM booking WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: leases_stored --
SELECT id, body FROM lease WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: agent_groups_stored --
SELECT name, body FROM agent_group WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: agents_stored --
SELECT uuid, body FROM agent WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: reporter_groups_stored --
SELECT name, body FROM reporter_group
WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: reporters_stored --
SELECT reporter_group, name, body FROM reporter
WHERE reporter_group = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- Receipts are not needed for longer than an hour.
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

-- A page of change rows. At least one row: the clock, joined with the change rows after (revision, n), in one snapshot.
-- name: changes_window --
SELECT clock.epoch, clock.revision, clock.compacted, c.revision, c.n, c.kind, c.key, c.body, c.at
FROM clock_now AS clock LEFT JOIN (
    SELECT revision, n, kind, key, body, at FROM change
    WHERE (revision, n) > ($1, $2) ORDER BY revision, n LIMIT $3
) AS c ON TRUE
ORDER BY c.revision, c.n;

-- Every batch that decides by service time locks this row, after the rows of its rooms.
-- name: service_clock_lock --
SELECT skew, downtime, alive_at, outage_ended_at FROM service_clock
ORDER BY id DESC LIMIT 1 FOR UPDATE;

-- name: service_clock_load --
SELECT skew, downtime, alive_at, outage_ended_at FROM service_clock ORDER BY id DESC LIMIT 1;

-- name: service_clock_update --
UPDATE service_clock
SET id = id + 1, skew = r.skew, downtime = r.downtime, alive_at = r.alive_at,
    outage_ended_at = r.outage_ended_at
FROM (SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]))
    AS r(skew, downtime, alive_at, outage_ended_at)
WHERE id >= (SELECT MAX(id) FROM service_clock);
