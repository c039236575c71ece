-- Reporters share a group. Older processes would not know whose traits they are, and do not know the
-- new kinds of change rows, so they may not write any more.

-- `reported` is a JSON array: what the reports of each group have set on the provider.
ALTER TABLE provider_tags ADD COLUMN reported TEXT NOT NULL DEFAULT '[]';

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

-- Pools with units for each member of this group.
ALTER TABLE pool ADD COLUMN member_group TEXT;
CREATE INDEX pool_member_group ON pool (member_group) WHERE member_group IS NOT NULL;

UPDATE clock SET minimum_version = 4, newest_version = 4;
