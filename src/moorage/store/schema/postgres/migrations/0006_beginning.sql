-- When this ledger was made: the time of the standard resource classes and traits.
CREATE TABLE beginning (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    at BIGINT NOT NULL
);
INSERT INTO beginning (id, at) VALUES (1, (extract(epoch FROM now()) * 1000000)::bigint);
