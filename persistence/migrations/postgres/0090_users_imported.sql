-- Whether an account has the hash of another login service (D-AUTH-19).

CREATE INDEX users_imported ON users (id) WHERE substr(password_hash, 1, 10) = '$imported$';
