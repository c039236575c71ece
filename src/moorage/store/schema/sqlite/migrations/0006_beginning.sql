-- When this ledger was made: the time of the standard resource classes and traits.
CREATE TABLE beginning (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
INSERT INTO beginning (id, at) VALUES (1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
