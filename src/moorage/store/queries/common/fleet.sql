-- Agents and their groups. Blocks: noun first.

-- name: agent_load --
SELECT body FROM agent WHERE uuid = $1;

-- name: agent_number_load --
SELECT COALESCE(MAX(number), 0) + 1 FROM agent;

-- name: agents_window --
SELECT body FROM agent WHERE uuid > $1 ORDER BY uuid LIMIT $2;

-- name: agents_all --
SELECT body FROM agent ORDER BY uuid;

-- name: agent_group_load --
SELECT body FROM agent_group WHERE name = $1;

-- name: agent_groups_window --
SELECT body FROM agent_group WHERE name > $1 ORDER BY name LIMIT $2;

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
DELETE FROM agent_group WHERE name <> $1;
