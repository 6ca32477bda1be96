-- The cap of a network counts what was sent without a proof, so nothing else is in its index.
DROP INDEX outbox_prefix;
CREATE INDEX outbox_prefix ON outbox (prefix, created_at) WHERE counted AND NOT proven;
