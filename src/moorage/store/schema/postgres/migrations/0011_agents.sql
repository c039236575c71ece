-- What agents report limits what is offered: older processes would sell what is not there, so they
-- may not write any more.
ALTER TABLE provider ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE provider ADD COLUMN withheld TEXT COLLATE "C";
ALTER TABLE holder ADD COLUMN since BIGINT NOT NULL DEFAULT 0;

-- The members of an inventory that equal a default are no longer stored.
DROP VIEW inventory;
CREATE VIEW inventory AS
SELECT provider.uuid AS provider, held.key COLLATE "C" AS resource_class,
    (held.value ->> 'total')::bigint AS total,
    COALESCE((held.value ->> 'reserved')::bigint, 0) AS reserved,
    COALESCE((held.value ->> 'min_unit')::bigint, 1) AS min_unit,
    COALESCE((held.value ->> 'max_unit')::bigint, 2147483647) AS max_unit,
    COALESCE((held.value ->> 'step_size')::bigint, 1) AS step_size,
    COALESCE((held.value ->> 'allocation_ratio')::double precision, 1.0) AS allocation_ratio,
    (held.value ->> 'offered')::bigint AS offered,
    COALESCE((held.value ->> 'withheld')::boolean, false) AS withheld,
    COALESCE((held.value ->> 'used')::bigint, 0) AS used,
    COALESCE((held.value ->> 'created_at')::bigint, 0) AS created_at,
    COALESCE((held.value ->> 'updated_at')::bigint, 0) AS updated_at
FROM provider, json_each(provider.inventories::json) AS held;

UPDATE clock SET minimum_version = 3, newest_version = 3;
