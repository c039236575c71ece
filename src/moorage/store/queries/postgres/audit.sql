-- The audit rows: who did what to Moorage itself.

-- name: audit_insert --
INSERT INTO audit (at, id, who, token_id, role, action, target, before, after)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[]);

-- name: audit_window_of_target --
SELECT at, id, who, token_id, role, action, target, before, after
FROM audit WHERE target = $4 AND substr(target, 1, 200) = substr($4, 1, 200)
    AND (at, id) < ($1, $2)
ORDER BY at DESC, id DESC LIMIT $3;
