-- Instants are microseconds since 1970; identifiers are lower-case UUIDs with dashes.
-- `inventories` is a JSON object by resource class: a claim changes one row. In each, `used` is the
-- sum of the allocations on it.
CREATE TABLE provider (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    parent TEXT COLLATE "C",
    root TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    inventories TEXT NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- The inventories as rows.
CREATE VIEW inventory AS
SELECT provider.uuid AS provider, held.key COLLATE "C" AS resource_class,
    (held.value ->> 'total')::bigint AS total, (held.value ->> 'reserved')::bigint AS reserved,
    (held.value ->> 'min_unit')::bigint AS min_unit,
    (held.value ->> 'max_unit')::bigint AS max_unit,
    (held.value ->> 'step_size')::bigint AS step_size,
    (held.value ->> 'allocation_ratio')::double precision AS allocation_ratio,
    (held.value ->> 'used')::bigint AS used, (held.value ->> 'created_at')::bigint AS created_at,
    (held.value ->> 'updated_at')::bigint AS updated_at
FROM provider, json_each(provider.inventories::json) AS held;

-- JSON arrays, sorted.
CREATE TABLE provider_tags (
    provider TEXT COLLATE "C" PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at BIGINT NOT NULL
) WITH (fillfactor = 70);

-- `allocations` is a JSON object: amounts by provider and resource class.
CREATE TABLE consumer (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    generation BIGINT NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    consumer_type TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    allocations TEXT NOT NULL
);
CREATE INDEX consumer_project_user ON consumer (project_id, user_id);

-- Who holds something on a provider.
CREATE TABLE holder (
    provider TEXT COLLATE "C" NOT NULL,
    consumer TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (provider, consumer)
);

-- What is held where, as rows.
CREATE VIEW allocation AS
SELECT consumer.uuid AS consumer, held.key COLLATE "C" AS provider,
    taken.key COLLATE "C" AS resource_class, taken.value::text::bigint AS amount
FROM consumer, json_each(consumer.allocations::json) AS held, json_each(held.value) AS taken;

-- Only custom ones; standard resource classes and traits come with the release.
CREATE TABLE resource_class (
    name TEXT COLLATE "C" PRIMARY KEY,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE trait (
    name TEXT COLLATE "C" PRIMARY KEY,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
