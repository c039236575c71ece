-- The format of rows: a process that knows only an older one than `minimum_version` may not write;
-- `newest_version` is the newest of any process that has written. See store/formats.py.
ALTER TABLE clock ADD COLUMN minimum_version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE clock ADD COLUMN newest_version BIGINT NOT NULL DEFAULT 1;
