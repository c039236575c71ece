-- Statements of the ledger for PostgreSQL. Sets arrive as JSON arrays, the rows of a write as one
-- array per column: side by side in a SELECT, they become rows without a copy of all rows, which
-- `FROM unnest` makes. Rows are locked in the order of their keys; statements that lock rows lock
-- the ledger first, see `clock.sql`. Blocks: noun first.

-- name: consumers_load --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: consumers_lock --
SELECT uuid, generation, project_id, user_id, consumer_type, created_at, updated_at, allocations
FROM consumer WHERE (SELECT pg_advisory_xact_lock_shared(778, 1)::text = '')
    AND uuid = ANY (ARRAY(SELECT json_array_elements_text($1)))
ORDER BY uuid FOR UPDATE;

-- name: providers_lock --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE (SELECT pg_advisory_xact_lock_shared(778, 1)::text = '')
    AND uuid = ANY (ARRAY(SELECT json_array_elements_text($1)))
ORDER BY uuid FOR UPDATE;

-- name: providers_lock_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE (SELECT pg_advisory_xact_lock_shared(778, 1)::text = '')
    AND (uuid = ANY (ARRAY(SELECT json_array_elements_text($1))) OR root = ANY (ARRAY(
        SELECT root FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($2)))
    )))
ORDER BY uuid FOR UPDATE;

-- name: providers_load --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: providers_load_with_trees --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)))
    OR root = ANY (ARRAY(
        SELECT root FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($2)))
    ));

-- name: holders_of --
SELECT provider, consumer FROM holder
WHERE provider = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: providers_load_by_name --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: providers_load_by_parent --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE parent = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: providers_load_by_tree --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider WHERE root = ANY (ARRAY(
    SELECT root FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)))
));

-- name: tags_load --
SELECT provider, traits, aggregates, updated_at, reported
FROM provider_tags WHERE provider = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: resource_classes_load --
SELECT name, created_at, updated_at
FROM resource_class WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: traits_load --
SELECT name, created_at, updated_at
FROM trait WHERE name = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- Class names contain no quotes, so a quoted name cannot be part of another one.
-- name: resource_class_uses_count --
SELECT counted.class, uses, uses > 0 AND EXISTS (
    SELECT 1 FROM provider
    WHERE agent IS NOT NULL AND strpos(inventories, '"' || counted.class || '":') > 0
) FROM (
    SELECT named.value AS class, (SELECT COUNT(*) FROM (
        SELECT 1 FROM provider WHERE strpos(inventories, '"' || named.value || '":') > 0
        LIMIT $2::bigint
    ) AS found) AS uses FROM json_array_elements_text($1) AS named(value)
) AS counted;

-- Trait names contain no quotes, so a quoted name cannot be part of another one.
-- name: trait_uses_count --
SELECT named.value, (SELECT COUNT(*) FROM (
    SELECT 1 FROM provider_tags WHERE strpos(traits, '"' || named.value || '"') > 0
    LIMIT $2::bigint
) AS found) FROM json_array_elements_text($1) AS named(value);

-- In the order in which the API lists them.
-- name: providers_snapshot --
SELECT uuid, name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories
FROM provider ORDER BY created_at, uuid;

-- name: allocation_rename_class --
-- A subquery that depends on `r` would be executed again for every consumer.
UPDATE consumer SET allocations = replace(allocations, '"' || r.old || '":', '"' || r.new || '":')
FROM (
    SELECT DISTINCT holder.consumer, renamed.new, renamed.old
    FROM unnest($1::text[], $2::text[]) AS renamed(new, old)
    JOIN provider ON strpos(provider.inventories, '"' || renamed.old || '":') > 0
    JOIN holder ON holder.provider = provider.uuid
) AS r
WHERE consumer.uuid = r.consumer;

-- name: inventory_rename_class --
UPDATE provider SET inventories = replace(inventories, '"' || r.old || '":', '"' || r.new || '":')
FROM unnest($1::text[], $2::text[]) AS r(new, old)
WHERE strpos(inventories, '"' || r.old || '":') > 0;

-- name: resource_class_insert --
INSERT INTO resource_class (name, created_at, updated_at)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[]);

-- name: resource_class_delete --
DELETE FROM resource_class USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: trait_insert --
INSERT INTO trait (name, created_at, updated_at)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::bigint[]);

-- name: trait_delete --
DELETE FROM trait USING unnest($1::text[]) AS r(gone) WHERE name = r.gone;

-- name: provider_delete --
DELETE FROM provider USING unnest($1::text[], $2::bigint[]) AS r(gone, loaded)
WHERE uuid = r.gone AND generation = r.loaded;

-- name: tags_delete_by_provider --
DELETE FROM provider_tags USING unnest($1::text[]) AS r(gone) WHERE provider = r.gone;

-- A temporary name, longer than any that a client can send, while two providers swap names.
-- name: provider_name_free --
UPDATE provider SET name = repeat('/', 200) || uuid
FROM unnest($1::text[]) AS r(renamed) WHERE uuid = r.renamed;

-- name: provider_update --
UPDATE provider SET name = r.name, generation = r.generation, parent = r.parent, root = r.root,
    created_at = r.created_at, updated_at = r.updated_at, agent = r.agent, withheld = r.withheld
FROM (SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), unnest($8::text[]),
    unnest($9::text[]), unnest($10::bigint[]))
    AS r(name, generation, parent, root, created_at, updated_at, agent, withheld, uuid, loaded)
WHERE provider.uuid = r.uuid AND provider.generation = r.loaded;

-- For a provider that keeps its name and its place in the tree: no index changes.
-- name: provider_touch --
UPDATE provider SET generation = r.generation, updated_at = r.updated_at
FROM (SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::bigint[]))
    AS r(generation, updated_at, uuid, loaded)
WHERE provider.uuid = r.uuid AND provider.generation = r.loaded;

-- The same with inventories: this is what a claim writes.
-- name: provider_use --
UPDATE provider SET generation = r.generation, updated_at = r.updated_at,
    inventories = r.inventories
FROM (SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]))
    AS r(generation, updated_at, inventories, uuid, loaded)
WHERE provider.uuid = r.uuid AND provider.generation = r.loaded;

-- name: provider_insert --
INSERT INTO provider (name, generation, parent, root, created_at, updated_at, agent, withheld,
    inventories, uuid)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), unnest($8::text[]),
    unnest($9::text[]), unnest($10::text[]);

-- name: inventories_write --
UPDATE provider SET inventories = r.inventories
FROM unnest($1::text[], $2::text[]) AS r(inventories, uuid) WHERE provider.uuid = r.uuid;

-- name: tags_upsert --
INSERT INTO provider_tags (provider, traits, aggregates, updated_at, reported)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::bigint[]),
    unnest($5::text[])
ON CONFLICT (provider) DO UPDATE SET traits = excluded.traits, aggregates = excluded.aggregates,
    updated_at = excluded.updated_at, reported = excluded.reported;

-- name: consumer_insert --
INSERT INTO consumer (generation, project_id, user_id, consumer_type, created_at, updated_at,
    allocations, uuid)
SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), unnest($8::text[]);

-- name: consumer_update --
UPDATE consumer SET generation = r.generation, project_id = r.project_id, user_id = r.user_id,
    consumer_type = r.consumer_type, created_at = r.created_at, updated_at = r.updated_at,
    allocations = r.allocations
FROM (SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), unnest($8::text[]),
    unnest($9::bigint[]))
    AS r(generation, project_id, user_id, consumer_type, created_at, updated_at, allocations, uuid,
        loaded)
WHERE consumer.uuid = r.uuid AND consumer.generation = r.loaded;

-- name: consumer_delete --
DELETE FROM consumer USING unnest($1::text[], $2::bigint[]) AS r(gone, loaded)
WHERE uuid = r.gone AND generation = r.loaded;

-- name: holder_insert --
INSERT INTO holder (provider, consumer, since)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bigint[]);

-- name: holder_delete --
DELETE FROM holder USING unnest($1::text[], $2::text[]) AS r(provider, consumer)
WHERE holder.provider = r.provider AND holder.consumer = r.consumer;

-- name: tags_names_load --
SELECT DISTINCT named.value COLLATE "C"
FROM provider_tags, json_array_elements_text(traits::json) AS named(value) ORDER BY 1;

-- The server checks its pages itself and reports damage.
-- name: integrity_check --
SELECT 'ok';

-- The text is looked at first: only few rows have a ghost.
-- name: ghosts_window --
SELECT provider FROM provider_tags
WHERE provider > $2 AND strpos(reported, '"ghost":true') > 0 AND EXISTS (
    SELECT 1 FROM json_array_elements(reported::json) AS one(value)
    WHERE one.value ->> 'group' = $1 AND (one.value ->> 'ghost')::boolean
) ORDER BY provider LIMIT $3;

-- name: marked_window --
SELECT provider FROM provider_tags WHERE provider > $2 AND EXISTS (
    SELECT 1 FROM json_array_elements(reported::json) AS one(value) WHERE one.value ->> 'group' = $1
) ORDER BY provider LIMIT $3;

-- name: reported_window --
SELECT provider, COALESCE((one.value ->> 'ghost')::boolean, FALSE)
FROM provider_tags, json_array_elements(reported::json) AS one(value)
WHERE provider > $2 AND one.value ->> 'group' = $1
    AND ((one.value ->> 'owned')::boolean OR (one.value ->> 'ghost')::boolean)
ORDER BY provider LIMIT $3;

-- name: provider_generations_load --
SELECT uuid, generation, created_at FROM provider WHERE uuid = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: reshapes_load --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by
FROM reshape WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1)));

-- name: reshape_insert --
INSERT INTO reshape (id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by,
    token_id, summary, generations, inverse)
SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::text[]), unnest($8::bigint[]),
    unnest($9::bigint[]), unnest($10::text[]), unnest($11::text[]), unnest($12::text[]),
    unnest($13::text[]), unnest($14::text[]), unnest($15::text[])
ON CONFLICT (id) DO NOTHING;

-- name: reshape_mark_undone --
UPDATE reshape SET undone_by = r.undoing
FROM unnest($1::text[], $2::text[]) AS r(undoing, undone)
WHERE id = r.undone AND undone_by IS NULL;

-- name: consumer_places_load --
SELECT uuid, generation FROM provider WHERE uuid = ANY (ARRAY(
    SELECT json_object_keys(allocations::json) FROM consumer WHERE consumer.uuid = $1
));

-- The same with a mark at those that have changed a provider of a tree.
-- name: reshapes_window_by_tree --
SELECT id, at, who, role, reason, digest, request, providers, consumers, undoes, undone_by, EXISTS (
    SELECT 1 FROM json_object_keys(generations::json -> 'providers') AS changed (uuid)
        JOIN provider ON provider.uuid = changed.uuid
    WHERE provider.root = (SELECT own.root FROM provider AS own WHERE own.uuid = $4)
) FROM reshape WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3;

-- What the consumers of `usage_consumers_count` hold, and how many of them hold it; groups of types
-- and of classes begin after $8. 
-- name: usage_amounts_load --
SELECT one, two, resource_class, SUM(amount)::bigint, COUNT(*) FROM (
    SELECT CASE $1::text WHEN 'type' THEN COALESCE(consumer_type, 'unknown')
            WHEN 'class' THEN taken.key COLLATE "C" ELSE project_id END AS one,
        CASE $1::text WHEN 'user' THEN user_id ELSE '' END AS two,
        taken.key COLLATE "C" AS resource_class, SUM(taken.value::text::bigint) AS amount
    FROM consumer, json_each(consumer.allocations::json) AS held, json_each(held.value) AS taken
    WHERE (project_id, user_id) >= ($2::text, $3::text) AND (project_id, user_id) <= ($4::text, $5::text)
        AND ($6::text IS NULL OR user_id = $6::text)
        AND ($7::text IS NULL OR COALESCE(consumer_type, 'unknown') = $7::text)
        AND ($10::text IS NULL OR taken.key COLLATE "C" = $10::text)
    GROUP BY project_id, user_id, consumer.uuid, taken.key COLLATE "C"
) AS held
WHERE one > $8::text GROUP BY one, two, resource_class ORDER BY one, two, resource_class LIMIT $9;

-- The same of all classes, without a count: that needs no sums by consumer first, half of the time.
-- name: usage_sums_load --
SELECT one, two, resource_class, SUM(amount)::bigint, 0 FROM (
    SELECT CASE $1::text WHEN 'type' THEN COALESCE(consumer_type, 'unknown') ELSE project_id END
            AS one,
        CASE $1::text WHEN 'user' THEN user_id ELSE '' END AS two,
        taken.key COLLATE "C" AS resource_class, taken.value::text::bigint AS amount
    FROM consumer, json_each(consumer.allocations::json) AS held, json_each(held.value) AS taken
    WHERE (project_id, user_id) >= ($2::text, $3::text)
        AND (project_id, user_id) <= ($4::text, $5::text)
        AND ($6::text IS NULL OR user_id = $6::text)
        AND ($7::text IS NULL OR COALESCE(consumer_type, 'unknown') = $7::text)
) AS held
WHERE one > $8::text GROUP BY one, two, resource_class ORDER BY one, two, resource_class LIMIT $9;
