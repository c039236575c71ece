-- Agents and their groups for SQLite. Sets arrive as JSON arrays. Blocks: noun first.

-- The writing connection has locked the whole file, so rows need no locks.
-- name: agent_groups_lock --
SELECT name, body FROM agent_group WHERE name IN (SELECT value FROM json_each(?1))
    OR name IN (SELECT value FROM json_each(?2)) OR name IN (
        SELECT agent_group FROM agent WHERE uuid IN (SELECT value FROM json_each(?3))
    );

-- The agents of these UUIDs, and all members of these groups.
-- name: agents_lock --
SELECT uuid, body FROM agent WHERE uuid IN (SELECT value FROM json_each(?1))
    OR agent_group IN (SELECT value FROM json_each(?2));

-- name: agent_roots_load --
SELECT root, uuid FROM agent
WHERE root IN (SELECT value FROM json_each(?)) AND state = 'active';

-- `->>` would read some names of labels as paths.
-- name: agents_list --
SELECT uuid, body FROM agent
WHERE uuid > ?1 AND (?2 IS NULL OR agent_group = ?2) AND (?3 IS NULL OR policy = ?3)
    AND (?4 IS NULL OR state = ?4) AND (?5 IS NULL OR readiness = ?5)
    AND (?6 IS NULL OR liveness = ?6) AND (?7 IS NULL OR offered = ?7)
    AND (?8 IS NULL OR EXISTS (
        SELECT 1 FROM json_each(body, '$.labels') WHERE key = ?8 AND (?9 IS NULL OR value = ?9)
    ))
    AND uuid >= ?10 AND uuid < ?11
ORDER BY uuid LIMIT ?12;

-- name: agent_number_lock --
SELECT 1;

-- name: agent_upsert --
INSERT INTO agent (uuid, number, agent_group, root, policy, state, readiness, liveness, offered, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uuid) DO UPDATE SET agent_group = excluded.agent_group, root = excluded.root,
    policy = excluded.policy, state = excluded.state, readiness = excluded.readiness,
    liveness = excluded.liveness, offered = excluded.offered,
    body = excluded.body;

-- name: agent_group_upsert --
INSERT INTO agent_group (name, body) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: agent_group_delete --
DELETE FROM agent_group WHERE name = ?;

-- The parameters end with the time of this process: there is no other clock.
-- name: heard_upsert --
INSERT INTO agent_heard (process, ttl, stopped, ages, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (process) DO UPDATE SET at = excluded.at, ttl = excluded.ttl,
    stopped = excluded.stopped, ages = excluded.ages;

-- name: heard_load --
SELECT process, at, ttl, stopped, ages, ? FROM agent_heard;

-- name: heard_delete --
DELETE FROM agent_heard WHERE process <> ?1 AND at < ?2;

-- name: reporter_groups_load --
SELECT name, seen_at, body FROM reporter_group WHERE name IN (SELECT value FROM json_each(?));

-- name: deleted_reporter_groups_load --
SELECT name, deleted_at, tokens, pins_generation, instances, cleared FROM deleted_reporter_group
WHERE name IN (SELECT value FROM json_each(?));

-- name: deleted_reporter_group_upsert --
INSERT INTO deleted_reporter_group (name, deleted_at, tokens, pins_generation, instances, cleared)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET deleted_at = excluded.deleted_at, tokens = excluded.tokens,
    pins_generation = excluded.pins_generation, instances = excluded.instances,
    cleared = excluded.cleared;

-- name: deleted_reporter_group_delete --
DELETE FROM deleted_reporter_group WHERE name = ?;

-- name: reporters_load --
SELECT reporter_group, name, heard_until, last_pass, body FROM reporter
WHERE reporter_group IN (SELECT value FROM json_each(?));

-- The parameter is a JSON array of [group, node]. It may be long, so it is not read if there are no
-- pins at all, as is usual.
-- name: pins_load --
SELECT reporter_group, node, member FROM json_each(?) AS asked JOIN reporter_pin
    ON reporter_group = asked.value ->> 0 AND node = asked.value ->> 1
WHERE EXISTS (SELECT 1 FROM reporter_pin);

-- name: reporter_group_upsert --
INSERT INTO reporter_group (name, seen_at, body) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body;

-- name: reporter_group_delete --
DELETE FROM reporter_group WHERE name = ?;

-- name: reporter_group_seen --
UPDATE reporter_group SET seen_at = ?1 WHERE name = ?2;

-- name: reporter_upsert --
INSERT INTO reporter (reporter_group, name, heard_until, last_pass, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (reporter_group, name) DO UPDATE SET heard_until = excluded.heard_until,
    last_pass = excluded.last_pass, body = excluded.body;

-- name: reporter_passed --
UPDATE reporter SET last_pass = ?1 WHERE reporter_group = ?2 AND name = ?3;

-- name: reporter_heard --
UPDATE reporter SET heard_until = ?1 WHERE reporter_group = ?2 AND name = ?3;

-- name: reporter_delete --
DELETE FROM reporter WHERE reporter_group = ? AND name = ?;

-- name: pin_upsert --
INSERT INTO reporter_pin (reporter_group, node, member) VALUES (?, ?, ?)
ON CONFLICT (reporter_group, node) DO UPDATE SET member = excluded.member;

-- name: pin_delete --
DELETE FROM reporter_pin WHERE reporter_group = ? AND node = ?;
