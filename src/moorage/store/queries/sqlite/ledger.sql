-- Statements of the ledger for SQLite. Sets arrive as JSON arrays. Blocks: noun first.

-- name: consumers_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- The writing connection has locked the whole file, so rows need no locks.
-- name: consumers_lock --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_lock --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_lock_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?1)) OR root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?2))
);

-- name: providers_load_by_name --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider WHERE name IN (SELECT value FROM json_each(?));

-- name: providers_load_by_parent --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider WHERE parent IN (SELECT value FROM json_each(?));

-- name: providers_load_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider WHERE root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?))
);

-- name: tags_load --
SELECT provider, traits, aggregates, updated_at
FROM provider_tags WHERE provider IN (SELECT value FROM json_each(?));

-- name: resource_classes_load --
SELECT name, created_at, updated_at
FROM resource_class WHERE name IN (SELECT value FROM json_each(?));

-- name: traits_load --
SELECT name, created_at, updated_at
FROM trait WHERE name IN (SELECT value FROM json_each(?));

-- Class names contain no quotes, so a quoted name cannot be part of another one.
-- name: resource_class_uses_count --
SELECT named.value, (SELECT COUNT(*) FROM (
    SELECT 1 FROM provider WHERE instr(inventories, '"' || named.value || '":') > 0 LIMIT ?2
)) FROM json_each(?1) AS named;

-- Trait names contain no quotes, so a quoted name cannot be part of another one.
-- name: trait_uses_count --
SELECT named.value, (SELECT COUNT(*) FROM (
    SELECT 1 FROM provider_tags WHERE instr(traits, '"' || named.value || '"') > 0 LIMIT ?2
)) FROM json_each(?1) AS named;

-- name: holders_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM holder JOIN consumer ON consumer.uuid = holder.consumer
WHERE holder.provider = ? ORDER BY uuid;

-- name: usages_load_by_project --
SELECT consumer.consumer_type, allocation.resource_class, SUM(allocation.amount)
FROM consumer JOIN allocation ON allocation.consumer = consumer.uuid
WHERE consumer.project_id = ?
GROUP BY consumer.consumer_type, allocation.resource_class
ORDER BY consumer.consumer_type, allocation.resource_class;

-- name: usages_load_by_user --
SELECT consumer.consumer_type, allocation.resource_class, SUM(allocation.amount)
FROM consumer JOIN allocation ON allocation.consumer = consumer.uuid
WHERE consumer.project_id = ? AND consumer.user_id = ?
GROUP BY consumer.consumer_type, allocation.resource_class
ORDER BY consumer.consumer_type, allocation.resource_class;

-- name: consumers_count_by_project --
SELECT consumer_type, COUNT(*) FROM consumer
WHERE project_id = ? GROUP BY consumer_type ORDER BY consumer_type;

-- name: consumers_count_by_user --
SELECT consumer_type, COUNT(*) FROM consumer
WHERE project_id = ? AND user_id = ? GROUP BY consumer_type ORDER BY consumer_type;

-- In the order in which the API lists them, by created_at: the order of the rows, without a sort.
-- name: providers_snapshot --
SELECT uuid, name, generation, parent, root, created_at, updated_at, inventories
FROM provider ORDER BY rowid;

-- name: tags_snapshot --
SELECT provider, traits, aggregates, updated_at FROM provider_tags ORDER BY provider;

-- name: resource_classes_snapshot --
SELECT name, created_at, updated_at FROM resource_class ORDER BY name;

-- name: traits_snapshot --
SELECT name, created_at, updated_at FROM trait ORDER BY name;

-- name: allocation_rename_class --
UPDATE consumer SET allocations = replace(allocations, '"' || ?2 || '":', '"' || ?1 || '":')
WHERE uuid IN (
    SELECT holder.consumer FROM holder JOIN provider ON provider.uuid = holder.provider
    WHERE instr(inventories, '"' || ?2 || '":') > 0
);

-- name: inventory_rename_class --
UPDATE provider SET inventories = replace(inventories, '"' || ?2 || '":', '"' || ?1 || '":')
WHERE instr(inventories, '"' || ?2 || '":') > 0;

-- name: resource_class_insert --
INSERT INTO resource_class (name, created_at, updated_at) VALUES (?, ?, ?);

-- name: resource_class_delete --
DELETE FROM resource_class WHERE name = ?;

-- name: trait_insert --
INSERT INTO trait (name, created_at, updated_at) VALUES (?, ?, ?);

-- name: trait_delete --
DELETE FROM trait WHERE name = ?;

-- name: provider_delete --
DELETE FROM provider WHERE uuid = ? AND generation = ?;

-- name: tags_delete_by_provider --
DELETE FROM provider_tags WHERE provider = ?;

-- A temporary name, longer than any that a client can send, while two providers swap names.
-- name: provider_name_free --
UPDATE provider SET name = printf('%.*c', 200, '/') || uuid WHERE uuid = ?;

-- name: provider_update --
UPDATE provider SET name = ?1, generation = ?2, parent = ?3, root = ?4, created_at = ?5,
    updated_at = ?6
WHERE uuid = ?7 AND generation = ?8;

-- For a provider that keeps its name and its place in the tree: no index changes.
-- name: provider_touch --
UPDATE provider SET generation = ?1, updated_at = ?2 WHERE uuid = ?3 AND generation = ?4;

-- The same with inventories: this is what a claim writes.
-- name: provider_use --
UPDATE provider SET generation = ?1, updated_at = ?2, inventories = ?3
WHERE uuid = ?4 AND generation = ?5;

-- name: provider_insert --
INSERT INTO provider (name, generation, parent, root, created_at, updated_at, inventories, uuid)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: inventories_write --
UPDATE provider SET inventories = ?1 WHERE uuid = ?2;

-- name: tags_upsert --
INSERT INTO provider_tags (provider, traits, aggregates, updated_at) VALUES (?, ?, ?, ?)
ON CONFLICT (provider) DO UPDATE SET traits = excluded.traits, aggregates = excluded.aggregates,
    updated_at = excluded.updated_at;

-- name: consumer_insert --
INSERT INTO consumer (generation, project_id, user_id, consumer_type, created_at, updated_at,
    allocations, uuid)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: consumer_update --
UPDATE consumer SET generation = ?1, project_id = ?2, user_id = ?3, consumer_type = ?4,
    created_at = ?5, updated_at = ?6, allocations = ?7
WHERE uuid = ?8 AND generation = ?9;

-- name: consumer_delete --
DELETE FROM consumer WHERE uuid = ? AND generation = ?;

-- name: holder_insert --
INSERT INTO holder (provider, consumer) VALUES (?, ?);

-- name: holder_delete --
DELETE FROM holder WHERE provider = ? AND consumer = ?;

-- name: inventory_sums_differ --
SELECT inventory.provider, inventory.resource_class, used, COALESCE(taken, 0)
FROM inventory LEFT JOIN (
    SELECT provider, resource_class, SUM(amount) AS taken FROM allocation
    GROUP BY provider, resource_class
) AS held ON held.provider = inventory.provider
    AND held.resource_class = inventory.resource_class
WHERE used <> COALESCE(taken, 0)
ORDER BY inventory.provider, inventory.resource_class;

-- name: tags_adrift --
SELECT provider FROM provider_tags
WHERE provider NOT IN (SELECT uuid FROM provider) ORDER BY provider;

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
SELECT uuid, generation FROM consumer WHERE generation < 1 ORDER BY uuid;

-- name: tags_names_load --
SELECT DISTINCT json_each.value FROM provider_tags, json_each(traits) ORDER BY 1;

-- name: inventory_classes_load --
SELECT DISTINCT resource_class FROM inventory ORDER BY 1;

-- name: integrity_check --
PRAGMA integrity_check;

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
