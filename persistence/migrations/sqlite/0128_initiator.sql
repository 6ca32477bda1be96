-- Who asked for a movement: USER, OPERATOR:<id> or SERVICE:<key>; '' for rows of programs without these columns.

ALTER TABLE withdrawal ADD COLUMN initiator TEXT NOT NULL DEFAULT '';
ALTER TABLE deposit ADD COLUMN initiator TEXT NOT NULL DEFAULT '';
