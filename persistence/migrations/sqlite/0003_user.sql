-- Accounts, what guards their passwords, and their sessions. phone and email
-- are canonical, and NULL where the account has none. sv_at is when sv last
-- rose; 0: never.

CREATE TABLE users (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL,
  surname        TEXT NOT NULL,
  email          TEXT UNIQUE,
  email_verified BOOLEAN NOT NULL,
  country_code   TEXT NOT NULL,
  phone          TEXT UNIQUE,
  language       TEXT NOT NULL,
  status         TEXT NOT NULL,
  type           TEXT NOT NULL,
  kyc_confirm    TEXT NOT NULL,
  aml_status     TEXT NOT NULL,
  level          INTEGER NOT NULL,
  password_hash  TEXT NOT NULL,
  previous_hash  TEXT NOT NULL,
  sv             BIGINT NOT NULL,
  sv_at          BIGINT NOT NULL,
  cv             BIGINT NOT NULL,
  roles          TEXT NOT NULL,
  demo           BOOLEAN NOT NULL,
  created_at     BIGINT NOT NULL
);
CREATE INDEX users_ended ON users (sv_at) WHERE sv_at > 0;

-- Roles beyond the one that every account has. users.roles repeats them,
-- separated by commas: a login reads one row.
CREATE TABLE user_role (
  user_id    TEXT NOT NULL,
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, role)
);

-- The key is a user id, or the keyed hash of an identifier nobody has. The
-- instants of a row change with every login, so it has no further index.
CREATE TABLE password_guard (
  id         TEXT PRIMARY KEY,
  version    BIGINT NOT NULL,
  body       TEXT NOT NULL,
  until      BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE session (
  id           TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  ip           TEXT NOT NULL,
  country      TEXT NOT NULL,
  brand        TEXT NOT NULL,
  model        TEXT NOT NULL,
  description  TEXT NOT NULL,
  device_id    TEXT NOT NULL,
  sv           BIGINT NOT NULL,
  amr          TEXT NOT NULL
);
CREATE INDEX session_by_user ON session (user_id);
CREATE INDEX session_ended ON session (ended_at) WHERE ended_at > 0;

CREATE TABLE login_history (
  id          TEXT PRIMARY KEY,
  user_id     TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  ip          TEXT NOT NULL,
  country     TEXT NOT NULL,
  brand       TEXT NOT NULL,
  model       TEXT NOT NULL,
  description TEXT NOT NULL,
  success     BOOLEAN NOT NULL
);
CREATE INDEX login_history_user ON login_history (user_id, id);
CREATE INDEX login_history_ip ON login_history (ip, id);
