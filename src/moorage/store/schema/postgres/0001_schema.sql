-- The applied migrations, with the checksums of their files.
CREATE TABLE migration (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
);

-- The single logical clock: `revision` counts batches, `epoch` counts restores and failovers;
-- change rows up to revision `compacted` were deleted. `lineage` identifies the history of the
-- server that wrote last: if another one continues, the epoch rises. A process that knows only
-- older formats of rows than `minimum_version` may not write; `newest_version` is the newest format
-- of any process that has written. `importing` is the import that is under way, as JSON. `id` rises with each update of the row, so that the newest
-- version is the last one in its index, even if an open snapshot keeps older versions.
CREATE TABLE clock (
    id BIGINT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    compacted BIGINT NOT NULL,
    lineage TEXT,
    minimum_version BIGINT NOT NULL DEFAULT 1,
    newest_version BIGINT NOT NULL DEFAULT 1,
    importing TEXT
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO clock (id, epoch, revision, compacted) VALUES (1, 1, 0, 0);

CREATE VIEW clock_now AS
SELECT epoch, revision, compacted, lineage, minimum_version, newest_version, importing
FROM clock ORDER BY id DESC LIMIT 1;

-- The changes of each batch: after-images; the body is NULL if the object was deleted.
CREATE TABLE change (
    revision BIGINT NOT NULL,
    n BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    body TEXT,
    PRIMARY KEY (revision, n)
);

-- Receipts of all committed transactions, for a process that lost its connection during a commit. A
-- row that is not `kept` was written by a process that asked: the transaction can no longer commit.
CREATE TABLE batch (
    id UUID PRIMARY KEY,
    revision BIGINT NOT NULL,
    kept BOOLEAN NOT NULL,
    asked BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
-- Receipts are deleted by age, independent of revisions.
CREATE INDEX batch_created_at ON batch (created_at);

-- Instants are microseconds since 1970; identifiers are lower-case UUIDs with dashes.
-- `inventories` is a JSON object by resource class: a claim changes only one row. In each of them,
-- `used` is the sum of the allocations on it; members that equal a default are omitted.
-- `agent` manages classes of the provider. `withheld` says why nothing is offered.
CREATE TABLE provider (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    parent TEXT COLLATE "C",
    root TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    inventories TEXT NOT NULL,
    agent TEXT COLLATE "C",
    withheld TEXT COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX provider_parent ON provider (parent) WHERE parent IS NOT NULL;
CREATE INDEX provider_root ON provider (root);

-- The inventories as rows.
CREATE VIEW inventory AS
SELECT provider.uuid AS provider, held.key COLLATE "C" AS resource_class,
    (held.value ->> 'total')::bigint AS total,
    COALESCE((held.value ->> 'reserved')::bigint, 0) AS reserved,
    COALESCE((held.value ->> 'min_unit')::bigint, 1) AS min_unit,
    COALESCE((held.value ->> 'max_unit')::bigint, 2147483647) AS max_unit,
    COALESCE((held.value ->> 'step_size')::bigint, 1) AS step_size,
    COALESCE((held.value ->> 'allocation_ratio')::double precision, 1.0) AS allocation_ratio,
    (held.value ->> 'offered')::bigint AS offered,
    COALESCE((held.value ->> 'withheld')::boolean, false) AS withheld,
    COALESCE((held.value ->> 'used')::bigint, 0) AS used,
    COALESCE((held.value ->> 'created_at')::bigint, 0) AS created_at,
    COALESCE((held.value ->> 'updated_at')::bigint, 0) AS updated_at
FROM provider, json_each(provider.inventories::json) AS held;

-- JSON arrays, sorted. `reported`: what the reports of each group have set on the provider.
CREATE TABLE provider_tags (
    provider TEXT COLLATE "C" PRIMARY KEY,
    traits TEXT NOT NULL,
    aggregates TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    reported TEXT NOT NULL DEFAULT '[]'
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

-- The consumers that have allocations on a provider. `since` is its generation when the consumer got
-- the first one: the order in which a machine starts them.
CREATE TABLE holder (
    provider TEXT COLLATE "C" NOT NULL,
    consumer TEXT COLLATE "C" NOT NULL,
    since BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, consumer)
);

-- The allocations as rows.
CREATE VIEW allocation AS
SELECT consumer.uuid AS consumer, held.key COLLATE "C" AS provider,
    taken.key COLLATE "C" AS resource_class, taken.value::text::bigint AS amount
FROM consumer, json_each(consumer.allocations::json) AS held, json_each(held.value) AS taken;

-- Only custom resource classes and traits; the standard ones come with the release.
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

-- Only the SHA-256 of a token is stored. `roles` is a JSON array; `scope` is a JSON object with the
-- names to which a role outside of the ladder is bound. A rotated token expires at the latest when
-- its grace period ends. `used_at` is written about once an hour.
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
    used_at BIGINT,
    ended BIGINT
);
CREATE INDEX access_token_ended ON access_token (ended) WHERE ended IS NOT NULL;

-- How many tokens were revoked or rotated: the number of each end is in `access_token.ended`.
CREATE TABLE token_ends (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ends BIGINT NOT NULL
);
INSERT INTO token_ends (id, ends) VALUES (1, 0);

-- Who did what to Moorage itself; `before` and `after` are JSON, NULL if there is no such state.
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
CREATE INDEX audit_target ON audit (substr(target, 1, 200), at, id);

-- Committed reshapes: who did what. `request` identifies the request, for repetitions. `summary` is what
-- people see, `inverse` what undoes it; both are JSON, as are the `generations` that it has led to.
CREATE TABLE reshape (
    id TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT NOT NULL,
    role TEXT NOT NULL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL,
    request TEXT NOT NULL,
    providers BIGINT NOT NULL,
    consumers BIGINT NOT NULL,
    undoes TEXT,
    undone_by TEXT,
    token_id TEXT,
    summary TEXT NOT NULL,
    generations TEXT NOT NULL,
    inverse TEXT NOT NULL
);
CREATE INDEX reshape_at ON reshape (at, id);

-- The number of tickets so far; every decision of admission locks this row.
CREATE TABLE admission_clock (
    id BIGINT PRIMARY KEY,
    arrivals BIGINT NOT NULL
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO admission_clock (id, arrivals) VALUES (1, 0);

-- How service time relates to the wall clock, see `Timeline`; every batch that decides by service
-- time locks this row, after the rows of its rooms.
CREATE TABLE service_clock (
    id BIGINT PRIMARY KEY,
    skew BIGINT NOT NULL,
    downtime BIGINT NOT NULL,
    alive_at BIGINT NOT NULL,
    outage_ended_at BIGINT NOT NULL
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO service_clock (id, skew, downtime, alive_at, outage_ended_at) VALUES (1, 0, 0, 0, 0);

-- `body` is the whole value as JSON, as in its change row; the other columns are for searching.
CREATE TABLE pool (
    name TEXT COLLATE "C" PRIMARY KEY,
    quota BIGINT,
    gangs BIGINT NOT NULL,
    wake_at BIGINT,
    body TEXT NOT NULL,
    member_group TEXT,
    template TEXT COLLATE "C",
    cohort TEXT COLLATE "C",
    booked_until BIGINT
) WITH (fillfactor = 50);
CREATE INDEX pool_booked ON pool (name) WHERE booked_until IS NOT NULL;
CREATE INDEX pool_wake_at ON pool (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX pool_gangs ON pool (name) WHERE gangs > 0;
CREATE INDEX pool_member_group ON pool (member_group) WHERE member_group IS NOT NULL;
CREATE INDEX pool_template_made ON pool (template) WHERE template IS NOT NULL;
CREATE INDEX pool_cohort ON pool (cohort) WHERE cohort IS NOT NULL;

-- Templates of pools that requests make; the name ends with an asterisk.
CREATE TABLE pool_template (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

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

-- Tickets and leases; ended ones are kept as long as their keys are. `pools` is a JSON array. The group is
-- that of which only the newest request waits; its scope is a project or an owner.
CREATE TABLE lease (
    id TEXT COLLATE "C" PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    arrival BIGINT NOT NULL,
    pools TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    group_scope TEXT COLLATE "C",
    group_name TEXT COLLATE "C",
    body TEXT NOT NULL,
    UNIQUE (owner, key)
) WITH (fillfactor = 70);
CREATE INDEX lease_arrival ON lease (arrival, id);
CREATE INDEX lease_live ON lease (arrival, id) WHERE ended_at IS NULL;
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX lease_group_live ON lease (group_name, group_scope)
    WHERE ended_at IS NULL AND group_name IS NOT NULL;
CREATE INDEX lease_group ON lease (group_name, arrival, id) WHERE group_name IS NOT NULL;

-- Live leases and tickets: the newest `heard_until`, which every renewal moves, and when they end.
CREATE TABLE lease_due (
    lease TEXT COLLATE "C" PRIMARY KEY,
    heard_until BIGINT,
    due BIGINT
) WITH (fillfactor = 70);
CREATE INDEX lease_due_due ON lease_due (due) WHERE due IS NOT NULL;

-- One row per lease and pool. `rank` is the negated priority; `place` is 0, the tag of a fair share, or the
-- negative arrival where the newest request goes first. Lines are in ascending order of rank, place and arrival.
CREATE TABLE lease_need (
    pool TEXT COLLATE "C" NOT NULL,
    arrival BIGINT NOT NULL,
    lease TEXT COLLATE "C" NOT NULL,
    rank BIGINT NOT NULL,
    place BIGINT NOT NULL,
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
    hold_until BIGINT,
    booking TEXT COLLATE "C",
    PRIMARY KEY (pool, arrival, lease)
);
CREATE INDEX lease_need_called ON lease_need (booking, lease)
    WHERE state = 'waiting' AND booking IS NOT NULL;
-- The index contains all columns that decide which tickets of a line are certain to be passed over.
CREATE INDEX lease_need_line ON lease_need (pool, rank, place, arrival) INCLUDE (owner, units, forced)
    WHERE state = 'waiting';
CREATE INDEX lease_need_held ON lease_need (pool, granted_at) WHERE state = 'granted';
CREATE INDEX lease_need_past ON lease_need (pool, ended_at)
    WHERE state = 'ended' AND granted_at IS NOT NULL;

-- Bookings, by the wall clock. One row in `booking_need` for each pool, as long as it is not
-- cancelled; `pool` is the first of them, among whose bookings an old one counts.
CREATE TABLE booking (
    id TEXT COLLATE "C" PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    pool TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner, key)
);
CREATE INDEX booking_ends_at ON booking (ends_at);
CREATE INDEX booking_pool ON booking (pool, ends_at, id);
CREATE TABLE booking_need (
    booking TEXT COLLATE "C" NOT NULL,
    pool TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (booking, pool)
);
CREATE INDEX booking_need_pool ON booking_need (pool, ends_at);

-- The results of starts; `units` is the pool's limit at that time.
CREATE TABLE outcome (
    pool TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    lease TEXT COLLATE "C" NOT NULL,
    result TEXT NOT NULL,
    units BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX outcome_at ON outcome (pool, at);

-- When this ledger was created: also the time of the standard resource classes and traits.
CREATE TABLE beginning (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    at BIGINT NOT NULL
);
INSERT INTO beginning (id, at) VALUES (1, (extract(epoch FROM now()) * 1000000)::bigint);

-- Agents are never deleted: their UUIDs stay used up. `number` is small, for the signs of life. The
-- body is the whole value as JSON; the other columns are to search by.
CREATE TABLE agent (
    uuid TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    agent_group TEXT COLLATE "C" NOT NULL,
    root TEXT COLLATE "C",
    policy TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    readiness TEXT COLLATE "C" NOT NULL,
    liveness TEXT COLLATE "C" NOT NULL,
    offered BIGINT NOT NULL,
    body TEXT NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX agent_by_group ON agent (agent_group, liveness);
CREATE UNIQUE INDEX agent_by_root ON agent (root) WHERE state = 'active' AND root IS NOT NULL;

-- Groups of agents; the body is the whole value as JSON.
CREATE TABLE agent_group (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

-- Signs of life: each process overwrites one row. `at` is the time of the database; `ages` has, by the
-- numbers of agents, how long before that each was last heard of. `stopped`: the process ended then.
CREATE TABLE agent_heard (
    process TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL,
    ttl BIGINT NOT NULL,
    stopped BIGINT NOT NULL,
    ages TEXT NOT NULL
);
INSERT INTO agent_group (name, body)
VALUES ('default', '{"name":"default","created_at":0,"updated_at":0}');

-- Groups of reporters and their members; bodies are whole values as JSON. `seen_at`, `heard_until` and
-- `last_pass` (JSON) change without a change row. `heard_until` is alive time.
CREATE TABLE reporter_group (
    name TEXT COLLATE "C" PRIMARY KEY,
    seen_at BIGINT,
    body TEXT NOT NULL
);
CREATE TABLE reporter (
    reporter_group TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    heard_until BIGINT NOT NULL,
    last_pass TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (reporter_group, name)
) WITH (fillfactor = 70);

-- Nodes that belong to one member of a group of reporters, whoever else is live.
CREATE TABLE reporter_pin (
    reporter_group TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    member TEXT NOT NULL,
    PRIMARY KEY (reporter_group, node)
);

-- What is left of deleted groups. Until `cleared`, some pins and marks on providers are; the next group
-- continues the numbers, and refuses the `instances` (a JSON array). `deleted_at` is service time.
CREATE TABLE deleted_reporter_group (
    name TEXT COLLATE "C" PRIMARY KEY,
    deleted_at BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    pins_generation BIGINT NOT NULL,
    instances TEXT NOT NULL,
    cleared BIGINT NOT NULL
);

-- Sessions of the dashboard; only the SHA-256 of a session's secret is stored. A session ends with its
-- token. `used_at` is written about once a minute.
CREATE TABLE ui_session (
    sha256 TEXT COLLATE "C" PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX ui_session_token ON ui_session (token_id, created_at);
