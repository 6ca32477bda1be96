-- What was known of the client with which the owner approved a withdrawal; '' if no rule asked for it. 0.9 leaves it ''.

ALTER TABLE withdrawal ADD COLUMN device TEXT NOT NULL DEFAULT '';
