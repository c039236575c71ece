-- Access tokens; only their SHA-256 is stored.

-- name: token_by_sha256 --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at
FROM access_token WHERE sha256 = $1;

-- name: token_by_id --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at
FROM access_token WHERE id = $1;

-- name: tokens_window --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at
FROM access_token WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3;

-- name: token_revoke --
UPDATE access_token SET revoked_at = $1, ended = (SELECT ends FROM token_ends) WHERE id = $2 AND revoked_at IS NULL
RETURNING id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at;

-- The condition decides which of several concurrent rotations or revocations was first.
-- name: token_rotate --
UPDATE access_token SET rotated_at = $1, expires_at = $2, ended = (SELECT ends FROM token_ends)
WHERE id = $3 AND revoked_at IS NULL AND rotated_at IS NULL
RETURNING id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at;

-- Locks the only row until the commit: so ends become visible in the order of their numbers.
-- name: token_ends_raise --
UPDATE token_ends SET ends = ends + 1 RETURNING ends;

-- name: tokens_ended --
SELECT sha256 FROM access_token WHERE ended > $1 ORDER BY ended LIMIT $2;
