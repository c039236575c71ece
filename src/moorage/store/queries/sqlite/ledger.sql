-- Statements of the ledger for SQLite. Sets arrive as JSON arrays. Blocks: noun first.

-- name: consumers_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- The writing connection has locked the whole file, so rows need no locks.
-- name: consumers_lock --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_lock --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_lock_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?1)) OR root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?2))
);

-- name: providers_load --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: providers_load_with_trees --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid IN (SELECT value FROM json_each(?1)) OR root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?2))
);

-- name: holders_of --
SELECT provider, consumer FROM holder WHERE provider IN (SELECT value FROM json_each(?));

-- name: providers_load_by_name --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE name IN (SELECT value FROM json_each(?));

-- name: providers_load_by_parent --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE parent IN (SELECT value FROM json_each(?));

-- name: providers_load_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE root IN (
    SELECT root FROM provider WHERE uuid IN (SELECT value FROM json_each(?))
);

-- name: tags_load --
SELECT provider, traits, aggregates, updated_at, reported
FROM provider_tags WHERE provider IN (SELECT value FROM json_each(?));

-- name: resource_classes_load --
SELECT name, created_at, updated_at
FROM resource_class WHERE name IN (SELECT value FROM json_each(?));

-- name: traits_load --
SELECT name, created_at, updated_at
FROM trait WHERE name IN (SELECT value FROM json_each(?));

-- Class names contain no quotes, so a quoted name cannot be part of another one.
-- name: resource_class_uses_count --
SELECT counted.class, uses, uses > 0 AND EXISTS (
    SELECT 1 FROM provider
    WHERE agent IS NOT NULL AND instr(inventories, '"' || counted.class || '":') > 0
) FROM (
    SELECT named.value AS class, (SELECT COUNT(*) FROM (
        SELECT 1 FROM provider WHERE instr(inventories, '"' || named.value || '":') > 0 LIMIT ?2
    )) AS uses FROM json_each(?1) AS named
) AS counted;

-- Trait names contain no quotes, so a quoted name cannot be part of another one.
-- name: trait_uses_count --
SELECT named.value, (SELECT COUNT(*) FROM (
    SELECT 1 FROM provider_tags WHERE instr(traits, '"' || named.value || '"') > 0 LIMIT ?2
)) FROM json_each(?1) AS named;

-- In the order in which the API lists them, by created_at: the order of the rows, without a sort.
-- name: providers_snapshot --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider ORDER BY rowid;

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
    updated_at = ?6, agent = ?7, withheld = ?8
WHERE uuid = ?9 AND generation = ?10;

-- For a provider that keeps its name and its place in the tree: no index changes.
-- name: provider_touch --
UPDATE provider SET generation = ?1, updated_at = ?2 WHERE uuid = ?3 AND generation = ?4;

-- The same with inventories: this is what a claim writes.
-- name: provider_use --
UPDATE provider SET generation = ?1, updated_at = ?2, inventories = ?3
WHERE uuid = ?4 AND generation = ?5;

-- name: provider_insert --
INSERT INTO provider (name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories, uuid)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: inventories_write --
UPDATE provider SET inventories = ?1 WHERE uuid = ?2;

-- name: tags_upsert --
INSERT INTO provider_tags (provider, traits, aggregates, updated_at, reported)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (provider) DO UPDATE SET traits = excluded.traits, aggregates = excluded.aggregates,
    updated_at = excluded.updated_at, reported = excluded.reported;

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
INSERT INTO holder (provider, consumer, since) VALUES (?, ?, ?);

-- name: holder_delete --
DELETE FROM holder WHERE provider = ? AND consumer = ?;

-- name: tags_names_load --
SELECT DISTINCT json_each.value FROM provider_tags, json_each(traits) ORDER BY 1;

-- name: integrity_check --
PRAGMA integrity_check;

-- The text is looked at first: only few rows have a ghost.
-- name: ghosts_window --
SELECT provider FROM provider_tags
WHERE provider > ?2 AND instr(reported, '"ghost":true') > 0 AND EXISTS (
    SELECT 1 FROM json_each(reported) AS one
    WHERE one.value ->> 'group' = ?1 AND one.value ->> 'ghost'
) ORDER BY provider LIMIT ?3;

-- name: marked_window --
SELECT provider FROM provider_tags WHERE provider > ?2 AND EXISTS (
    SELECT 1 FROM json_each(reported) AS one WHERE one.value ->> 'group' = ?1
) ORDER BY provider LIMIT ?3;

-- name: reported_window --
SELECT provider, one.value ->> 'ghost'
FROM provider_tags, json_each(reported) AS one
WHERE provider > ?2 AND one.value ->> 'group' = ?1
    AND (one.value ->> 'owned' OR one.value ->> 'ghost')
ORDER BY provider LIMIT ?3;

-- name: provider_generations_load --
SELECT uuid, generation, created_at FROM provider WHERE uuid IN (SELECT value FROM json_each(?));

-- name: reshapes_load --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by
FROM reshape WHERE id IN (SELECT value FROM json_each(?));

-- name: reshape_insert --
INSERT INTO reshape (id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by,
    token_id, summary, generations, inverse)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: reshape_mark_undone --
UPDATE reshape SET undone_by = ?1 WHERE id = ?2 AND undone_by IS NULL;

-- name: consumer_places_load --
SELECT uuid, generation FROM provider WHERE uuid IN (
    SELECT held.key FROM consumer, json_each(consumer.allocations) AS held WHERE consumer.uuid = ?
);

-- The same with a mark at those that have changed a provider of a tree.
-- name: reshapes_window_by_tree --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by, EXISTS (
    SELECT 1 FROM json_each(generations, '$.providers') AS changed
        JOIN provider ON provider.uuid = changed.key
    WHERE provider.root = (SELECT own.root FROM provider AS own WHERE own.uuid = ?4)
) FROM reshape WHERE (at, id) < (?1, ?2) ORDER BY at DESC, id DESC LIMIT ?3;

-- What the consumers of `usage_consumers_count` hold, and how many of them hold it; groups of types
-- and of classes begin after ?8. Not by uuid: then SQLite would not use the index of projects.
-- name: usage_amounts_load --
SELECT one, two, resource_class, SUM(amount), COUNT(*) FROM (
    SELECT CASE ?1 WHEN 'type' THEN COALESCE(consumer_type, 'unknown')
            WHEN 'class' THEN taken.key ELSE project_id END AS one,
        CASE ?1 WHEN 'user' THEN user_id ELSE '' END AS two,
        taken.key AS resource_class, SUM(taken.value) AS amount
    FROM consumer, json_each(consumer.allocations) AS held, json_each(held.value) AS taken
    WHERE (project_id, user_id) >= (?2, ?3) AND (project_id, user_id) <= (?4, ?5)
        AND (?6 IS NULL OR user_id = ?6)
        AND (?7 IS NULL OR COALESCE(consumer_type, 'unknown') = ?7)
        AND (?10 IS NULL OR taken.key = ?10)
    GROUP BY project_id, user_id, consumer.rowid, taken.key
) AS held
WHERE one > ?8 GROUP BY one, two, resource_class ORDER BY one, two, resource_class LIMIT ?9;

-- The same of all classes, without a count: that needs no sums by consumer first, half of the time.
-- name: usage_sums_load --
SELECT one, two, resource_class, SUM(amount), 0 FROM (
    SELECT CASE ?1 WHEN 'type' THEN COALESCE(consumer_type, 'unknown') ELSE project_id END AS one,
        CASE ?1 WHEN 'user' THEN user_id ELSE '' END AS two,
        taken.key AS resource_class, taken.value AS amount
    FROM consumer, json_each(consumer.allocations) AS held, json_each(held.value) AS taken
    WHERE (project_id, user_id) >= (?2, ?3) AND (project_id, user_id) <= (?4, ?5)
        AND (?6 IS NULL OR user_id = ?6)
        AND (?7 IS NULL OR COALESCE(consumer_type, 'unknown') = ?7)
) AS held
WHERE one > ?8 GROUP BY one, two, resource_class ORDER BY one, two, resource_class LIMIT ?9;
