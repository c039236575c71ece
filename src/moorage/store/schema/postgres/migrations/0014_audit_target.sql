-- The audit log is also read by target. A long path is too long for an index of PostgreSQL.
CREATE INDEX audit_target ON audit (substr(target, 1, 200), at, id);
