-- The complete schema: the sum of the migrations, which a test proves. For readers; not run by the service.

-- Which migrations have been applied; the checksum is that of the file.
CREATE TABLE migration (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
);

-- The one logical clock: `revision` counts batches, `epoch` restores and failovers; change rows up
-- to revision `compacted` are gone. `lineage` names the history of the server that last wrote: when
-- another one goes on, the epoch rises. A process that knows only an older
-- format of rows than `minimum_version` may not write; `newest_version` is the newest of any process
-- that has written. `id` rises with each version of the row, so that the newest is the last of its
-- index, however many older ones an open snapshot keeps from being removed.
CREATE TABLE clock (
    id BIGINT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    compacted BIGINT NOT NULL,
    lineage TEXT,
    minimum_version BIGINT NOT NULL DEFAULT 1,
    newest_version BIGINT NOT NULL DEFAULT 1
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO clock (id, epoch, revision, compacted) VALUES (1, 1, 0, 0);

CREATE VIEW clock_now AS
SELECT epoch, revision, compacted, lineage, minimum_version, newest_version
FROM clock ORDER BY id DESC LIMIT 1;

-- What each batch changed: after-images, a body of NULL for what is gone.
CREATE TABLE change (
    revision BIGINT NOT NULL,
    n BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    body TEXT,
    PRIMARY KEY (revision, n)
);

-- Every committed transaction, for a process that lost its connection while committing. A row that
-- is not `kept` was written by whoever asked first: that transaction can no longer commit.
CREATE TABLE batch (
    id UUID PRIMARY KEY,
    revision BIGINT NOT NULL,
    kept BOOLEAN NOT NULL,
    asked BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
-- Receipts are forgotten by their age, whether or not revisions rise.
CREATE INDEX batch_created_at ON batch (created_at);
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
-- Only the SHA-256 of a token is kept. `roles` is a JSON array; `scope` a JSON object, the names
-- that a role outside of the ladder is bound to. A token that was rotated expires at the latest when
-- the grace is over. `used_at` is written about once an hour.
CREATE TABLE access_token (
    id TEXT COLLATE "C" PRIMARY KEY,
    sha256 TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    scope TEXT,
    expires_at BIGINT,
    rotated_at BIGINT,
    used_at BIGINT
);
-- Who did what to Moorage itself; `before` and `after` are JSON, NULL where there is nothing to tell.
CREATE TABLE audit (
    at BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    who TEXT NOT NULL,
    token_id TEXT,
    role TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (at, id)
);

-- Admission's time and the number of tickets so far, see `Timeline`; who decides holds its lock.
CREATE TABLE admission_clock (
    id BIGINT PRIMARY KEY,
    arrivals BIGINT NOT NULL,
    skew BIGINT NOT NULL,
    downtime BIGINT NOT NULL,
    alive_at BIGINT NOT NULL,
    outage_ended_at BIGINT NOT NULL
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO admission_clock (id, arrivals, skew, downtime, alive_at, outage_ended_at)
VALUES (1, 0, 0, 0, 0, 0);

-- A body is the whole value, JSON, as in its change row; the columns beside it are to search by.
CREATE TABLE pool (
    name TEXT COLLATE "C" PRIMARY KEY,
    quota BIGINT,
    gangs BIGINT NOT NULL,
    wake_at BIGINT,
    body TEXT NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX pool_wake_at ON pool (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX pool_gangs ON pool (name) WHERE gangs > 0;

CREATE TABLE slot (
    pool TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    lease TEXT COLLATE "C",
    body TEXT NOT NULL,
    PRIMARY KEY (pool, name)
) WITH (fillfactor = 70);
CREATE INDEX slot_name ON slot (name);

-- Tickets and leases, the ended ones for as long as keys are remembered. `pools` is a JSON array.
CREATE TABLE lease (
    id TEXT COLLATE "C" PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    arrival BIGINT NOT NULL,
    pools TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    body TEXT NOT NULL,
    UNIQUE (owner, key)
) WITH (fillfactor = 70);
CREATE INDEX lease_arrival ON lease (arrival, id);
CREATE INDEX lease_live ON lease (arrival, id) WHERE ended_at IS NULL;
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

-- Of those that live: the newest `heard_until`, which every renewal moves, and when they are over.
CREATE TABLE lease_due (
    lease TEXT COLLATE "C" PRIMARY KEY,
    heard_until BIGINT,
    due BIGINT
) WITH (fillfactor = 70);
CREATE INDEX lease_due_due ON lease_due (due) WHERE due IS NOT NULL;

-- Leases as their pools see them. `rank` is the priority, negated: lines are in ascending order.
CREATE TABLE lease_need (
    pool TEXT COLLATE "C" NOT NULL,
    arrival BIGINT NOT NULL,
    lease TEXT COLLATE "C" NOT NULL,
    rank BIGINT NOT NULL,
    units BIGINT NOT NULL,
    pull BOOLEAN NOT NULL,
    forced BOOLEAN NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    token TEXT,
    asked_at BIGINT NOT NULL,
    granted_at BIGINT,
    ended_at BIGINT,
    cause TEXT,
    PRIMARY KEY (pool, arrival, lease)
);
-- All that tells who of a line is passed over for sure stands in its index.
CREATE INDEX lease_need_line ON lease_need (pool, rank, arrival) INCLUDE (owner, units, forced)
    WHERE state = 'waiting';
CREATE INDEX lease_need_held ON lease_need (pool, granted_at) WHERE state = 'granted';
CREATE INDEX lease_need_past ON lease_need (pool, ended_at)
    WHERE state = 'ended' AND granted_at IS NOT NULL;

-- What became of starts; `units` is the pool's limit then.
CREATE TABLE outcome (
    pool TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    lease TEXT COLLATE "C" NOT NULL,
    result TEXT NOT NULL,
    units BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX outcome_at ON outcome (pool, at);

-- When this ledger was made: the time of the standard resource classes and traits.
CREATE TABLE beginning (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    at BIGINT NOT NULL
);
INSERT INTO beginning (id, at) VALUES (1, (extract(epoch FROM now()) * 1000000)::bigint);
