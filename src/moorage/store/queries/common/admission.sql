-- Pools, leases and the waiting line. Blocks: noun first.

-- name: leases_load_due --
SELECT lease.body, lease_due.heard_until
FROM lease_due JOIN lease ON lease.id = lease_due.lease
WHERE lease_due.due <= $1 ORDER BY lease_due.due LIMIT $2;

-- name: leases_ended_before --
SELECT id FROM lease WHERE ended_at < $1 ORDER BY ended_at LIMIT $2;

-- When the oldest lease ended that is kept for its number, and the newest that is one too many.
-- name: ended_surplus --
SELECT ended_at FROM lease WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 2 OFFSET $1;

-- The ends after $1 up to the one at offset $2, with all at the same time.
-- name: ended_sizes --
SELECT MAX(ended_at), COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM lease
WHERE ended_at > $1 AND ended_at <= COALESCE(
    (SELECT ended_at FROM lease WHERE ended_at > $1 ORDER BY ended_at LIMIT 1 OFFSET $2),
    9223372036854775807);

-- How many other tickets of a line are ahead of a place.
-- name: line_ahead --
SELECT count(*) FROM lease_need
WHERE pool = $1 AND state = 'waiting' AND lease <> $2
    AND (rank, place, arrival) < ($3, $4, $5);

-- name: lease_load --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id WHERE lease.id = $1;

-- name: leases_window --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE (lease.arrival, lease.id) > ($1, $2) AND ($3::text IS NULL OR lease.state = $3)
ORDER BY lease.arrival, lease.id LIMIT $4;

-- name: leases_window_live --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.ended_at IS NULL AND (lease.arrival, lease.id) > ($1, $2) AND lease.state = $3
    AND ($4::text IS NULL OR lease.owner = $4)
ORDER BY lease.arrival, lease.id LIMIT $5;

-- Sorts all leases of an owner: an index for this would make every request for a lease slower.
-- name: leases_window_by_owner --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.owner = $1 AND (lease.arrival, lease.id) > ($2, $3)
    AND ($4::text IS NULL OR lease.state = $4)
ORDER BY lease.arrival, lease.id LIMIT $5;

-- Reads all leases of an owner with these keys, at least $2 and below $3, and sorts them.
-- name: leases_window_by_key --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.owner = $1 AND lease.key >= $2 AND lease.key < $3
    AND (lease.arrival, lease.id) > ($4, $5)
    AND ($6::text IS NULL OR lease.state = $6)
    AND ($7::text IS NULL OR EXISTS (
        SELECT 1 FROM lease_need WHERE lease_need.pool = $7
            AND lease_need.arrival = lease.arrival AND lease_need.lease = lease.id
    ))
ORDER BY lease.arrival, lease.id LIMIT $8;

-- Reads all leases with these ids, at least $1 and below $2: those of about a minute. They are looked for first, or
-- PostgreSQL would read the index of arrivals from its beginning.
-- name: leases_window_by_id --
WITH begun AS MATERIALIZED (
    SELECT id, arrival, state, owner, body FROM lease WHERE id >= $1 AND id < $2
)
SELECT begun.body, lease_due.heard_until
FROM begun LEFT JOIN lease_due ON lease_due.lease = begun.id
WHERE (begun.arrival, begun.id) > ($3, $4)
    AND ($5::text IS NULL OR begun.state = $5) AND ($6::text IS NULL OR begun.owner = $6)
    AND ($7::text IS NULL OR EXISTS (
        SELECT 1 FROM lease_need WHERE lease_need.pool = $7
            AND lease_need.arrival = begun.arrival AND lease_need.lease = begun.id
    ))
ORDER BY begun.arrival, begun.id LIMIT $8;

-- name: leases_window_by_group --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.group_name = $1 AND (lease.arrival, lease.id) > ($2, $3)
    AND ($4::text IS NULL OR lease.state = $4) AND ($5::text IS NULL OR lease.owner = $5)
    AND ($6::text IS NULL OR EXISTS (
        SELECT 1 FROM lease_need WHERE lease_need.pool = $6
            AND lease_need.arrival = lease.arrival AND lease_need.lease = lease.id
    ))
ORDER BY lease.arrival, lease.id LIMIT $7;

-- name: leases_window_by_pool --
SELECT lease.body, lease_due.heard_until
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease_need.pool = $1 AND (lease_need.arrival, lease_need.lease) > ($2, $3)
    AND ($4::text IS NULL OR lease_need.state = $4)
    AND ($5::text IS NULL OR lease_need.owner = $5)
ORDER BY lease_need.arrival, lease_need.lease LIMIT $6;

-- name: line_head --
SELECT rank, place, arrival FROM lease_need
WHERE pool = $1 AND state = 'waiting' AND rank > $2 ORDER BY rank, place, arrival LIMIT 1;

-- name: tickets_window --
SELECT arrival, id, pools, body FROM lease
WHERE ended_at IS NULL AND (arrival, id) > ($1, $2) AND state = 'waiting'
ORDER BY arrival, id LIMIT $3;

-- How long leases took. What was handed over has not ended: its units are still held.
-- name: pasts_load --
SELECT asked_at, granted_at, ended_at FROM lease_need
WHERE pool = $1 AND state = 'ended' AND granted_at IS NOT NULL AND cause <> 'handed_over'
ORDER BY ended_at DESC LIMIT $2;

-- name: ends_load --
SELECT asked_at, granted_at, ended_at, cause FROM lease_need
WHERE pool = $1 AND state = 'ended' AND ended_at >= $2 ORDER BY ended_at DESC LIMIT $3;

-- The units that were granted, by time; of leases that are still remembered.
-- name: starts_load --
SELECT granted_at, SUM(units)::bigint FROM lease_need
WHERE pool = $1 AND granted_at IS NOT NULL GROUP BY granted_at ORDER BY granted_at DESC LIMIT $2;

-- By the pool's limit and the time of the grant; the latter is null if the lease was deleted.
-- name: outcomes_count --
SELECT outcome.units, lease_need.granted_at, COUNT(*) FILTER (WHERE outcome.result = 'ok'),
    COUNT(*) FILTER (WHERE outcome.result = 'failed'),
    COUNT(*) FILTER (WHERE outcome.result = 'throttled')
FROM outcome LEFT JOIN lease ON lease.id = outcome.lease
    LEFT JOIN lease_need ON lease_need.pool = outcome.pool
        AND lease_need.arrival = lease.arrival AND lease_need.lease = outcome.lease
WHERE outcome.pool = $1 GROUP BY 1, 2;

-- name: slots_load --
SELECT body FROM slot WHERE pool = $1 ORDER BY name;

-- Slots, each with its lease, if any.
-- name: slots_window --
SELECT slot.body, lease.body FROM slot LEFT JOIN lease ON lease.id = slot.lease
WHERE slot.pool = $1 AND slot.name > $2 ORDER BY slot.name LIMIT $3;

-- Slots of a pool that name a lease: as their holder, or as one whose release may still come.
-- name: slots_naming --
SELECT body FROM slot WHERE pool = $1 AND body LIKE '%' || $2 || '%' ORDER BY name LIMIT $3;

-- name: slot_load --
SELECT slot.body, lease.body FROM slot LEFT JOIN lease ON lease.id = slot.lease
WHERE slot.pool = $1 AND slot.name = $2;

-- name: slots_count --
SELECT pool, state, owner, COUNT(*) FROM slot GROUP BY pool, state, owner ORDER BY 1, 2, 3;

-- name: due_next --
SELECT (SELECT due FROM lease_due WHERE due IS NOT NULL ORDER BY due LIMIT 1),
    (SELECT wake_at FROM pool WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
    EXISTS (SELECT 1 FROM lease_due) OR EXISTS (SELECT 1 FROM reporter)
        OR EXISTS (SELECT 1 FROM booking_need);

-- name: leases_due --
SELECT lease FROM lease_due WHERE due <= $1 ORDER BY due LIMIT $2;

-- name: pools_due --
SELECT name FROM pool WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2;

-- For the check: a row's columns in the order in which they are written.
-- name: pools_snapshot --
SELECT name, quota, gangs, wake_at, member_group, template, cohort, booked_until, body FROM pool
ORDER BY name;

-- Pools whose limits follow the members of a group of reporters.
-- name: pools_by_members --
SELECT body FROM pool WHERE member_group IS NOT NULL ORDER BY name;

-- Templates, each with the number of pools that requests have made from it.
-- name: templates_load --
SELECT pool_template.name, pool_template.body,
    (SELECT COUNT(*) FROM pool WHERE pool.template = pool_template.name)
FROM pool_template ORDER BY pool_template.name;

-- name: templates_wipe --
DELETE FROM pool_template;

-- name: slots_snapshot --
SELECT pool, name, state, owner, lease, body FROM slot ORDER BY pool, name;

-- name: leases_snapshot --
SELECT lease.id, lease.owner, lease.key, lease.arrival, lease.pools, lease.state, lease.ended_at,
    lease.group_scope, lease.group_name, lease.body,
    lease_due.lease, lease_due.heard_until, lease_due.due
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE (lease.arrival, lease.id) > ($1, $2) ORDER BY lease.arrival, lease.id LIMIT $3;

-- name: lease_dues_adrift --
SELECT lease, due FROM lease_due
WHERE NOT EXISTS (SELECT 1 FROM lease WHERE lease.id = lease_due.lease) ORDER BY lease LIMIT $1;

-- name: lease_needs_count --
SELECT COUNT(*) FROM lease_need;

-- All rows, with the bodies of their leases; the check reads them only if there are too many rows.
-- name: lease_needs_window --
SELECT lease_need.pool, lease_need.arrival, lease_need.lease, lease.body
FROM lease_need LEFT JOIN lease ON lease.id = lease_need.lease
WHERE (lease_need.pool, lease_need.arrival, lease_need.lease) > ($1, $2, $3)
ORDER BY lease_need.pool, lease_need.arrival, lease_need.lease LIMIT $4;

-- name: outcomes_snapshot --
SELECT pool, at, lease, result, units, body FROM outcome
WHERE (pool, at, lease, body) > ($1, $2, $3, $4)
ORDER BY pool, at, lease, body LIMIT $5;

-- Pools with bookings, and those that have some again because the wall clock went back to $1.
-- name: pools_booked --
SELECT name FROM pool WHERE booked_until IS NOT NULL
UNION SELECT pool FROM booking_need WHERE ends_at > $1 ORDER BY 1;

-- name: bookings_snapshot --
SELECT id, owner, key, pool, ends_at, body FROM booking WHERE id > $1 ORDER BY id LIMIT $2;

-- name: booking_needs_snapshot --
SELECT booking, pool, ends_at FROM booking_need ORDER BY booking, pool;

-- name: booking_load --
SELECT body FROM booking WHERE id = $1;

-- Bookings that end after a time, of one owner and of one pool, or of all.
-- name: bookings_window --
SELECT booking.body FROM booking
WHERE booking.id > $1 AND booking.ends_at > $2 AND ($3::text IS NULL OR booking.owner = $3)
    AND ($4::text IS NULL OR EXISTS (
        SELECT 1 FROM booking_need WHERE booking_need.booking = booking.id AND booking_need.pool = $4
    ))
ORDER BY booking.id LIMIT $5;

-- name: bookings_wipe --
DELETE FROM booking;

-- name: booking_needs_wipe --
DELETE FROM booking_need;

-- name: pools_wipe --
DELETE FROM pool;

-- name: slots_wipe --
DELETE FROM slot;

-- name: leases_wipe --
DELETE FROM lease;

-- name: lease_dues_wipe --
DELETE FROM lease_due;

-- name: lease_needs_wipe --
DELETE FROM lease_need;

-- name: outcomes_wipe --
DELETE FROM outcome;

-- The live leases of a pool, in the order of their grants.
-- name: pool_leases --
SELECT lease.body, lease_due.heard_until
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease_need.pool = $1 AND lease_need.state = 'granted'
ORDER BY lease_need.granted_at, lease_need.arrival, lease_need.lease LIMIT $2;

-- The tickets of a pool, in the order of its line.
-- name: pool_tickets --
SELECT lease.body, lease_due.heard_until
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease_need.pool = $1 AND lease_need.state = 'waiting'
ORDER BY lease_need.rank, lease_need.place, lease_need.arrival, lease_need.lease LIMIT $2;

-- name: pool_sums --
SELECT state, COUNT(*), SUM(units)::bigint FROM lease_need
WHERE pool = $1 AND state IN ('granted', 'waiting') GROUP BY state;

-- The live leases and tickets of a pool, and the newest ones of those that have ended since a time, in no order.
-- name: pool_past --
SELECT arrival, lease, asked_at, granted_at, ended_at, units, owner, rank FROM lease_need
WHERE pool = $1 AND state IN ('granted', 'waiting')
UNION ALL
SELECT * FROM (
    SELECT arrival, lease, asked_at, granted_at, ended_at, units, owner, rank FROM lease_need
    WHERE pool = $1 AND state = 'ended' AND ended_at >= $2
    ORDER BY ended_at DESC, arrival DESC, lease DESC LIMIT $3) AS past;
