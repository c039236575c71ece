-- Reporters share a group. Older processes would not know whose traits they are, and do not know the
-- new kinds of change rows, so they may not write any more.

-- `reported` is a JSON array: what the reports of each group have set on the provider.
ALTER TABLE provider_tags ADD COLUMN reported TEXT NOT NULL DEFAULT '[]';

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

-- Pools with units for each member of this group.
ALTER TABLE pool ADD COLUMN member_group TEXT;
CREATE INDEX pool_member_group ON pool (member_group) WHERE member_group IS NOT NULL;

UPDATE clock SET minimum_version = 4, newest_version = 4;
