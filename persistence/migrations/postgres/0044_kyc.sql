-- Decisions on accounts (sections 3.5 and 4.16 of the interface). users.address_confirmed
-- is the present one on the address, as kyc_confirm is on the identity. account_decision
-- keeps each of both kinds (kyc, address): document_id is the decided KYC document, reasons
-- is JSON by language.

ALTER TABLE users ADD COLUMN address_confirmed TEXT NOT NULL DEFAULT 'waitingApproval';

CREATE TABLE account_decision (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id     TEXT NOT NULL,
  kind        TEXT NOT NULL,
  value       TEXT NOT NULL,
  document_id TEXT NOT NULL,
  reason      TEXT NOT NULL,
  reasons     TEXT NOT NULL,
  decided_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL
);

CREATE INDEX account_decision_user ON account_decision (user_id, kind, id);
