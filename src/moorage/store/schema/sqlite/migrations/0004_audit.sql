-- Who did what to Moorage itself; `before` and `after` are JSON, NULL where there is nothing to tell.
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
