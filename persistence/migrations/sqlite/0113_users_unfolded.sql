-- The job user-search finds the rows that wait for it.

CREATE INDEX users_unfolded ON users (id) WHERE folded IS NULL;
