-- The audit log is also read by target.
CREATE INDEX audit_target ON audit (target, at, id);
