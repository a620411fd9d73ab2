-- 0x53617973 is "Says": tells a database of Sayso from any other.
PRAGMA application_id = 1398897011;

-- `person_allowed` is 1 where a person's yes resolved the request; `body` is the whole request as JSON, but for
-- the bytes of its standard input.
CREATE TABLE requests (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    kind           TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    binding        TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    deadline       INTEGER NOT NULL,
    ended_at       INTEGER,
    person_allowed INTEGER NOT NULL CHECK (person_allowed IN (0, 1)),
    body           TEXT    NOT NULL,
    stdin          BLOB
) STRICT;
CREATE INDEX requests_by_state ON requests (state, created_at);
CREATE INDEX requests_by_end ON requests (coalesce(ended_at, created_at));
CREATE INDEX requests_person_allowed ON requests (agent, binding) WHERE person_allowed = 1;

CREATE TABLE grants (
    request_id  TEXT    PRIMARY KEY REFERENCES requests (id),
    binding     TEXT    NOT NULL,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    consumed_at INTEGER
) STRICT, WITHOUT ROWID;

-- `entry` is the whole entry as canonical JSON, so that one entry is kept once. Paths need not be text:
-- `pattern` holds their bytes.
CREATE TABLE allowlist (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    entry        TEXT    NOT NULL UNIQUE,
    pattern      BLOB    NOT NULL,
    agent        TEXT,
    request_id   TEXT    NOT NULL REFERENCES requests (id),
    last_used_at INTEGER,
    last_command TEXT
) STRICT;
CREATE INDEX allowlist_by_pattern ON allowlist (pattern);

CREATE TABLE agents (
    id           TEXT    PRIMARY KEY,
    token_sha256 TEXT    NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE logins (
    token_sha256 TEXT    PRIMARY KEY,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    channel    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    request_id TEXT    NOT NULL REFERENCES requests (id),
    due_at     INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    error      TEXT
) STRICT;
CREATE INDEX outbox_by_request ON outbox (channel, request_id, id);

CREATE TABLE copies (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT    NOT NULL REFERENCES requests (id),
    channel    TEXT    NOT NULL,
    ref        TEXT    NOT NULL,
    UNIQUE (request_id, channel, ref)
) STRICT;

-- `body` holds the very bytes that `hash` covers, together with `previous`. `request_id` repeats what the body
-- says, for look-up only.
CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY,
    request_id BLOB,
    body       BLOB    NOT NULL,
    previous   BLOB    NOT NULL,
    hash       BLOB    NOT NULL
) STRICT;
CREATE INDEX audit_by_request ON audit (request_id) WHERE request_id IS NOT NULL;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the record is append-only'); END;
CREATE TRIGGER audit_is_not_shortened BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the record is append-only'); END;

-- One row: the head of the chain, and the kill switch.
CREATE TABLE meta (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    audit_seq  INTEGER NOT NULL,
    audit_hash TEXT    NOT NULL,
    locked     INTEGER NOT NULL CHECK (locked IN (0, 1))
) STRICT;
INSERT INTO meta VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 0);
