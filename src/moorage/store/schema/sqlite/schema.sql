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
-- `inventories` is a JSON object by resource class: a claim changes one row of one page. In each,
-- `used` is the sum of the allocations on it.
CREATE TABLE provider (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    parent TEXT,
    root TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    inventories TEXT NOT NULL
) STRICT;
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- The inventories as rows.
CREATE VIEW inventory AS
SELECT provider.uuid AS provider, held.key AS resource_class, held.value ->> 'total' AS total,
    held.value ->> 'reserved' AS reserved, held.value ->> 'min_unit' AS min_unit,
    held.value ->> 'max_unit' AS max_unit, held.value ->> 'step_size' AS step_size,
    held.value ->> 'allocation_ratio' AS allocation_ratio, held.value ->> 'used' AS used,
    held.value ->> 'created_at' AS created_at, held.value ->> 'updated_at' AS updated_at
FROM provider, json_each(provider.inventories) AS held;

-- JSON arrays, sorted.
CREATE TABLE provider_tags (
    provider TEXT PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `allocations` is a JSON object: amounts by provider and resource class. With row numbers, rows and
-- the entries of a project are appended, wherever the UUID falls.
CREATE TABLE consumer (
    uuid TEXT PRIMARY KEY NOT NULL,
    generation INTEGER NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    consumer_type TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    allocations TEXT NOT NULL
) STRICT;
CREATE INDEX consumer_project_user ON consumer (project_id, user_id);

-- Who holds something on a provider.
CREATE TABLE holder (
    provider TEXT NOT NULL,
    consumer TEXT NOT NULL,
    PRIMARY KEY (provider, consumer)
) STRICT, WITHOUT ROWID;

-- What is held where, as rows.
CREATE VIEW allocation AS
SELECT consumer.uuid AS consumer, held.key AS provider, taken.key AS resource_class,
    taken.value AS amount
FROM consumer, json_each(consumer.allocations) AS held, json_each(held.value) AS taken;

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
