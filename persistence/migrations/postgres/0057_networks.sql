-- What notices to owners need (D-EXT-07). networks are marks of the networks from which
-- the account was logged in to, four characters each, oldest first.

ALTER TABLE users ADD COLUMN networks TEXT NOT NULL DEFAULT '';
