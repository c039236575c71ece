-- The audit log is also read by target: what was done to a pool, a lease, an agent.
CREATE INDEX audit_target ON audit (target, at, id);
