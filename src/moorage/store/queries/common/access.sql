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

-- Tokens that have ended since $1, as of $2. There are few tokens, so no index is needed.
-- name: tokens_over --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at
FROM access_token
WHERE (revoked_at > $1 AND revoked_at <= $2) OR (expires_at > $1 AND expires_at <= $2)
ORDER BY created_at, id LIMIT $3;

-- name: tokens_valid --
SELECT id, sha256, name, user_id, project_id, roles, created_at, revoked_at, scope,
    expires_at, rotated_at, used_at
FROM access_token
WHERE name = $1 AND project_id = $2 AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > $3);

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

-- Sessions of the dashboard, with the token that each is bound to.
-- name: session_by_sha256 --
SELECT session.created_at, session.used_at, token.id, token.sha256, name, user_id, project_id, roles,
    token.created_at, revoked_at, scope, expires_at, rotated_at, token.used_at
FROM ui_session AS session JOIN access_token AS token ON token.id = session.token_id
WHERE session.sha256 = $1;

-- All but the newest sessions of a token.
-- name: session_surplus_delete --
DELETE FROM ui_session WHERE sha256 IN (
    SELECT sha256 FROM ui_session WHERE token_id = $1
    ORDER BY created_at DESC, sha256 LIMIT 1000000 OFFSET $2)
RETURNING sha256;

-- name: session_delete --
DELETE FROM ui_session WHERE sha256 = $1 RETURNING token_id;

-- name: session_used --
UPDATE ui_session SET used_at = $1 WHERE sha256 = $2 AND used_at < $1 RETURNING sha256;

-- name: sessions_over_delete --
DELETE FROM ui_session WHERE sha256 IN (
    SELECT sha256 FROM ui_session WHERE created_at <= $1 OR used_at <= $2 ORDER BY sha256 LIMIT $3)
RETURNING sha256;
