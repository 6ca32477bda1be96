-- The refused logins over all accounts (D-EXT-15), newest first. Lines of completed logins have no entry.

CREATE INDEX login_history_refused ON login_history (id) WHERE NOT success;
