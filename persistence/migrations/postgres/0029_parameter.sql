-- System parameters (section 4.10 of the interface, D-ADM-02); json is an object, and
-- updated_at, which grows with every change, is its version.

CREATE TABLE parameter (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  code       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  json       TEXT NOT NULL,
  editable   BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
