-- The change rows, and the time of the beginning.

-- name: beginning_load --
SELECT at FROM beginning;

-- name: change_time --
SELECT at FROM change WHERE revision = $1 AND n = 0;

-- Their number and their bytes; 60 are those of the other columns.
-- name: changes_count --
SELECT COUNT(*), COALESCE(SUM(octet_length(key) + octet_length(COALESCE(body, '')) + 60), 0)
FROM change WHERE revision > $1 AND revision <= $2;

-- How many there are after a revision, counted up to a limit.
-- name: changes_count_few --
SELECT COUNT(*) FROM (SELECT 1 FROM change WHERE revision > $1 LIMIT $2) AS few;

-- name: changes_wipe --
DELETE FROM change;
