-- The audit rows: who did what to Moorage itself.

-- name: audit_window --
SELECT at, id, who, token_id, role, action, target, before, after
FROM audit WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3;

-- name: audit_last_of --
SELECT MAX(at) FROM audit WHERE target = $1;

-- name: audit_delete --
DELETE FROM audit WHERE (at, id) IN (
    SELECT at, id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2
) RETURNING at;
