-- The revision, the epoch and the change rows.

-- name: clock_load --
SELECT epoch, revision, compacted FROM clock;

-- name: clock_raise --
UPDATE clock SET revision = revision + 1 RETURNING revision;

-- name: clock_compact --
UPDATE clock SET compacted = ?;

-- name: change_insert --
INSERT INTO change (revision, n, at, kind, key, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: changes_load --
SELECT revision, kind, key, body FROM change
WHERE revision > ?1 AND revision <= ?2 ORDER BY revision, n;

-- The newest revision that is old enough; revisions and times rise together.
-- name: change_before --
SELECT revision FROM change WHERE at < ? ORDER BY revision DESC, n DESC LIMIT 1;

-- name: change_at_rank --
SELECT revision FROM change ORDER BY revision DESC, n DESC LIMIT 1 OFFSET ?;

-- name: changes_delete --
DELETE FROM change WHERE revision <= ?;

-- name: changes_wipe --
DELETE FROM change;
