-- Access tokens; only their SHA-256 is stored.

-- name: token_insert --
INSERT INTO access_token (id, sha256, name, user_id, project_id, roles, created_at, revoked_at,
    scope, expires_at, rotated_at, used_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: token_used --
UPDATE access_token SET used_at = ? WHERE id = ?;

-- With the epoch: a restored ledger may have the same number for other tokens.
-- name: token_ends_load --
SELECT epoch, ends FROM clock, token_ends;

-- name: session_insert --
INSERT INTO ui_session (sha256, token_id, created_at, used_at) VALUES (?, ?, ?, ?);
