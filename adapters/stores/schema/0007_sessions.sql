-- What is remembered of a session: the deepest spawn depth that was ever claimed for it.
CREATE TABLE sessions (
    key        TEXT    PRIMARY KEY,
    depth      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
