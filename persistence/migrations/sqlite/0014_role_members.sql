-- The members of a role are listed newest first, page by page: the index has the
-- order of the list, so that the last page costs what the first one does.

DROP INDEX user_role_by_role;
CREATE INDEX user_role_by_role ON user_role (role, created_at, user_id);
