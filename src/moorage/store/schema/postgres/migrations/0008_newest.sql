-- Each clock is one row, and every batch writes a version of it. `id` rises with each version, so that
-- the newest is the last of its index, however many older ones an open snapshot keeps.
ALTER TABLE clock DROP CONSTRAINT clock_id_check;
ALTER TABLE admission_clock DROP CONSTRAINT admission_clock_id_check;

-- To give back empty pages VACUUM would lock everybody out; the next batches fill them again.
ALTER TABLE clock SET (vacuum_truncate = off);
ALTER TABLE admission_clock SET (vacuum_truncate = off);

CREATE VIEW clock_now AS
SELECT epoch, revision, compacted, lineage, minimum_version, newest_version
FROM clock ORDER BY id DESC LIMIT 1;

-- Receipts are forgotten by their age, whether or not revisions rise.
CREATE INDEX batch_created_at ON batch (created_at);
DROP INDEX batch_revision;
