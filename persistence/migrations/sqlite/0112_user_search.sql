-- The search of accounts by words. users.folded is the name for searches; NULL: the row waits for the job user-search,
-- which also makes its entry in user_search. Every change of a searched column by any version sets it to NULL. Until
-- then a search reads the newest of these accounts themselves.

ALTER TABLE users ADD COLUMN folded TEXT;
-- The names of companies for searches. The version before reads every column of corporate_application.
CREATE TABLE application_search (
  id     INTEGER PRIMARY KEY,
  folded TEXT NOT NULL
);
CREATE TABLE user_search (
  n       INTEGER PRIMARY KEY,
  user_id TEXT NOT NULL UNIQUE,
  words   TEXT NOT NULL,
  digits  TEXT NOT NULL
);
CREATE VIRTUAL TABLE user_search_parts USING fts5 (parts, content = '', contentless_delete = 1, detail = none,
  prefix = '1 2 3 4', tokenize = "ascii tokenchars '@.-_#'");
CREATE TRIGGER users_unfold AFTER UPDATE OF name, surname, email, phone, number ON users FOR EACH ROW
  WHEN (NEW.name, NEW.surname, NEW.email, NEW.phone, NEW.number)
    IS NOT (OLD.name, OLD.surname, OLD.email, OLD.phone, OLD.number)
BEGIN
  UPDATE users SET folded = NULL WHERE id = NEW.id;
END;
