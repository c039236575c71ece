-- Statements of the ledger. Blocks: noun first.

-- name: holders_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM holder JOIN consumer ON consumer.uuid = holder.consumer
WHERE holder.provider = $1 ORDER BY uuid;

-- name: tree_load --
SELECT uuid, parent FROM provider
WHERE root = (SELECT own.root FROM provider AS own WHERE own.uuid = $1) ORDER BY uuid;

-- The consumers that hold something in a tree, in the order in which they got it.
-- name: places_load_by_tree --
SELECT holder.provider, holder.since, consumer.uuid, consumer.allocations
FROM provider JOIN holder ON holder.provider = provider.uuid
    JOIN consumer ON consumer.uuid = holder.consumer
WHERE provider.root = (SELECT own.root FROM provider AS own WHERE own.uuid = $1)
ORDER BY holder.provider, holder.since, consumer.uuid;

-- name: usages_load_by_project --
SELECT consumer.consumer_type, allocation.resource_class, SUM(allocation.amount)::bigint
FROM consumer JOIN allocation ON allocation.consumer = consumer.uuid
WHERE consumer.project_id = $1
GROUP BY consumer.consumer_type, allocation.resource_class
ORDER BY consumer.consumer_type NULLS FIRST, allocation.resource_class;

-- name: usages_load_by_user --
SELECT consumer.consumer_type, allocation.resource_class, SUM(allocation.amount)::bigint
FROM consumer JOIN allocation ON allocation.consumer = consumer.uuid
WHERE consumer.project_id = $1 AND consumer.user_id = $2
GROUP BY consumer.consumer_type, allocation.resource_class
ORDER BY consumer.consumer_type NULLS FIRST, allocation.resource_class;

-- name: consumers_count_by_project --
SELECT consumer_type, COUNT(*) FROM consumer
WHERE project_id = $1 GROUP BY consumer_type ORDER BY consumer_type NULLS FIRST;

-- name: consumers_count_by_user --
SELECT consumer_type, COUNT(*) FROM consumer
WHERE project_id = $1 AND user_id = $2 GROUP BY consumer_type ORDER BY consumer_type NULLS FIRST;

-- The projects after one, each with the last of its users.
-- name: usage_projects_window --
SELECT project_id, MAX(user_id) FROM consumer WHERE project_id > $1
GROUP BY project_id ORDER BY project_id LIMIT $2;

-- name: usage_users_window --
SELECT DISTINCT project_id, user_id FROM consumer WHERE (project_id, user_id) > ($1, $2)
ORDER BY project_id, user_id LIMIT $3;

-- name: usage_project_load --
SELECT project_id, MAX(user_id) FROM consumer WHERE project_id = $1 GROUP BY project_id;

-- name: usage_last_load --
SELECT project_id, user_id FROM consumer ORDER BY project_id DESC, user_id DESC LIMIT 1;

-- The consumers of the users from one of a project to one of another one. $1 is what they are
-- grouped by; groups of types begin after $8.
-- name: usage_consumers_count --
SELECT one, two, COUNT(*) FROM (
    SELECT CASE $1::text WHEN 'type' THEN COALESCE(consumer_type, 'unknown') ELSE project_id END
            AS one,
        CASE $1::text WHEN 'user' THEN user_id ELSE '' END AS two
    FROM consumer
    WHERE (project_id, user_id) >= ($2::text, $3::text)
        AND (project_id, user_id) <= ($4::text, $5::text)
        AND ($6::text IS NULL OR user_id = $6::text)
        AND ($7::text IS NULL OR COALESCE(consumer_type, 'unknown') = $7::text)
) AS held
WHERE one > $8::text GROUP BY one, two ORDER BY one, two LIMIT $9;

-- name: tags_snapshot --
SELECT provider, traits, aggregates, updated_at, reported FROM provider_tags ORDER BY provider;

-- name: tags_reported_snapshot --
SELECT provider, traits, aggregates, updated_at, reported FROM provider_tags
WHERE reported <> '[]' ORDER BY provider;

-- name: resource_classes_snapshot --
SELECT name, created_at, updated_at FROM resource_class ORDER BY name;

-- name: traits_snapshot --
SELECT name, created_at, updated_at FROM trait ORDER BY name;

-- name: inventory_sums_differ --
SELECT inventory.provider, inventory.resource_class, used, COALESCE(taken, 0)
FROM inventory LEFT JOIN (
    SELECT provider, resource_class, SUM(amount)::bigint AS taken FROM allocation
    GROUP BY provider, resource_class
) AS held ON held.provider = inventory.provider
    AND held.resource_class = inventory.resource_class
WHERE used <> COALESCE(taken, 0)
ORDER BY inventory.provider, inventory.resource_class;

-- name: tags_adrift --
SELECT provider FROM provider_tags
WHERE NOT EXISTS (SELECT 1 FROM provider WHERE uuid = provider_tags.provider) ORDER BY provider;

-- name: allocations_adrift --
SELECT consumer, provider, resource_class FROM allocation WHERE NOT EXISTS (
    SELECT 1 FROM inventory WHERE inventory.provider = allocation.provider
        AND inventory.resource_class = allocation.resource_class
) ORDER BY consumer, provider, resource_class;

-- name: holders_missing --
SELECT provider, consumer FROM allocation EXCEPT SELECT provider, consumer FROM holder
ORDER BY provider, consumer;

-- name: holders_adrift --
SELECT provider, consumer FROM holder EXCEPT SELECT provider, consumer FROM allocation
ORDER BY provider, consumer;

-- name: allocations_not_positive --
SELECT consumer, provider, resource_class, amount FROM allocation WHERE amount < 1
ORDER BY consumer, provider, resource_class;

-- name: consumers_idle --
SELECT uuid FROM consumer WHERE allocations = '{}' ORDER BY uuid;

-- name: consumer_generations_wrong --
SELECT uuid, generation FROM consumer WHERE generation < 0 ORDER BY uuid;

-- name: inventory_classes_load --
SELECT DISTINCT resource_class FROM inventory ORDER BY 1;

-- name: providers_wipe --
DELETE FROM provider;

-- name: tags_wipe --
DELETE FROM provider_tags;

-- name: consumers_wipe --
DELETE FROM consumer;

-- name: holders_wipe --
DELETE FROM holder;

-- name: resource_classes_wipe --
DELETE FROM resource_class;

-- name: traits_wipe --
DELETE FROM trait;

-- name: ledger_rows_count --
SELECT (SELECT COUNT(*) FROM resource_class), (SELECT COUNT(*) FROM trait),
    (SELECT COUNT(*) FROM provider), (SELECT COUNT(*) FROM consumer);

-- name: resource_classes_window --
SELECT name, created_at, updated_at FROM resource_class WHERE name > $1 ORDER BY name LIMIT $2;

-- name: traits_window --
SELECT name, created_at, updated_at FROM trait WHERE name > $1 ORDER BY name LIMIT $2;

-- name: provider_rows_window --
SELECT uuid, name, generation, parent, root, created_at, provider.updated_at, agent, withheld,
    inventories, traits, aggregates
FROM provider LEFT JOIN provider_tags ON provider_tags.provider = provider.uuid
WHERE uuid > $1 ORDER BY uuid LIMIT $2;

-- Those that have no child.
-- name: provider_leaves_window --
SELECT uuid FROM provider
WHERE NOT EXISTS (SELECT 1 FROM provider AS child WHERE child.parent = provider.uuid)
ORDER BY uuid LIMIT $1;

-- name: providers_window --
SELECT uuid FROM provider WHERE uuid > $1 ORDER BY uuid LIMIT $2;

-- name: consumers_window --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid > $1 ORDER BY uuid LIMIT $2;

-- name: consumers_window_by_project --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE project_id = $3 AND uuid > $1 ORDER BY uuid LIMIT $2;

-- name: consumers_window_by_provider --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM holder JOIN consumer ON consumer.uuid = holder.consumer
WHERE holder.provider = $3 AND holder.consumer > $1 ORDER BY holder.consumer LIMIT $2;

-- name: consumers_window_by_tree --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM (
    SELECT DISTINCT holder.consumer AS held
    FROM provider JOIN holder ON holder.provider = provider.uuid
    WHERE provider.root = (SELECT own.root FROM provider AS own WHERE own.uuid = $3)
        AND holder.consumer > $1
    ORDER BY held LIMIT $2
) AS found JOIN consumer ON consumer.uuid = found.held ORDER BY uuid;

-- name: holders_count --
SELECT COUNT(*) FROM holder WHERE provider = $1;

-- name: holders_count_by_tree --
SELECT COUNT(DISTINCT holder.consumer) FROM provider JOIN holder ON holder.provider = provider.uuid
WHERE provider.root = (SELECT own.root FROM provider AS own WHERE own.uuid = $1);

-- name: reshape_load --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by,
    summary, generations, inverse
FROM reshape WHERE id = $1;

-- name: reshapes_snapshot --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by,
    summary, generations, inverse
FROM reshape WHERE (at, id) > ($1, $2) ORDER BY at, id LIMIT $3;

-- name: reshapes_window --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by
FROM reshape WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3;

-- name: reshapes_window_by_id --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by
FROM reshape WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3;

-- name: reshapes_delete --
DELETE FROM reshape WHERE id IN (
    SELECT id FROM reshape WHERE at < $1 ORDER BY at, id LIMIT $2
) RETURNING id;
