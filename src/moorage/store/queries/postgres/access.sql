-- Access tokens; only their SHA-256 is stored.

-- name: token_insert --
INSERT INTO access_token (id, sha256, name, user_id, project_id, roles, created_at, revoked_at,
    scope, expires_at, rotated_at, used_at)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]),
    unnest($5::text[]), unnest($6::text[]), unnest($7::bigint[]), unnest($8::bigint[]),
    unnest($9::text[]), unnest($10::bigint[]), unnest($11::bigint[]), unnest($12::bigint[]);

-- name: token_used --
UPDATE access_token SET used_at = used.at
FROM unnest($1::bigint[], $2::text[]) AS used (at, id)
WHERE access_token.id = used.id;

-- With the epoch: a restored ledger may have the same number for other tokens.
-- name: token_ends_load --
SELECT epoch, ends FROM clock_now, token_ends;

-- name: session_insert --
INSERT INTO ui_session (sha256, token_id, created_at, used_at)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bigint[]), unnest($4::bigint[]);
