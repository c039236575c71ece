-- The change rows, and the time of the beginning.

-- name: beginning_load --
SELECT at FROM beginning;

-- name: change_time --
SELECT at FROM change WHERE revision = $1 AND n = 0;

-- name: changes_count --
SELECT COUNT(*) FROM change WHERE revision > $1 AND revision <= $2;

-- name: changes_wipe --
DELETE FROM change;
