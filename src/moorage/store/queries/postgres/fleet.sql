-- Agents and their groups for PostgreSQL. Sets arrive as JSON arrays, the rows of a write as one array
-- per column. Groups are locked before agents, and rows in the order of their keys. Blocks: noun
-- first.

-- Groups whose members decide by them; those to be changed are locked exclusively first.
-- name: agent_groups_lock --
WITH changed AS MATERIALIZED (
    SELECT name, body FROM agent_group
    WHERE name = ANY (ARRAY(SELECT json_array_elements_text($2))) ORDER BY name FOR UPDATE
), shared AS MATERIALIZED (
    SELECT name, body FROM agent_group
    WHERE name <> ALL (ARRAY(SELECT json_array_elements_text($2)))
        AND (name = ANY (ARRAY(SELECT json_array_elements_text($1))) OR name = ANY (ARRAY(
            SELECT agent_group FROM agent
            WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($3)))
        )))
    ORDER BY name FOR SHARE
)
SELECT name, body FROM changed UNION ALL SELECT name, body FROM shared;

-- The agents of these UUIDs, and all members of these groups.
-- name: agents_lock --
SELECT uuid, body FROM agent WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)))
    OR agent_group = ANY (ARRAY(SELECT json_array_elements_text($2)))
ORDER BY uuid FOR UPDATE;

-- name: agent_roots_load --
SELECT root, uuid FROM agent
WHERE root = ANY (ARRAY(SELECT json_array_elements_text($1))) AND state = 'active';

-- name: agents_list --
SELECT uuid, body FROM agent
WHERE uuid > $1 AND ($2::text IS NULL OR agent_group = $2) AND ($3::text IS NULL OR policy = $3)
    AND ($4::text IS NULL OR state = $4) AND ($5::text IS NULL OR readiness = $5)
    AND ($6::text IS NULL OR liveness = $6) AND ($7::bigint IS NULL OR offered = $7)
    AND ($8::text IS NULL OR (body::json -> 'labels' ->> $8 IS NOT NULL
        AND ($9::text IS NULL OR body::json -> 'labels' ->> $8 = $9)))
    AND uuid >= $10 AND uuid < $11
ORDER BY uuid LIMIT $12;

-- Only one transaction at a time creates agents, so that none takes the number of another.
-- name: agent_number_lock --
SELECT pg_advisory_xact_lock(778, 4);

-- name: agent_upsert --
INSERT INTO agent (uuid, number, agent_group, root, policy, state, readiness, liveness, offered, body)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::text[]), unnest($8::text[]),
    unnest($9::bigint[]), unnest($10::text[])
ON CONFLICT (uuid) DO UPDATE SET agent_group = excluded.agent_group, root = excluded.root,
    policy = excluded.policy, state = excluded.state, readiness = excluded.readiness,
    liveness = excluded.liveness, offered = excluded.offered,
    body = excluded.body;

-- name: agent_group_upsert --
INSERT INTO agent_group (name, body) SELECT unnest($1::text[]), unnest($2::text[])
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: agent_group_delete --
DELETE FROM agent_group USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- The time of this process, the last parameter, is not used: processes share the database's clock.
-- name: heard_upsert --
INSERT INTO agent_heard (process, ttl, stopped, ages, at)
SELECT r.process, r.ttl, r.stopped, r.ages, GREATEST(
    floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint, r.unused * 0
) FROM (SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::text[]),
    unnest($5::bigint[]))
    AS r(process, ttl, stopped, ages, unused)
ON CONFLICT (process) DO UPDATE SET at = excluded.at, ttl = excluded.ttl,
    stopped = excluded.stopped, ages = excluded.ages;

-- name: heard_load --
SELECT process, at, ttl, stopped, ages,
    floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $1::bigint * 0
FROM agent_heard;

-- name: heard_delete --
DELETE FROM agent_heard USING unnest($1::text[], $2::bigint[]) AS r(process, before)
WHERE agent_heard.process <> r.process AND at < r.before;

-- What reads these to decide has locked service time, so the rows need no locks.
-- name: reporter_groups_load --
SELECT name, seen_at, body FROM reporter_group
WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: deleted_reporter_groups_load --
SELECT name, deleted_at, tokens, pins_generation, instances, cleared FROM deleted_reporter_group
WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: deleted_reporter_group_upsert --
INSERT INTO deleted_reporter_group (name, deleted_at, tokens, pins_generation, instances, cleared)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]),
    unnest($5::text[]), unnest($6::bigint[])
ON CONFLICT (name) DO UPDATE SET deleted_at = excluded.deleted_at, tokens = excluded.tokens,
    pins_generation = excluded.pins_generation, instances = excluded.instances,
    cleared = excluded.cleared;

-- name: deleted_reporter_group_delete --
DELETE FROM deleted_reporter_group USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: reporters_load --
SELECT reporter_group, name, heard_until, last_pass, body FROM reporter
WHERE reporter_group = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- The parameter is a JSON array of [group, node]. It may be long, so it is not read if there are no
-- pins at all, as is usual.
-- name: pins_load --
SELECT reporter_group, node, member FROM json_array_elements($1) AS asked(value) JOIN reporter_pin
    ON reporter_group = asked.value ->> 0 AND node = asked.value ->> 1
WHERE EXISTS (SELECT 1 FROM reporter_pin);

-- name: reporter_group_upsert --
INSERT INTO reporter_group (name, seen_at, body)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[])
ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body;

-- name: reporter_group_delete --
DELETE FROM reporter_group USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: reporter_group_seen --
UPDATE reporter_group SET seen_at = r.seen_at
FROM unnest($1::bigint[], $2::text[]) AS r(seen_at, name) WHERE reporter_group.name = r.name;

-- name: reporter_upsert --
INSERT INTO reporter (reporter_group, name, heard_until, last_pass, body)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bigint[]), unnest($4::text[]),
    unnest($5::text[])
ON CONFLICT (reporter_group, name) DO UPDATE SET heard_until = excluded.heard_until,
    last_pass = excluded.last_pass, body = excluded.body;

-- name: reporter_passed --
UPDATE reporter SET last_pass = r.last_pass
FROM (SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]))
    AS r(last_pass, reporter_group, name)
WHERE reporter.reporter_group = r.reporter_group AND reporter.name = r.name;

-- name: reporter_heard --
UPDATE reporter SET heard_until = r.heard_until
FROM (SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::text[]))
    AS r(heard_until, reporter_group, name)
WHERE reporter.reporter_group = r.reporter_group AND reporter.name = r.name;

-- name: reporter_delete --
DELETE FROM reporter USING unnest($1::text[], $2::text[]) AS r(reporter_group, name)
WHERE reporter.reporter_group = r.reporter_group AND reporter.name = r.name;

-- name: pin_upsert --
INSERT INTO reporter_pin (reporter_group, node, member)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[])
ON CONFLICT (reporter_group, node) DO UPDATE SET member = excluded.member;

-- name: pin_delete --
DELETE FROM reporter_pin USING unnest($1::text[], $2::text[]) AS r(reporter_group, node)
WHERE reporter_pin.reporter_group = r.reporter_group AND reporter_pin.node = r.node;
