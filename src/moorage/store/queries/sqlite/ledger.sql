-- Statements of the ledger for SQLite. Sets arrive as JSON arrays. Blocks: noun first.

-- name: consumers_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- The writing connection holds the whole file, so nothing needs to be locked row by row.
-- name: consumers_lock --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- name: allocations_load_by_consumer --
SELECT consumer, provider, resource_class, amount FROM allocation
WHERE consumer IN (SELECT value FROM json_each(?))
ORDER BY consumer, provider, resource_class;

-- name: providers_lock --
SELECT uuid, name, generation, parent, root, created_at, updated_at
FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_lock_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at
FROM provider WHERE uuid IN (SELECT value FROM json_each(?1)) OR root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?2))
);

-- name: providers_load_by_name --
SELECT uuid, name, generation, parent, root, created_at, updated_at
FROM provider WHERE name IN (SELECT value FROM json_each(?));

-- name: providers_load_by_parent --
SELECT uuid, name, generation, parent, root, created_at, updated_at
FROM provider WHERE parent IN (SELECT value FROM json_each(?));

-- name: providers_load_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at
FROM provider WHERE root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?))
);

-- name: inventories_load --
SELECT provider, resource_class, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio, used, created_at, updated_at
FROM inventory WHERE provider IN (SELECT value FROM json_each(?));

-- name: tags_load --
SELECT provider, traits, aggregates, updated_at
FROM provider_tags WHERE provider IN (SELECT value FROM json_each(?));

-- name: resource_classes_load --
SELECT name, created_at, updated_at
FROM resource_class WHERE name IN (SELECT value FROM json_each(?));

-- name: traits_load --
SELECT name, created_at, updated_at
FROM trait WHERE name IN (SELECT value FROM json_each(?));

-- name: resource_class_uses_count --
SELECT resource_class, COUNT(*) FROM inventory
WHERE resource_class IN (SELECT value FROM json_each(?)) GROUP BY resource_class;

-- A trait's name has no quote in it, so its quoted form cannot be part of another one's.
-- name: trait_uses_count --
SELECT named.value, (
    SELECT COUNT(*) FROM provider_tags WHERE instr(traits, '"' || named.value || '"') > 0
) FROM json_each(?) AS named;

-- name: allocations_load_by_provider --
SELECT consumer.uuid, consumer.generation, allocation.resource_class, allocation.amount,
    consumer.updated_at
FROM allocation JOIN consumer ON consumer.uuid = allocation.consumer
WHERE allocation.provider = ?
ORDER BY consumer.uuid, allocation.resource_class;

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

-- name: providers_snapshot --
SELECT uuid, name, generation, parent, root, created_at, updated_at FROM provider ORDER BY uuid;

-- name: inventories_snapshot --
SELECT provider, resource_class, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio, used, created_at, updated_at
FROM inventory ORDER BY provider, resource_class;

-- name: tags_snapshot --
SELECT provider, traits, aggregates, updated_at FROM provider_tags ORDER BY provider;

-- name: resource_classes_snapshot --
SELECT name, created_at, updated_at FROM resource_class ORDER BY name;

-- name: traits_snapshot --
SELECT name, created_at, updated_at FROM trait ORDER BY name;

-- name: allocation_rename_class --
UPDATE allocation SET resource_class = ?1 WHERE resource_class = ?2
AND provider IN (SELECT provider FROM inventory WHERE resource_class = ?2);

-- name: inventory_rename_class --
UPDATE inventory SET resource_class = ?1 WHERE resource_class = ?2;

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

-- name: inventory_delete_by_provider --
DELETE FROM inventory WHERE provider = ?;

-- name: tags_delete_by_provider --
DELETE FROM provider_tags WHERE provider = ?;

-- A name longer than any client can send, while two of one batch change names with each other.
-- name: provider_name_free --
UPDATE provider SET name = printf('%.*c', 200, '/') || uuid WHERE uuid = ?;

-- name: provider_update --
UPDATE provider SET name = ?1, generation = ?2, parent = ?3, root = ?4, created_at = ?5,
    updated_at = ?6
WHERE uuid = ?7 AND generation = ?8;

-- Of a provider that keeps its name and its place: no index is touched.
-- name: provider_touch --
UPDATE provider SET generation = ?1, updated_at = ?2 WHERE uuid = ?3 AND generation = ?4;

-- name: provider_insert --
INSERT INTO provider (uuid, name, generation, parent, root, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: inventory_upsert --
INSERT INTO inventory (provider, resource_class, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio, used, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (provider, resource_class) DO UPDATE SET total = excluded.total,
    reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
    step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio,
    used = excluded.used, created_at = excluded.created_at, updated_at = excluded.updated_at;

-- name: inventory_delete --
DELETE FROM inventory WHERE provider = ? AND resource_class = ?;

-- name: tags_upsert --
INSERT INTO provider_tags (provider, traits, aggregates, updated_at) VALUES (?, ?, ?, ?)
ON CONFLICT (provider) DO UPDATE SET traits = excluded.traits, aggregates = excluded.aggregates,
    updated_at = excluded.updated_at;

-- name: consumer_insert --
INSERT INTO consumer (generation, project_id, user_id, consumer_type, created_at, updated_at, uuid)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: consumer_update --
UPDATE consumer SET generation = ?1, project_id = ?2, user_id = ?3, consumer_type = ?4,
    created_at = ?5, updated_at = ?6
WHERE uuid = ?7 AND generation = ?8;

-- name: consumer_delete --
DELETE FROM consumer WHERE uuid = ? AND generation = ?;

-- name: allocation_upsert --
INSERT INTO allocation (consumer, provider, resource_class, amount) VALUES (?, ?, ?, ?)
ON CONFLICT (consumer, provider, resource_class) DO UPDATE SET amount = excluded.amount;

-- name: allocation_delete --
DELETE FROM allocation WHERE consumer = ? AND provider = ? AND resource_class = ?;

-- name: inventory_sums_differ --
SELECT inventory.provider, inventory.resource_class, inventory.used, COALESCE(SUM(amount), 0)
FROM inventory LEFT JOIN allocation ON allocation.provider = inventory.provider
    AND allocation.resource_class = inventory.resource_class
GROUP BY inventory.provider, inventory.resource_class
HAVING inventory.used <> COALESCE(SUM(amount), 0)
ORDER BY inventory.provider, inventory.resource_class;

-- name: inventories_adrift --
SELECT provider, resource_class FROM inventory
WHERE provider NOT IN (SELECT uuid FROM provider) ORDER BY provider, resource_class;

-- name: tags_adrift --
SELECT provider FROM provider_tags
WHERE provider NOT IN (SELECT uuid FROM provider) ORDER BY provider;

-- name: allocations_adrift --
SELECT consumer, provider, resource_class FROM allocation WHERE NOT EXISTS (
    SELECT 1 FROM inventory WHERE inventory.provider = allocation.provider
        AND inventory.resource_class = allocation.resource_class
) ORDER BY consumer, provider, resource_class;

-- name: allocations_ownerless --
SELECT DISTINCT consumer FROM allocation
WHERE consumer NOT IN (SELECT uuid FROM consumer) ORDER BY consumer;

-- name: allocations_not_positive --
SELECT consumer, provider, resource_class, amount FROM allocation WHERE amount < 1
ORDER BY consumer, provider, resource_class;

-- name: consumers_idle --
SELECT uuid FROM consumer
WHERE uuid NOT IN (SELECT consumer FROM allocation) ORDER BY uuid;

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

-- name: inventories_wipe --
DELETE FROM inventory;

-- name: tags_wipe --
DELETE FROM provider_tags;

-- name: consumers_wipe --
DELETE FROM consumer;

-- name: allocations_wipe --
DELETE FROM allocation;

-- name: resource_classes_wipe --
DELETE FROM resource_class;

-- name: traits_wipe --
DELETE FROM trait;
