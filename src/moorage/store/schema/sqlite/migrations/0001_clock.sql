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
