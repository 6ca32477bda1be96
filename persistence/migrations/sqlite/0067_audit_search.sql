-- The audit is asked for what one request did, what came from one address and what
-- concerns one record, newest first. A request has few rows: they are sorted.

CREATE INDEX audit_request ON audit (request_id) WHERE request_id <> '';
CREATE INDEX audit_ip ON audit (ip, at, chain, seq) WHERE ip <> '';
CREATE INDEX audit_target ON audit (target, at, chain, seq) WHERE target <> '';
