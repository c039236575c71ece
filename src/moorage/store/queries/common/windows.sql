-- Windows: a bounded number of rows after a given one.

-- name: providers_window --
SELECT uuid FROM provider WHERE uuid > $1 ORDER BY uuid LIMIT $2;
