-- The change rows, and the time of the beginning.

-- name: beginning_load --
SELECT at FROM beginning;

-- name: change_time --
SELECT at FROM change WHERE revision = $1 AND n = 0;

-- Their number and their bytes; 60 are those of the other columns.
-- name: changes_count --
SELECT COUNT(*), COALESCE(SUM(octet_length(key) + octet_length(COALESCE(body, '')) + 60), 0)
FROM change WHERE revision > $1 AND revision <= $2;

-- name: changes_wipe --
DELETE FROM change;
