-- Expected releases of slots name their leases. Older processes cannot read such slots, so they may
-- not write any more.
UPDATE clock SET minimum_version = 5, newest_version = 5;
