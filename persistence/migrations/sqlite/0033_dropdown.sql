-- The options of dropdowns, with their names by language (section 2.12 of the
-- interface). The list is short and read as a whole or by its group.

CREATE TABLE dropdown_option (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  group_code        TEXT NOT NULL,
  code              TEXT NOT NULL,
  name_en           TEXT NOT NULL,
  name_tr           TEXT NOT NULL,
  name_ar           TEXT NOT NULL,
  explain_mandatory BOOLEAN NOT NULL,
  created_at        BIGINT NOT NULL,
  UNIQUE (group_code, code)
);
