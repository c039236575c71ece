-- What agents report limits what is offered: older processes would sell what is not there, so they
-- may not write any more.
ALTER TABLE provider ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE provider ADD COLUMN withheld TEXT COLLATE "C";
ALTER TABLE holder ADD COLUMN since BIGINT NOT NULL DEFAULT 0;

-- The members of an inventory that equal a default are no longer stored.
DROP VIEW inventory;
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

-- Ends of tokens (revoked or rotated) are numbered, so that a process forgets these tokens only: with
-- a token for each agent, to read all of them again would take minutes.
ALTER TABLE access_token ADD COLUMN ended BIGINT;
CREATE INDEX access_token_ended ON access_token (ended) WHERE ended IS NOT NULL;
CREATE TABLE token_ends (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ends BIGINT NOT NULL
);
INSERT INTO token_ends (id, ends) VALUES (1, 0);

UPDATE clock SET minimum_version = 3, newest_version = 3;
