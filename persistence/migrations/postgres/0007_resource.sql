-- The resource registry, roles and grants (section 2.4). Codes are unique per
-- context and table (D-RES-07). all_actions and menu_item are any JSON, '' for
-- null. Roles of accounts are in user_role, by code.

CREATE TABLE role (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  code       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE resource_type (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  context     TEXT NOT NULL,
  code        TEXT NOT NULL,
  name        TEXT NOT NULL,
  status      INTEGER NOT NULL,
  all_actions TEXT NOT NULL,
  created_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_by  TEXT NOT NULL,
  updated_at  BIGINT NOT NULL,
  UNIQUE (context, code)
);

-- parent_id is 0 for a resource that is nested in none.
CREATE TABLE resource (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  context     TEXT NOT NULL,
  code        TEXT NOT NULL,
  name        TEXT NOT NULL,
  status      INTEGER NOT NULL,
  type_id     BIGINT NOT NULL,
  parent_id   BIGINT NOT NULL,
  all_actions TEXT NOT NULL,
  menu_item   TEXT NOT NULL,
  created_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_by  TEXT NOT NULL,
  updated_at  BIGINT NOT NULL,
  UNIQUE (context, code)
);

CREATE TABLE role_resource_permission (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  role_id     BIGINT NOT NULL,
  resource_id BIGINT NOT NULL,
  permission  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  UNIQUE (role_id, resource_id)
);

-- Append-only: one line for every change of a grant (D-RES-05).
CREATE TABLE role_resource_permission_log (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  role_id     BIGINT NOT NULL,
  resource_id BIGINT NOT NULL,
  permission  TEXT NOT NULL,
  created_at  BIGINT NOT NULL
);
CREATE INDEX role_resource_permission_log_role ON role_resource_permission_log (role_id, id);
CREATE INDEX role_resource_permission_log_resource ON role_resource_permission_log (resource_id, id);

CREATE INDEX user_role_by_role ON user_role (role);
CREATE INDEX user_role_created ON user_role (created_at, user_id, role);
