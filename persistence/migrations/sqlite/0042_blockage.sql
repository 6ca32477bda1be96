-- Blockages (section 2.9 of the interface; D-BLK-01 to D-BLK-04). holds is how many
-- holds of the ledger a blockage ever had: hold.source is 'blockage', and
-- hold.source_ref the id, a slash and 1, 2, 3 … A closure is what closing an account
-- made (D-KYC-04). Texts are '' and source_id, updated_at and deleted_at are 0 where there
-- is none.

CREATE TABLE blockage (
  id               INTEGER NOT NULL PRIMARY KEY,
  user_id          TEXT NOT NULL,
  currency_id      INTEGER NOT NULL,
  type_id          INTEGER NOT NULL CHECK (type_id > 0),
  source_id        INTEGER NOT NULL CHECK (source_id >= 0),
  hi               INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo               INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  status           TEXT NOT NULL CHECK (status IN ('active', 'released')),
  description      TEXT NOT NULL,
  description_json TEXT NOT NULL,
  comment          TEXT NOT NULL,
  closure          BOOLEAN NOT NULL,
  holds            INTEGER NOT NULL CHECK (holds > 0),
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL,
  deleted_at       BIGINT NOT NULL,
  version          BIGINT NOT NULL,
  CHECK (hi > 0 OR lo > 0),
  CHECK (deleted_at = 0 OR status = 'released')
);
CREATE UNIQUE INDEX blockage_closure ON blockage (user_id, currency_id) WHERE closure AND status = 'active';
CREATE INDEX blockage_user ON blockage (user_id, id) WHERE deleted_at = 0;
CREATE INDEX blockage_currency ON blockage (currency_id, id) WHERE deleted_at = 0;
CREATE INDEX blockage_type ON blockage (type_id, id) WHERE deleted_at = 0;
CREATE INDEX blockage_status ON blockage (status, id) WHERE deleted_at = 0;
