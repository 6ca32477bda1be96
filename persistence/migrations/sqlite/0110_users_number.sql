-- The international number of an account whose phone is the form that 0.9 stores (D-PWD-07). It is used until
-- "castellan user phones --repair" has run, so nodes of both versions find the same accounts. A new installation has no
-- such numbers.

ALTER TABLE users ADD COLUMN number TEXT;
INSERT INTO seed (name, at) SELECT 'phones', 0 WHERE NOT EXISTS (SELECT 1 FROM users);
