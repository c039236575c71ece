-- The applied migrations, with the checksums of their files.
CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

-- The single logical clock: `revision` counts batches, `epoch` counts restores from a backup;
-- change rows up to revision `compacted` were deleted. A process that knows only older formats of
-- rows than `minimum_version` may not write; `newest_version` is the newest format of any process
-- that has written. `importing` is the import that is under way, as JSON; NULL: none.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    compacted INTEGER NOT NULL,
    minimum_version INTEGER NOT NULL DEFAULT 1,
    newest_version INTEGER NOT NULL DEFAULT 1,
    importing TEXT
) STRICT;
INSERT INTO clock (id, epoch, revision, compacted) VALUES (1, 1, 0, 0);

-- The changes of each batch: after-images; the body is NULL if the object was deleted.
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
-- `inventories` is a JSON object by resource class: a claim changes only one row of one page. In
-- each of them, `used` is the sum of the allocations on it; members that equal a default are
-- omitted. `agent` manages classes of the provider. `withheld` says why nothing is offered.
CREATE TABLE provider (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    parent TEXT,
    root TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    inventories TEXT NOT NULL,
    agent TEXT,
    withheld TEXT
) STRICT;
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- The inventories as rows.
CREATE VIEW inventory AS
SELECT provider.uuid AS provider, held.key AS resource_class, held.value ->> 'total' AS total,
    COALESCE(held.value ->> 'reserved', 0) AS reserved,
    COALESCE(held.value ->> 'min_unit', 1) AS min_unit,
    COALESCE(held.value ->> 'max_unit', 2147483647) AS max_unit,
    COALESCE(held.value ->> 'step_size', 1) AS step_size,
    COALESCE(held.value ->> 'allocation_ratio', 1.0) AS allocation_ratio,
    held.value ->> 'offered' AS offered, COALESCE(held.value ->> 'withheld', 0) AS withheld,
    COALESCE(held.value ->> 'used', 0) AS used,
    COALESCE(held.value ->> 'created_at', 0) AS created_at,
    COALESCE(held.value ->> 'updated_at', 0) AS updated_at
FROM provider, json_each(provider.inventories) AS held;

-- JSON arrays, sorted. `reported`: what the reports of each group have set on the provider.
CREATE TABLE provider_tags (
    provider TEXT PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    reported TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;

-- `allocations` is a JSON object: amounts by provider and resource class. The table has rowids, so
-- that rows and the index entries of a project are appended, whatever their UUIDs.
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

-- The consumers that have allocations on a provider. `since` is its generation when the consumer got
-- the first one: the order in which a machine starts them.
CREATE TABLE holder (
    provider TEXT NOT NULL,
    consumer TEXT NOT NULL,
    since INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, consumer)
) STRICT, WITHOUT ROWID;

-- The allocations as rows.
CREATE VIEW allocation AS
SELECT consumer.uuid AS consumer, held.key AS provider, taken.key AS resource_class,
    taken.value AS amount
FROM consumer, json_each(consumer.allocations) AS held, json_each(held.value) AS taken;

-- Only custom resource classes and traits; the standard ones come with the release.
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

-- Only the SHA-256 of a token is stored. `roles` is a JSON array; `scope` is a JSON object with the
-- names to which a role outside of the ladder is bound. A rotated token expires at the latest when
-- its grace period ends. `used_at` is written about once an hour.
CREATE TABLE access_token (
    id TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    scope TEXT,
    expires_at INTEGER,
    rotated_at INTEGER,
    used_at INTEGER,
    ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX access_token_ended ON access_token (ended) WHERE ended IS NOT NULL;

-- How many tokens were revoked or rotated: the number of each end is in `access_token.ended`.
CREATE TABLE token_ends (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ends INTEGER NOT NULL
) STRICT;
INSERT INTO token_ends (id, ends) VALUES (1, 0);

-- Who did what to Moorage itself; `before` and `after` are JSON, NULL if there is no such state.
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
CREATE INDEX audit_target ON audit (target, at, id);

-- Committed reshapes: who did what. `request` identifies the request, for repetitions. `summary` is what
-- people see, `inverse` what undoes it; both are JSON, as are the `generations` that it has led to.
CREATE TABLE reshape (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    role TEXT NOT NULL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL,
    request TEXT NOT NULL,
    providers INTEGER NOT NULL,
    consumers INTEGER NOT NULL,
    undoes TEXT,
    undone_by TEXT,
    token_id TEXT,
    summary TEXT NOT NULL,
    generations TEXT NOT NULL,
    inverse TEXT NOT NULL
) STRICT;
CREATE INDEX reshape_at ON reshape (at, id);

-- The number of tickets so far; every decision of admission locks this row.
CREATE TABLE admission_clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    arrivals INTEGER NOT NULL
) STRICT;
INSERT INTO admission_clock (id, arrivals) VALUES (1, 0);

-- How service time relates to the wall clock, see `Timeline`; every batch that decides by service
-- time locks this row, after the rows of its rooms.
CREATE TABLE service_clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    skew INTEGER NOT NULL,
    downtime INTEGER NOT NULL,
    alive_at INTEGER NOT NULL,
    outage_ended_at INTEGER NOT NULL
) STRICT;
INSERT INTO service_clock (id, skew, downtime, alive_at, outage_ended_at) VALUES (1, 0, 0, 0, 0);

-- `body` is the whole value as JSON, as in its change row; the other columns are for searching.
CREATE TABLE pool (
    name TEXT PRIMARY KEY NOT NULL,
    quota INTEGER,
    gangs INTEGER NOT NULL,
    wake_at INTEGER,
    body TEXT NOT NULL,
    member_group TEXT,
    template TEXT,
    cohort TEXT,
    booked_until INTEGER
) STRICT;
CREATE INDEX pool_booked ON pool (name) WHERE booked_until IS NOT NULL;
CREATE INDEX pool_wake_at ON pool (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX pool_gangs ON pool (name) WHERE gangs > 0;
CREATE INDEX pool_member_group ON pool (member_group) WHERE member_group IS NOT NULL;
CREATE INDEX pool_template_made ON pool (template) WHERE template IS NOT NULL;
CREATE INDEX pool_cohort ON pool (cohort) WHERE cohort IS NOT NULL;

-- Templates of pools that requests make; the name ends with an asterisk.
CREATE TABLE pool_template (
    name TEXT PRIMARY KEY NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE slot (
    pool TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (pool, name)
) STRICT;
CREATE INDEX slot_name ON slot (name);

-- Tickets and leases; ended ones are kept as long as their keys are. `pools` is a JSON array. The group is
-- that of which only the newest request waits; its scope is a project or an owner.
CREATE TABLE lease (
    id TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    arrival INTEGER NOT NULL,
    pools TEXT NOT NULL,
    state TEXT NOT NULL,
    ended_at INTEGER,
    group_scope TEXT,
    group_name TEXT,
    body TEXT NOT NULL,
    UNIQUE (owner, key)
) STRICT;
CREATE INDEX lease_arrival ON lease (arrival, id);
CREATE INDEX lease_live ON lease (arrival, id) WHERE ended_at IS NULL;
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX lease_group_live ON lease (group_name, group_scope)
    WHERE ended_at IS NULL AND group_name IS NOT NULL;
CREATE INDEX lease_group ON lease (group_name, arrival, id) WHERE group_name IS NOT NULL;

-- Live leases and tickets: the newest `heard_until`, which every renewal moves, and when they end.
CREATE TABLE lease_due (
    lease TEXT PRIMARY KEY,
    heard_until INTEGER,
    due INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_due_due ON lease_due (due) WHERE due IS NOT NULL;

-- One row per lease and pool. `rank` is the negated priority; `place` is 0, the tag of a fair share, or the
-- negative arrival where the newest request goes first. Lines are in ascending order of rank, place and arrival.
CREATE TABLE lease_need (
    pool TEXT NOT NULL,
    arrival INTEGER NOT NULL,
    lease TEXT NOT NULL,
    rank INTEGER NOT NULL,
    place INTEGER NOT NULL,
    units INTEGER NOT NULL,
    pull INTEGER NOT NULL,
    forced INTEGER NOT NULL,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    token TEXT,
    asked_at INTEGER NOT NULL,
    granted_at INTEGER,
    ended_at INTEGER,
    cause TEXT,
    hold_until INTEGER,
    booking TEXT,
    PRIMARY KEY (pool, arrival, lease)
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_need_called ON lease_need (booking, lease)
    WHERE state = 'waiting' AND booking IS NOT NULL;
-- The index contains all columns that decide which tickets of a line are certain to be passed over.
CREATE INDEX lease_need_line ON lease_need (pool, rank, place, arrival, owner, units, forced)
    WHERE state = 'waiting';
CREATE INDEX lease_need_held ON lease_need (pool, granted_at) WHERE state = 'granted';
CREATE INDEX lease_need_past ON lease_need (pool, ended_at)
    WHERE state = 'ended' AND granted_at IS NOT NULL;

-- Bookings, by the wall clock. One row in `booking_need` for each pool, as long as it is not
-- cancelled; `pool` is the first of them, among whose bookings an old one counts.
CREATE TABLE booking (
    id TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    pool TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner, key)
) STRICT;
CREATE INDEX booking_ends_at ON booking (ends_at);
CREATE INDEX booking_pool ON booking (pool, ends_at, id);
CREATE TABLE booking_need (
    booking TEXT NOT NULL,
    pool TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    PRIMARY KEY (booking, pool)
) STRICT, WITHOUT ROWID;
CREATE INDEX booking_need_pool ON booking_need (pool, ends_at);

-- The results of starts; `units` is the pool's limit at that time.
CREATE TABLE outcome (
    pool TEXT NOT NULL,
    at INTEGER NOT NULL,
    lease TEXT NOT NULL,
    result TEXT NOT NULL,
    units INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX outcome_at ON outcome (pool, at);

-- When this ledger was created: also the time of the standard resource classes and traits.
CREATE TABLE beginning (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
INSERT INTO beginning (id, at) VALUES (1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));

-- Agents are never deleted: their UUIDs stay used up. `number` is small, for the signs of life. The
-- body is the whole value as JSON; the other columns are to search by.
CREATE TABLE agent (
    uuid TEXT PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL UNIQUE,
    agent_group TEXT NOT NULL,
    root TEXT,
    policy TEXT NOT NULL,
    state TEXT NOT NULL,
    readiness TEXT NOT NULL,
    liveness TEXT NOT NULL,
    offered INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX agent_by_group ON agent (agent_group, liveness);
CREATE UNIQUE INDEX agent_by_root ON agent (root) WHERE state = 'active' AND root IS NOT NULL;

-- Groups of agents; the body is the whole value as JSON.
CREATE TABLE agent_group (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Signs of life: each process overwrites one row. `at` is the time of the database; `ages` has, by the
-- numbers of agents, how long before that each was last heard of. `stopped`: the process ended then.
CREATE TABLE agent_heard (
    process TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    stopped INTEGER NOT NULL,
    ages TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO agent_group (name, body)
VALUES ('default', '{"name":"default","created_at":0,"updated_at":0}');

-- Groups of reporters and their members; bodies are whole values as JSON. `seen_at`, `heard_until` and
-- `last_pass` (JSON) change without a change row. `heard_until` is alive time.
CREATE TABLE reporter_group (
    name TEXT PRIMARY KEY,
    seen_at INTEGER,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE reporter (
    reporter_group TEXT NOT NULL,
    name TEXT NOT NULL,
    heard_until INTEGER NOT NULL,
    last_pass TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (reporter_group, name)
) STRICT, WITHOUT ROWID;

-- Nodes that belong to one member of a group of reporters, whoever else is live.
CREATE TABLE reporter_pin (
    reporter_group TEXT NOT NULL,
    node TEXT NOT NULL,
    member TEXT NOT NULL,
    PRIMARY KEY (reporter_group, node)
) STRICT, WITHOUT ROWID;

-- What is left of deleted groups. Until `cleared`, some pins and marks on providers are; the next group
-- continues the numbers, and refuses the `instances` (a JSON array). `deleted_at` is service time.
CREATE TABLE deleted_reporter_group (
    name TEXT PRIMARY KEY,
    deleted_at INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    pins_generation INTEGER NOT NULL,
    instances TEXT NOT NULL,
    cleared INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions of the dashboard; only the SHA-256 of a session's secret is stored. A session ends with its
-- token. `used_at` is written about once a minute.
CREATE TABLE ui_session (
    sha256 TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ui_session_token ON ui_session (token_id, created_at);
