-- Tokens with a scope, an end, a replacement and a last use.
ALTER TABLE access_token RENAME TO access_token_before;

-- Only the SHA-256 of a token is kept. `roles` is a JSON array; `scope` a JSON object, the names
-- that a role outside of the ladder is bound to. A token that was rotated expires at the latest when
-- the grace is over. `used_at` is written about once an hour.
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
    used_at INTEGER
) STRICT, WITHOUT ROWID;

INSERT INTO access_token (id, sha256, name, user_id, project_id, roles, created_at, revoked_at)
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at
FROM access_token_before;
DROP TABLE access_token_before;
