-- Checkpoints form a chain (D-EXT-03): their numbers are 1, 2, 3 …, and the hash of
-- one covers that of the one before. Those of an older version have the number 0.

ALTER TABLE audit_checkpoint ADD COLUMN counter BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX audit_checkpoint_counter ON audit_checkpoint (counter) WHERE counter > 0;
