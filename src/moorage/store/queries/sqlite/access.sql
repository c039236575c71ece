-- Access tokens; only their SHA-256 is stored.

-- name: token_insert --
INSERT INTO access_token (id, sha256, name, user_id, project_id, roles, created_at, revoked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: token_by_sha256 --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at
FROM access_token WHERE sha256 = ?;

-- name: tokens_window --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at
FROM access_token WHERE (created_at, id) > (?1, ?2) ORDER BY created_at, id LIMIT ?3;

-- name: token_revoke --
UPDATE access_token SET revoked_at = ?1 WHERE id = ?2 AND revoked_at IS NULL
RETURNING id, sha256, name, user_id, project_id, roles, created_at, revoked_at;

-- name: revocations_count --
SELECT COUNT(revoked_at) FROM access_token;
