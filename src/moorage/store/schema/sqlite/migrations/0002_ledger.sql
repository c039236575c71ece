-- Instants are microseconds since 1970; identifiers are lower-case UUIDs with dashes.
CREATE TABLE provider (
    uuid TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    parent TEXT,
    root TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- `used` is the sum of the allocations on the inventory.
CREATE TABLE inventory (
    provider TEXT NOT NULL,
    resource_class TEXT NOT NULL,
    total INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    min_unit INTEGER NOT NULL,
    max_unit INTEGER NOT NULL,
    step_size INTEGER NOT NULL,
    allocation_ratio REAL NOT NULL,
    used INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (provider, resource_class)
) STRICT, WITHOUT ROWID;
CREATE INDEX inventory_resource_class ON inventory (resource_class);

-- JSON arrays, sorted.
CREATE TABLE provider_tags (
    provider TEXT PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE consumer (
    uuid TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    consumer_type TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX consumer_project_user ON consumer (project_id, user_id);

CREATE TABLE allocation (
    consumer TEXT NOT NULL,
    provider TEXT NOT NULL,
    resource_class TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (consumer, provider, resource_class)
) STRICT, WITHOUT ROWID;
CREATE INDEX allocation_provider ON allocation (provider);

-- Only custom ones; standard resource classes and traits come with the release.
CREATE TABLE resource_class (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trait (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
