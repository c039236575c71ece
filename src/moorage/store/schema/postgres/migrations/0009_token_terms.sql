-- Tokens with a scope, an end, a replacement and a last use. `scope` is a JSON object, the names that
-- a role outside of the ladder is bound to. A token that was rotated expires at the latest when the
-- grace is over. `used_at` is written about once an hour.
ALTER TABLE access_token ADD COLUMN scope TEXT;
ALTER TABLE access_token ADD COLUMN expires_at BIGINT;
ALTER TABLE access_token ADD COLUMN rotated_at BIGINT;
ALTER TABLE access_token ADD COLUMN used_at BIGINT;
