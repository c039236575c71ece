-- Sessions of the dashboard; only the SHA-256 of a session's secret is stored. A session ends with its
-- token. `used_at` is written about once a minute.
CREATE TABLE ui_session (
    sha256 TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ui_session_token ON ui_session (token_id, created_at);
