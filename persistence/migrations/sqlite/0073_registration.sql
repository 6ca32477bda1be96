-- Which account another service brought in (D-INT-07), and the contracts that a user accepted
-- when signing up, in the version of that moment ('' for none).

CREATE INDEX integration_claim_record ON integration_claim (record_id, kind);

CREATE TABLE contract_acceptance (
  user_id     TEXT NOT NULL,
  contract_id BIGINT NOT NULL,
  version     TEXT NOT NULL,
  accepted_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, contract_id)
);
