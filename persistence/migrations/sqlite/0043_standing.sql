-- What was said when the status of an account was last set (D-KYC-03), '' for nothing, and
-- an index for the accounts that the AML control found (D-KYC-06).

CREATE TABLE user_standing (
  user_id     TEXT NOT NULL PRIMARY KEY,
  status      TEXT NOT NULL,
  description TEXT NOT NULL,
  reason      TEXT NOT NULL,
  changed_by  TEXT NOT NULL,
  changed_at  BIGINT NOT NULL
);
CREATE INDEX users_aml ON users (id) WHERE aml_status <> 'notRisky';
