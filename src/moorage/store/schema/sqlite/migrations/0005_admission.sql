-- Admission's time and the number of tickets so far, see `Timeline`; who decides holds its lock.
CREATE TABLE admission_clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    arrivals INTEGER NOT NULL,
    skew INTEGER NOT NULL,
    downtime INTEGER NOT NULL,
    alive_at INTEGER NOT NULL,
    outage_ended_at INTEGER NOT NULL
) STRICT;
INSERT INTO admission_clock (id, arrivals, skew, downtime, alive_at, outage_ended_at)
VALUES (1, 0, 0, 0, 0, 0);

-- A body is the whole value, JSON, as in its change row; the columns beside it are to search by.
CREATE TABLE pool (
    name TEXT PRIMARY KEY NOT NULL,
    quota INTEGER,
    gangs INTEGER NOT NULL,
    wake_at INTEGER,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX pool_wake_at ON pool (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX pool_gangs ON pool (name) WHERE gangs > 0;

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

-- Tickets and leases, the ended ones for as long as keys are remembered. `pools` is a JSON array.
CREATE TABLE lease (
    id TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    arrival INTEGER NOT NULL,
    pools TEXT NOT NULL,
    state TEXT NOT NULL,
    ended_at INTEGER,
    body TEXT NOT NULL,
    UNIQUE (owner, key)
) STRICT;
CREATE INDEX lease_arrival ON lease (arrival, id);
CREATE INDEX lease_live ON lease (arrival, id) WHERE ended_at IS NULL;
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

-- Of those that live: the newest `heard_until`, which every renewal moves, and when they are over.
CREATE TABLE lease_due (
    lease TEXT PRIMARY KEY,
    heard_until INTEGER,
    due INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_due_due ON lease_due (due) WHERE due IS NOT NULL;

-- Leases as their pools see them. `rank` is the priority, negated: lines are in ascending order.
CREATE TABLE lease_need (
    pool TEXT NOT NULL,
    arrival INTEGER NOT NULL,
    lease TEXT NOT NULL,
    rank INTEGER NOT NULL,
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
    PRIMARY KEY (pool, arrival, lease)
) STRICT, WITHOUT ROWID;
-- All that tells who of a line is passed over for sure stands in its index.
CREATE INDEX lease_need_line ON lease_need (pool, rank, arrival, owner, units, forced)
    WHERE state = 'waiting';
CREATE INDEX lease_need_held ON lease_need (pool, granted_at) WHERE state = 'granted';
CREATE INDEX lease_need_past ON lease_need (pool, ended_at)
    WHERE state = 'ended' AND granted_at IS NOT NULL;

-- What became of starts; `units` is the pool's limit then.
CREATE TABLE outcome (
    pool TEXT NOT NULL,
    at INTEGER NOT NULL,
    lease TEXT NOT NULL,
    result TEXT NOT NULL,
    units INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX outcome_at ON outcome (pool, at);
