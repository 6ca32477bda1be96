-- The job user-search finds the rows that wait for it.

CREATE INDEX CONCURRENTLY IF NOT EXISTS users_unfolded ON users (id) WHERE folded IS NULL;
