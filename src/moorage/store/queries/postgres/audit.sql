-- The audit rows: who did what to Moorage itself.

-- name: audit_insert --
INSERT INTO audit (at, id, who, token_id, role, action, target, before, after)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[]);
