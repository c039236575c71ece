-- Which migrations have been applied; the checksum is that of the file.
CREATE TABLE migration (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
);

-- The one logical clock: `revision` counts batches, `epoch` restores and failovers; change rows up
-- to revision `compacted` are gone. `lineage` names the history of the server that last wrote: when
-- another one goes on, the epoch rises.
CREATE TABLE clock (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    compacted BIGINT NOT NULL,
    lineage TEXT
) WITH (fillfactor = 10);
INSERT INTO clock (id, epoch, revision, compacted) VALUES (1, 1, 0, 0);

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
CREATE INDEX batch_revision ON batch (revision);
