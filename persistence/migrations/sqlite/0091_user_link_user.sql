-- The links of an account, for GET /admin/user/link.

CREATE INDEX user_link_user ON user_link (user_id);
