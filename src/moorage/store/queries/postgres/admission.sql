-- Pools, leases and the waiting line for PostgreSQL. Sets arrive as JSON arrays, the rows of a
-- write as one array per column. Blocks: noun first.

-- Every decision of admission locks this row, so that nothing else needs a lock. After waiting for
-- the lock, a transaction gets the newest version of the row.
-- name: admission_lock --
SELECT arrivals FROM admission_clock ORDER BY id DESC LIMIT 1 FOR UPDATE;

-- name: arrivals_load --
SELECT arrivals FROM admission_clock ORDER BY id DESC LIMIT 1;

-- name: arrivals_update --
UPDATE admission_clock SET id = id + 1, arrivals = r.arrivals
FROM unnest($1::bigint[]) AS r(arrivals)
WHERE id >= (SELECT MAX(id) FROM admission_clock);

-- Pools by name, pools of some leases, pools with slots of some names, and pools to be woken; if
-- one of them has gangs, all pools that have; and all pools of their cohorts. Each comes with its
-- slots and, if it has a quota or is to have one, with the units that each owner occupies. If it has
-- bookings, or is to have some, with the units of its leases by the ends of their holds, its bookings
-- that are not over, and the numbers of their tickets.
-- name: pools_load --
WITH named AS MATERIALIZED (
    SELECT ARRAY(
        SELECT json_array_elements_text($1)
        UNION ALL SELECT json_array_elements_text(lease.pools::json) FROM lease
        WHERE lease.id = ANY (ARRAY(SELECT json_array_elements_text($2)))
        UNION ALL SELECT slot.pool FROM slot
        WHERE slot.name = ANY (ARRAY(SELECT value ->> 1 FROM json_array_elements($3)))
            AND EXISTS (
                SELECT 1 FROM json_array_elements($3)
                WHERE value ->> 1 = slot.name AND value ->> 0 IN ('', slot.pool)
            )
        UNION ALL SELECT name FROM (
            SELECT name FROM pool WHERE wake_at <= $4 ORDER BY wake_at LIMIT $5
        ) AS woken
        UNION ALL SELECT name FROM pool
        WHERE member_group = ANY (ARRAY(SELECT json_array_elements_text($7)))
        UNION ALL SELECT booking_need.pool FROM booking_need
        WHERE booking_need.booking = ANY (ARRAY(SELECT json_array_elements_text($10)))
    ) AS names
), wanted AS MATERIALIZED (
    SELECT (SELECT names FROM named) || ARRAY(
        SELECT name FROM pool WHERE gangs > 0 AND EXISTS (
            SELECT 1 FROM pool AS own
            WHERE own.name = ANY ((SELECT names FROM named)::text[]) AND own.gangs > 0
        )
        UNION ALL SELECT name FROM pool
        WHERE cohort = ANY (ARRAY(SELECT json_array_elements_text($8)) || ARRAY(
            SELECT own.cohort FROM pool AS own
            WHERE own.name = ANY ((SELECT names FROM named)::text[]) AND own.cohort IS NOT NULL
        ))
    ) AS names
)
SELECT pool.body,
    (SELECT '[' || string_agg(slot.body, ',') || ']' FROM slot WHERE slot.pool = pool.name),
    CASE WHEN pool.quota IS NOT NULL OR pool.name IN (
        SELECT json_array_elements_text($6)
    ) THEN (
        SELECT json_object_agg(owner, held)::text FROM (
            SELECT owner, SUM(units) AS held FROM lease_need
            WHERE lease_need.pool = pool.name AND state = 'granted' GROUP BY owner
        ) AS sums
    ) END,
    CASE WHEN pool.booked_until IS NOT NULL OR pool.name IN (
        SELECT json_array_elements_text($9)
    ) THEN (
        SELECT COALESCE(json_agg(json_build_array(hold_until, booking, held))::text, '[]') FROM (
            SELECT hold_until, booking, SUM(units) AS held FROM lease_need
            WHERE lease_need.pool = pool.name AND state = 'granted' GROUP BY hold_until, booking
        ) AS sums
    ) END,
    CASE WHEN pool.booked_until IS NOT NULL OR pool.name IN (
        SELECT json_array_elements_text($9)
    ) THEN (
        SELECT '[' || string_agg(booking.body, ',') || ']'
        FROM booking_need JOIN booking ON booking.id = booking_need.booking
        WHERE booking_need.pool = pool.name AND booking_need.ends_at > (
            SELECT alive_at - skew FROM service_clock ORDER BY id DESC LIMIT 1
        )
    ) END,
    CASE WHEN pool.booked_until IS NOT NULL OR pool.name IN (
        SELECT json_array_elements_text($9)
    ) THEN (
        SELECT json_object_agg(booking, tickets)::text FROM (
            SELECT booking_need.booking, waiting.tickets
            FROM booking_need CROSS JOIN LATERAL (
                SELECT COUNT(*) AS tickets FROM (
                    SELECT DISTINCT lease FROM lease_need
                    WHERE lease_need.booking = booking_need.booking
                        AND lease_need.booking IS NOT NULL AND state = 'waiting'
                ) AS one
            ) AS waiting WHERE booking_need.pool = pool.name
        ) AS called WHERE tickets > 0
    ) END
FROM pool WHERE pool.name = ANY ((SELECT names FROM wanted)::text[]);

-- name: leases_load --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- The limit changes no result: it keeps the index in use. A plan that was made while there were few
-- leases would otherwise read all of them for each batch, until the table is analyzed.
-- name: leases_load_by_key --
SELECT lease.body, lease_due.heard_until
FROM json_array_elements($1) AS asked(value) CROSS JOIN LATERAL (
    SELECT id, body FROM lease
    WHERE owner = asked.value ->> 0 AND key = asked.value ->> 1 LIMIT 1
) AS lease LEFT JOIN lease_due ON lease_due.lease = lease.id;

-- The live leases and tickets of some groups, each [scope, name].
-- name: leases_load_by_group --
SELECT lease.body, lease_due.heard_until
FROM json_array_elements($1) AS asked(value)
    JOIN lease ON lease.group_name = asked.value ->> 1 AND lease.group_scope = asked.value ->> 0
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.ended_at IS NULL;

-- name: leases_load_by_consumer --
SELECT holding.body ->> 'consumer', (holding.body ->> 'since')::bigint, holding.lease FROM (
    SELECT id AS lease, (body::json ->> 'allocations')::json AS body FROM lease
    WHERE ended_at IS NULL AND state = 'granted'
) AS holding
WHERE holding.body ->> 'consumer' = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: tickets_load_by_provider --
SELECT lease.id, lease.body::json ->> 'allocations' FROM lease
WHERE ended_at IS NULL AND state = 'waiting' AND EXISTS (
    SELECT 1 FROM json_object_keys((lease.body::json ->> 'allocations')::json -> 'allocations') AS asked (provider)
    WHERE asked.provider = ANY (ARRAY(SELECT json_array_elements_text($1)))
) ORDER BY arrival, id LIMIT $2;

-- name: leases_load_by_slot --
SELECT lease.body, lease_due.heard_until
FROM slot JOIN lease ON lease.id = slot.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE slot.name = ANY (ARRAY(SELECT value ->> 1 FROM json_array_elements($1)))
    AND EXISTS (
        SELECT 1 FROM json_array_elements($1)
        WHERE value ->> 1 = slot.name AND value ->> 0 IN ('', slot.pool)
    );

-- name: leases_load_by_pool --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.id IN (
    SELECT lease_need.lease
    FROM json_array_elements_text($1) AS one(value) JOIN lease_need
        ON lease_need.pool = one.value AND lease_need.state = 'waiting'
    UNION ALL SELECT lease_need.lease
    FROM json_array_elements_text($1) AS one(value) JOIN lease_need
        ON lease_need.pool = one.value AND lease_need.state = 'granted'
);

-- name: leases_load_by_holder --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.id IN (
    SELECT lease_need.lease
    FROM json_array_elements_text($1) AS one(value) JOIN lease_need
        ON lease_need.pool = one.value AND lease_need.state = 'granted'
);

-- The first $2 tickets of some bookings.
-- name: leases_load_by_booking --
SELECT lease.body, lease_due.heard_until
FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.id IN (
    SELECT DISTINCT lease_need.lease
    FROM json_array_elements_text($1) AS one(value) JOIN lease_need
        ON lease_need.booking = one.value AND lease_need.booking IS NOT NULL
            AND lease_need.state = 'waiting'
    LIMIT $2
);

-- Leases of pools whose holders are asked to stop, then those who may be: the lowest priority first, then the
-- newest.
-- name: leases_load_yielding --
SELECT lease.body, lease_due.heard_until
FROM json_array_elements_text($1) AS one(value) JOIN lease_need
        ON lease_need.pool = one.value AND lease_need.state = 'granted'
    JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease.body::json ->> 'preemptible' IS NOT NULL
        OR lease.body::json ->> 'stop_until' IS NOT NULL
ORDER BY lease.body::json ->> 'stop_until' IS NULL, lease_need.rank DESC, lease_need.granted_at DESC,
    lease_need.lease
LIMIT $2;

-- Slots, each with its lease, if any.
-- name: slots_load_by_name --
SELECT slot.body, lease.body, lease_due.heard_until
FROM slot LEFT JOIN lease ON lease.id = slot.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE slot.name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- A pool's tickets after (rank, place, arrival), in the order of the line, without those that are certain
-- to be passed over: tickets that need more than $6 units or more than $7 leaves to their owner
-- (unless forced), pull tickets for which no request waits at the alive time $9 (those of owners
-- like $10 are polled instead), and tickets that do not fit into the ledger. $8 lists obstacles with their
-- tickets. An obstacle is an unchanged inventory of which as much is offered, and at least as much is
-- used, as when it refused;
-- an inventory that is still missing; a consumer that exists (the class is empty); or null, if the
-- caller has checked. Empty sets are tested first, so that they cost nothing.
-- name: line_load --
WITH room (owner, units) AS MATERIALIZED (
    SELECT key, value::bigint FROM json_each_text($7::text::json)
), stuck (lease) AS MATERIALIZED (
    SELECT ticket.value
    FROM json_array_elements($8::text::json) AS one LEFT JOIN LATERAL (
            SELECT inventories FROM provider WHERE uuid = one.value ->> 0 LIMIT 1
        ) AS provider ON TRUE,
        json_array_elements_text(one.value -> 5) AS ticket(value)
    WHERE one.value ->> 0 IS NULL OR CASE
        WHEN one.value ->> 1 = '' THEN EXISTS (
            SELECT 1 FROM consumer WHERE consumer.uuid = one.value ->> 0
        )
        WHEN one.value ->> 2 IS NULL THEN provider.inventories::json -> (one.value ->> 1) IS NULL
        ELSE COALESCE((provider.inventories::json -> (one.value ->> 1) ->> 'updated_at')::bigint, 0)
            = (one.value ->> 2)::bigint
            AND COALESCE((provider.inventories::json -> (one.value ->> 1) ->> 'used')::bigint, 0)
            >= (one.value ->> 3)::bigint
            AND CASE
                WHEN (provider.inventories::json -> (one.value ->> 1) ->> 'withheld')::boolean
                THEN 0 ELSE COALESCE(
                    (provider.inventories::json -> (one.value ->> 1) ->> 'offered')::bigint, -1
                )
            END = (one.value ->> 4)::bigint
    END
)
SELECT lease.body, lease_due.heard_until
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease_need.pool = $1 AND lease_need.state = 'waiting'
    AND (lease_need.rank, lease_need.place, lease_need.arrival) > ($2, $3, $4)
    AND (lease_need.forced OR lease_need.units <= $6 AND ($7 = '{}' OR lease_need.units <= COALESCE(
        (SELECT room.units FROM room WHERE room.owner = lease_need.owner), $6
    )))
    AND (NOT lease_need.pull OR lease_need.forced OR lease_need.owner LIKE $10
        OR lease_due.heard_until IS NULL
        OR lease_due.heard_until - (lease.body::json ->> 'patience')::bigint >= $9)
    AND ($8 = '[]' OR lease_need.lease NOT IN (SELECT stuck.lease FROM stuck))
    AND ($11 = '[]' OR lease_need.forced OR EXISTS (
        SELECT 1 FROM json_array_elements(lease.body::json -> 'needs') AS need
        WHERE need ->> 'pool' = $1
            AND need ->> 'wanted' NOT IN (SELECT json_array_elements_text($11::text::json))
    ))
ORDER BY lease_need.rank, lease_need.place, lease_need.arrival LIMIT $5;

-- name: waits_count --
SELECT pool, owner, COUNT(*) FROM lease_need
WHERE pool = ANY (ARRAY(SELECT json_array_elements_text($1))) AND state = 'waiting'
    AND (owner = ANY (ARRAY(SELECT json_array_elements_text($2)))
        OR rtrim(owner, replace(owner, '/', '')) = ANY (ARRAY(SELECT json_array_elements_text($3))))
GROUP BY pool, owner;

-- name: pool_upsert --
INSERT INTO pool (name, quota, gangs, wake_at, member_group, template, cohort, booked_until, body)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::text[]), unnest($8::bigint[]),
    unnest($9::text[])
ON CONFLICT (name) DO UPDATE SET quota = excluded.quota, gangs = excluded.gangs,
    wake_at = excluded.wake_at, member_group = excluded.member_group,
    template = excluded.template, cohort = excluded.cohort, booked_until = excluded.booked_until,
    body = excluded.body;

-- name: pool_delete --
DELETE FROM pool USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: template_upsert --
INSERT INTO pool_template (name, body) SELECT unnest($1::text[]), unnest($2::text[])
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: template_delete --
DELETE FROM pool_template USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: slot_upsert --
INSERT INTO slot (pool, name, state, owner, lease, body)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[]), unnest($6::text[])
ON CONFLICT (pool, name) DO UPDATE SET state = excluded.state, owner = excluded.owner,
    lease = excluded.lease, body = excluded.body;

-- name: slot_delete --
DELETE FROM slot USING unnest($1::text[], $2::text[]) AS r(pool, name)
WHERE slot.pool = r.pool AND slot.name = r.name;

-- Owner, arrival and pools of a lease never change, nor does its key while it is live. Its units of
-- a pool may decrease.
-- name: lease_upsert --
INSERT INTO lease (id, owner, key, arrival, pools, state, ended_at, group_scope, group_name, body)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::bigint[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::bigint[]), unnest($8::text[]),
    unnest($9::text[]), unnest($10::text[])
ON CONFLICT (id) DO UPDATE SET state = excluded.state, ended_at = excluded.ended_at,
    body = excluded.body;

-- For ended leases that leave their key to a new lease; runs before that one is written.
-- name: lease_rekey --
UPDATE lease SET key = r.key FROM unnest($1::text[], $2::text[]) AS r(id, key)
WHERE lease.id = r.id;

-- name: lease_delete --
DELETE FROM lease USING unnest($1::text[]) AS r(gone) WHERE id = r.gone;

-- name: lease_due_upsert --
INSERT INTO lease_due (lease, heard_until, due)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[])
ON CONFLICT (lease) DO UPDATE SET heard_until = excluded.heard_until, due = excluded.due;

-- name: lease_due_delete --
DELETE FROM lease_due USING unnest($1::text[]) AS r(gone) WHERE lease = r.gone;

-- name: lease_need_upsert --
INSERT INTO lease_need (pool, arrival, lease, rank, place, units, pull, forced, owner, state,
    token, asked_at, granted_at, ended_at, cause, hold_until, booking)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::bigint[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::boolean[]), unnest($8::boolean[]),
    unnest($9::text[]), unnest($10::text[]), unnest($11::text[]), unnest($12::bigint[]),
    unnest($13::bigint[]), unnest($14::bigint[]), unnest($15::text[]), unnest($16::bigint[]),
    unnest($17::text[])
ON CONFLICT (pool, arrival, lease) DO UPDATE SET rank = excluded.rank,
    place = excluded.place, units = excluded.units, forced = excluded.forced,
    state = excluded.state, token = excluded.token, granted_at = excluded.granted_at,
    ended_at = excluded.ended_at, cause = excluded.cause, hold_until = excluded.hold_until;

-- Must run before the lease is deleted, because that lists the pools.
-- name: lease_need_delete --
DELETE FROM lease_need USING lease
WHERE lease.id = ANY ($1::text[]) AND lease_need.lease = lease.id
    AND lease_need.arrival = lease.arrival
    AND lease_need.pool = ANY (ARRAY(SELECT json_array_elements_text(lease.pools::json)));

-- For leases that have returned all their slots of a pool, or have got one of several alternatives:
-- only the pools in `kept` remain.
-- name: lease_need_trim --
DELETE FROM lease_need USING lease, unnest($1::text[], $2::text[]) AS r(id, kept)
WHERE lease.id = ANY ($1::text[]) AND lease.id = r.id AND lease_need.lease = lease.id
    AND lease_need.arrival = lease.arrival
    AND lease_need.pool = ANY (ARRAY(SELECT json_array_elements_text(lease.pools::json)))
    AND lease_need.pool <> ALL (ARRAY(SELECT json_array_elements_text(r.kept::json)));

-- name: bookings_load --
SELECT body FROM booking WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: bookings_load_by_key --
SELECT booking.body FROM json_array_elements($1) AS asked(value)
    JOIN booking ON booking.owner = asked.value ->> 0 AND booking.key = asked.value ->> 1;

-- name: booking_upsert --
INSERT INTO booking (id, owner, key, pool, ends_at, body)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::text[])
ON CONFLICT (id) DO UPDATE SET pool = excluded.pool, ends_at = excluded.ends_at, body = excluded.body;

-- name: booking_need_delete --
DELETE FROM booking_need USING unnest($1::text[]) AS r(gone) WHERE booking = r.gone;

-- name: booking_need_insert --
INSERT INTO booking_need (booking, pool, ends_at)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bigint[]);

-- Of the bookings of a pool that are over, all but the newest `kept`; before `bookings_surplus`.
-- name: booking_needs_surplus --
DELETE FROM booking_need USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS r(pool, wall, kept)
    CROSS JOIN LATERAL (
        SELECT one.id FROM booking AS one WHERE one.pool = r.pool AND one.ends_at <= r.wall
        ORDER BY one.ends_at DESC, one.id DESC OFFSET r.kept
    ) AS surplus
WHERE booking_need.booking = surplus.id;

-- name: bookings_surplus --
DELETE FROM booking USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS r(pool, wall, kept)
    CROSS JOIN LATERAL (
        SELECT one.id FROM booking AS one WHERE one.pool = r.pool AND one.ends_at <= r.wall
        ORDER BY one.ends_at DESC, one.id DESC OFFSET r.kept
    ) AS surplus
WHERE booking.id = surplus.id;

-- name: bookings_over --
DELETE FROM booking USING unnest($1::bigint[]) AS r(before) WHERE ends_at < r.before;

-- name: booking_needs_over --
DELETE FROM booking_need USING unnest($1::bigint[]) AS r(before) WHERE ends_at < r.before;

-- name: outcome_insert --
INSERT INTO outcome (pool, at, lease, result, units, body)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::text[]);

-- name: outcome_delete_by_pool --
DELETE FROM outcome USING unnest($1::text[]) AS r(gone) WHERE pool = r.gone;

-- name: outcome_delete_before --
DELETE FROM outcome USING unnest($1::bigint[]) AS r(mark)
WHERE pool IN (SELECT name FROM pool) AND at < r.mark;

-- Pools with their slots in groups that are alike, see `SlotGroup`; a cooldown that has ended is 0.
-- name: pools_window --
SELECT pool.body, (
    SELECT json_agg(json_build_array(state, occupied, rests_until, slots, drained))::text FROM (
        SELECT state, owner <> '' AS occupied,
            CASE WHEN owner = '' AND (body::json ->> 'rests_until')::bigint > (
                SELECT alive_at FROM service_clock ORDER BY id DESC LIMIT 1
            ) THEN (body::json ->> 'rests_until')::bigint ELSE 0 END AS rests_until,
            COUNT(*) AS slots, body::json ->> 'drain' IS NOT NULL AS drained
        FROM slot WHERE slot.pool = pool.name GROUP BY 1, 2, 3, 5
    ) AS alike
)
FROM pool WHERE pool.name > $1 ORDER BY pool.name LIMIT $2;

-- name: pool_load --
SELECT pool.body, (
    SELECT json_agg(json_build_array(state, occupied, rests_until, slots, drained))::text FROM (
        SELECT state, owner <> '' AS occupied,
            CASE WHEN owner = '' AND (body::json ->> 'rests_until')::bigint > (
                SELECT alive_at FROM service_clock ORDER BY id DESC LIMIT 1
            ) THEN (body::json ->> 'rests_until')::bigint ELSE 0 END AS rests_until,
            COUNT(*) AS slots, body::json ->> 'drain' IS NOT NULL AS drained
        FROM slot WHERE slot.pool = pool.name GROUP BY 1, 2, 3, 5
    ) AS alike
)
FROM pool WHERE pool.name = $1;

-- A pool's line in order, with the data that decide which tickets are passed over: the deadline and
-- the patience of pull tickets; the body of tickets that need other pools, a claim in the ledger, or
-- slots with labels.
-- name: line_pass --
SELECT lease_need.lease, lease_need.rank, lease_need.place, lease_need.arrival, lease_need.units,
    lease_need.owner, lease_need.forced, lease_due.heard_until,
    CASE WHEN lease_need.pull THEN (lease.body::json ->> 'patience')::bigint END,
    CASE WHEN strpos(lease.pools, '","') > 0 OR strpos(lease.body, '"allocations":null') = 0
        OR strpos(lease.body, '"wanted":"{') > 0
        THEN lease.body END
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease_need.lease
WHERE lease_need.pool = $1 AND lease_need.state = 'waiting'
    AND (lease_need.rank, lease_need.place, lease_need.arrival) > ($2, $3, $4)
ORDER BY lease_need.rank, lease_need.place, lease_need.arrival LIMIT $5;

-- Of each pool: when its oldest ticket was asked for, and its oldest lease granted.
-- name: oldest_load --
SELECT pool.name, (
    SELECT MIN(asked_at) FROM lease_need WHERE lease_need.pool = pool.name AND state = 'waiting'
), (
    SELECT MIN(granted_at) FROM lease_need WHERE lease_need.pool = pool.name AND state = 'granted'
)
FROM pool ORDER BY pool.name;

-- Owners and the units they occupy: most units first, then the earliest grant.
-- name: pool_holders_load --
SELECT owner, SUM(units)::bigint AS held FROM lease_need
WHERE pool = $1 AND state = 'granted'
GROUP BY owner ORDER BY held DESC, MIN(granted_at), owner;

-- Granted leases, oldest grants first, with their bodies: to decode those is faster than to select from JSON.
-- name: pool_holding_load --
SELECT lease_need.units, lease_need.granted_at, lease_need.owner, lease.body, lease.id
FROM lease_need JOIN lease ON lease.id = lease_need.lease
WHERE lease_need.pool = $1 AND lease_need.state = 'granted'
ORDER BY lease_need.granted_at LIMIT $2;

-- Leases that are kept beyond their deadlines; whether a deadline was postponed by an outage is
-- decided by `is_unheard`.
-- name: leases_load_silent --
SELECT lease.body, lease_due.heard_until
FROM lease_due JOIN lease ON lease.id = lease_due.lease
WHERE lease_due.heard_until <= $1 AND lease.state = 'granted' AND (lease.body::json ->> 'keep')::boolean;

-- name: lease_load_by_token --
SELECT lease.body, lease_due.heard_until
FROM lease_need JOIN lease ON lease.id = lease_need.lease
    LEFT JOIN lease_due ON lease_due.lease = lease.id
WHERE lease_need.pool = $1 AND lease_need.state = 'granted' AND lease_need.token = $2;

-- The rows with the given (pool, arrival, lease).
-- name: lease_needs_snapshot --
SELECT lease_need.pool, lease_need.arrival, lease_need.lease, lease_need.rank, lease_need.place,
    lease_need.units, lease_need.pull, lease_need.forced, lease_need.owner, lease_need.state, lease_need.token,
    lease_need.asked_at, lease_need.granted_at, lease_need.ended_at, lease_need.cause,
    lease_need.hold_until, lease_need.booking
FROM json_array_elements($1) AS one(value) JOIN lease_need
    ON lease_need.pool = one.value ->> 0 AND lease_need.arrival = (one.value ->> 1)::bigint
    AND lease_need.lease = one.value ->> 2;
