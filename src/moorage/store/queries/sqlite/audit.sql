-- The audit rows: who did what to Moorage itself.

-- name: audit_insert --
INSERT INTO audit (at, id, who, token_id, role, action, target, before, after)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: audit_window_of_target --
SELECT at, id, who, token_id, role, action, target, before, after
FROM audit WHERE target = ?4 AND (at, id) < (?1, ?2)
ORDER BY at DESC, id DESC LIMIT ?3;
