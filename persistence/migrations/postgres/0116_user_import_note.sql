-- What of imported users was not taken, such as a second authenticator.

CREATE TABLE user_import_note (
  import_id TEXT NOT NULL,
  line      BIGINT NOT NULL,
  note      TEXT NOT NULL,
  PRIMARY KEY (import_id, line)
);
