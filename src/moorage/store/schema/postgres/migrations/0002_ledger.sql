-- Instants are microseconds since 1970; identifiers are lower-case UUIDs with dashes.
CREATE TABLE provider (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    parent TEXT COLLATE "C",
    root TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- `used` is the sum of the allocations on the inventory.
CREATE TABLE inventory (
    provider TEXT COLLATE "C" NOT NULL,
    resource_class TEXT COLLATE "C" NOT NULL,
    total BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    min_unit BIGINT NOT NULL,
    max_unit BIGINT NOT NULL,
    step_size BIGINT NOT NULL,
    allocation_ratio DOUBLE PRECISION NOT NULL,
    used BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (provider, resource_class)
) WITH (fillfactor = 70);
CREATE INDEX inventory_resource_class ON inventory (resource_class);

-- JSON arrays, sorted.
CREATE TABLE provider_tags (
    provider TEXT COLLATE "C" PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at BIGINT NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE consumer (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    generation BIGINT NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    consumer_type TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX consumer_project_user ON consumer (project_id, user_id);

CREATE TABLE allocation (
    consumer TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    resource_class TEXT COLLATE "C" NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (consumer, provider, resource_class)
);
CREATE INDEX allocation_provider ON allocation (provider);

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
