-- Which withdrawals of all accounts left in a time, for the sums of the money policy.

CREATE INDEX CONCURRENTLY IF NOT EXISTS withdrawal_left_at ON withdrawal (left_at) WHERE left_at > 0;
