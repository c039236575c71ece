-- Admission's time and the number of tickets so far, see `Timeline`; who decides holds its lock.
CREATE TABLE admission_clock (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    arrivals BIGINT NOT NULL,
    skew BIGINT NOT NULL,
    downtime BIGINT NOT NULL,
    alive_at BIGINT NOT NULL,
    outage_ended_at BIGINT NOT NULL
) WITH (fillfactor = 10);
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
