-- Agents and their groups. Blocks: noun first.

-- name: agent_load --
SELECT uuid, body FROM agent WHERE uuid = $1;

-- name: agent_number_load --
SELECT COALESCE(MAX(number), 0) + 1 FROM agent;

-- name: agents_window --
SELECT uuid, body FROM agent WHERE uuid > $1 ORDER BY uuid LIMIT $2;

-- Whole rows, for the check.
-- name: agents_snapshot --
SELECT uuid, number, agent_group, root, policy, state, readiness, liveness, offered, body
FROM agent ORDER BY uuid;

-- name: agent_groups_snapshot --
SELECT name, body FROM agent_group ORDER BY name;

-- name: agent_group_load --
SELECT name, body FROM agent_group WHERE name = $1;

-- name: agent_groups_window --
SELECT name, body FROM agent_group WHERE name > $1 ORDER BY name LIMIT $2;

-- Agents that are in service, by group and liveness.
-- name: agent_groups_count --
SELECT agent_group, liveness, COUNT(*) FROM agent
WHERE state = 'active' AND policy = 'in_service' GROUP BY agent_group, liveness;

-- name: agents_count --
SELECT agent_group, COUNT(*) FROM agent WHERE state = 'active' GROUP BY agent_group;

-- name: agents_wipe --
DELETE FROM agent;

-- name: heard_wipe --
DELETE FROM agent_heard;

-- name: agent_groups_wipe --
DELETE FROM agent_group;

-- Groups of reporters. `clock_load` comes with them: tokens are counted within an epoch.
-- name: reporter_groups_window --
SELECT name, seen_at, body FROM reporter_group WHERE name > $1 ORDER BY name LIMIT $2;

-- name: reporter_groups_snapshot --
SELECT name, seen_at, body FROM reporter_group ORDER BY name;

-- name: reporter_group_load --
SELECT name, seen_at, body FROM reporter_group WHERE name = $1;

-- name: reporters_load_by_group --
SELECT reporter_group, name, heard_until, last_pass, body FROM reporter WHERE reporter_group = $1 ORDER BY name;

-- name: reporters_snapshot --
SELECT reporter_group, name, heard_until, last_pass, body FROM reporter ORDER BY reporter_group, name;

-- name: pins_window --
SELECT node, member FROM reporter_pin WHERE reporter_group = $1 AND node > $2
ORDER BY node LIMIT $3;

-- name: pins_count --
SELECT member, COUNT(*) FROM reporter_pin WHERE reporter_group = $1 GROUP BY member ORDER BY member;

-- Those of a group that is being deleted are removed soon.
-- name: pins_adrift --
SELECT reporter_group, node FROM reporter_pin WHERE NOT EXISTS (
    SELECT 1 FROM reporter_group WHERE name = reporter_pin.reporter_group
) AND NOT EXISTS (
    SELECT 1 FROM deleted_reporter_group WHERE name = reporter_pin.reporter_group AND cleared = 0
) ORDER BY reporter_group, node;

-- Deleted groups of reporters, and whether there is another group of the name again.
-- name: deleted_reporter_groups_snapshot --
SELECT gone.name, deleted_at, tokens, gone.pins_generation, instances, cleared,
    reporter_group.name IS NOT NULL
FROM deleted_reporter_group AS gone LEFT JOIN reporter_group ON reporter_group.name = gone.name
ORDER BY gone.name;

-- name: deleted_reporter_groups_wipe --
DELETE FROM deleted_reporter_group;

-- name: reporter_groups_wipe --
DELETE FROM reporter_group;

-- name: reporters_wipe --
DELETE FROM reporter;

-- name: pins_wipe --
DELETE FROM reporter_pin;
