-- Administrators search accounts by their number. Few accounts have one beside their phone.

CREATE INDEX users_number ON users (number) WHERE number IS NOT NULL;
