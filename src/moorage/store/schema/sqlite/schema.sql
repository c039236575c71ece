-- The complete schema: the sum of the migrations, which a test proves. For readers; not run by the service.

-- Which migrations have been applied; the checksum is that of the file.
CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

-- The one logical clock: `revision` counts batches, `epoch` restores from a backup; change rows up
-- to revision `compacted` are gone.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    compacted INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, epoch, revision, compacted) VALUES (1, 1, 0, 0);

-- What each batch changed: after-images, a body of NULL for what is gone.
CREATE TABLE change (
    revision INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT,
    PRIMARY KEY (revision, n)
) STRICT, WITHOUT ROWID;

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

-- Only the SHA-256 of a token is kept. `roles` is a JSON array.
CREATE TABLE access_token (
    id TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Who did what to Moorage itself; `before` and `after` are JSON, NULL where there is nothing to tell.
CREATE TABLE audit (
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    who TEXT NOT NULL,
    token_id TEXT,
    role TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (at, id)
) STRICT, WITHOUT ROWID;
