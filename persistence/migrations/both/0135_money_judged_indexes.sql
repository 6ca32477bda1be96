-- The reads of the money policy: ends of holds, and the movements of a destination and of an account that left.

CREATE INDEX CONCURRENTLY IF NOT EXISTS withdrawal_held ON withdrawal (hold_until) WHERE hold_until > 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS withdrawal_destination ON withdrawal (destination, id) WHERE destination <> '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS withdrawal_left ON withdrawal (user_id, left_at) WHERE left_at > 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS withdrawal_left_to ON withdrawal (destination, left_at) WHERE left_at > 0 AND destination <> '';
