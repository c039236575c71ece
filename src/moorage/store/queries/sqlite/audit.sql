-- The audit rows: who did what to Moorage itself.

-- name: audit_insert --
INSERT INTO audit (at, id, who, token_id, role, action, target, before, after)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);
