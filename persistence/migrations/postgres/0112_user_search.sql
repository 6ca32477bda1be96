-- The search of accounts by words. users.folded is the name for searches; NULL: the row waits for the job user-search,
-- which also makes its entry in user_search. Every change of a searched column by any version sets it to NULL. Until
-- then a search reads the newest of these accounts themselves.

ALTER TABLE users ADD COLUMN folded TEXT;
-- The names of companies for searches. The version before reads every column of corporate_application.
CREATE TABLE application_search (
  id     BIGINT PRIMARY KEY,
  folded TEXT NOT NULL
);
CREATE TABLE user_search (
  user_id TEXT PRIMARY KEY,
  words   TEXT NOT NULL,
  digits  TEXT NOT NULL,
  parts   TSVECTOR NOT NULL
);
CREATE INDEX user_search_parts ON user_search USING gin (parts);
CREATE FUNCTION users_unfold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.folded := NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER users_unfold BEFORE UPDATE OF name, surname, email, phone, number ON users FOR EACH ROW
  WHEN ((NEW.name, NEW.surname, NEW.email, NEW.phone, NEW.number)
    IS DISTINCT FROM (OLD.name, OLD.surname, OLD.email, OLD.phone, OLD.number))
  EXECUTE FUNCTION users_unfold();
