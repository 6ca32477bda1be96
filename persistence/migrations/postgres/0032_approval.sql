-- Deploy and VPN requests (section 4.13 of the interface), listed newest first by
-- each of their filters.

CREATE TABLE deploy_request (
  id                    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  service_name          TEXT NOT NULL,
  original_service_name TEXT NOT NULL,
  build_number          TEXT NOT NULL,
  status                TEXT NOT NULL,
  minutes               BIGINT NOT NULL,
  comment               TEXT NOT NULL,
  type                  TEXT NOT NULL,
  requestor_id          TEXT NOT NULL,
  decider_id            TEXT NOT NULL,
  created_at            BIGINT NOT NULL,
  updated_at            BIGINT NOT NULL
);

CREATE INDEX deploy_request_status ON deploy_request (status, id);
CREATE INDEX deploy_request_service ON deploy_request (service_name, id);
CREATE INDEX deploy_request_original ON deploy_request (original_service_name, id);
CREATE INDEX deploy_request_type ON deploy_request (type, id);

CREATE TABLE vpn_request (
  id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_name    TEXT NOT NULL,
  name         TEXT NOT NULL,
  surname      TEXT NOT NULL,
  status       TEXT NOT NULL,
  comment      TEXT NOT NULL,
  type         TEXT NOT NULL,
  requestor_id TEXT NOT NULL,
  decider_id   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);

CREATE INDEX vpn_request_status ON vpn_request (status, id);
CREATE INDEX vpn_request_user_name ON vpn_request (user_name, id);
CREATE INDEX vpn_request_type ON vpn_request (type, id);
