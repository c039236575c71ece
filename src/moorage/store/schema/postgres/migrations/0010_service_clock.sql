-- How service time relates to the wall clock: no longer part of admission. Older processes would
-- change the time without this row, so they may not write any more.
CREATE TABLE service_clock (
    id BIGINT PRIMARY KEY,
    skew BIGINT NOT NULL,
    downtime BIGINT NOT NULL,
    alive_at BIGINT NOT NULL,
    outage_ended_at BIGINT NOT NULL
) WITH (fillfactor = 10, vacuum_truncate = off);
INSERT INTO service_clock (id, skew, downtime, alive_at, outage_ended_at)
SELECT 1, skew, downtime, alive_at, outage_ended_at FROM admission_clock ORDER BY id DESC LIMIT 1;

ALTER TABLE admission_clock DROP COLUMN skew;
ALTER TABLE admission_clock DROP COLUMN downtime;
ALTER TABLE admission_clock DROP COLUMN alive_at;
ALTER TABLE admission_clock DROP COLUMN outage_ended_at;

UPDATE clock SET minimum_version = 2, newest_version = 2;
