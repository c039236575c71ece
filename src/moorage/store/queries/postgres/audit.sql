-- The audit rows: who did what to Moorage itself.

-- name: audit_insert --
INSERT INTO audit (at, id, who, token_id, role, action, target, before, after)
SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::text[]), unnest($8::text[]),
    unnest($9::text[]);

-- name: audit_window_of_target --
SELECT at, id, who, token_id, role, action, target, before, after
FROM audit WHERE target = $4 AND substr(target, 1, 200) = substr($4, 1, 200)
    AND (at, id) < ($1, $2)
ORDER BY at DESC, id DESC LIMIT $3;
