-- A session is the line of the login history about its login, if history is set; those of earlier releases have a line
-- in login_history. When such a session is deleted, by whichever release, the line moves to login_history.

CREATE INDEX session_ip ON session (ip, id); -- first: reads of sessions continue while it is built
ALTER TABLE session ADD COLUMN history BOOLEAN NOT NULL DEFAULT FALSE;
CREATE FUNCTION session_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO login_history (id, user_id, created_at, ip, country, brand, model, description, success)
  VALUES (OLD.id, OLD.user_id, OLD.created_at, OLD.ip, OLD.country, OLD.brand, OLD.model, OLD.description, TRUE)
  ON CONFLICT (id) DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER session_history AFTER DELETE ON session FOR EACH ROW WHEN (OLD.history)
  EXECUTE FUNCTION session_history();
