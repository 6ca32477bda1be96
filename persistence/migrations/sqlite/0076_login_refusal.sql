-- The cause of a refused login (D-USR-04): the reason, the number of the try from its network prefix, its limit, and
-- until when the prefix is locked. Null for a completed login and for earlier rows.

ALTER TABLE login_history ADD COLUMN reason TEXT;
ALTER TABLE login_history ADD COLUMN attempt BIGINT;
ALTER TABLE login_history ADD COLUMN attempt_limit BIGINT;
ALTER TABLE login_history ADD COLUMN locked_until BIGINT;
