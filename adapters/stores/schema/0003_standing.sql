-- What answers left standing. `given_by` is the reviewer as JSON; a row that no longer counts has `ended_at`.
-- Commands need not be valid text: `command` holds their bytes.
CREATE TABLE permissions (
    request_id TEXT    PRIMARY KEY REFERENCES requests (id),
    agent      TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    binding    TEXT    NOT NULL,
    command    BLOB    NOT NULL,
    given_by   TEXT    NOT NULL,
    given_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    max_uses   INTEGER,
    uses       INTEGER NOT NULL DEFAULT 0,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX permissions_by_binding ON permissions (agent, binding) WHERE ended_at IS NULL;

CREATE TABLE deny_rules (
    request_id TEXT    PRIMARY KEY REFERENCES requests (id),
    agent      TEXT    NOT NULL,
    command    BLOB    NOT NULL,
    given_by   TEXT    NOT NULL,
    given_at   INTEGER NOT NULL,
    reason     TEXT,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX deny_rules_by_agent ON deny_rules (agent) WHERE ended_at IS NULL;

-- People let in by a code; `route` is empty for their own direct messages.
CREATE TABLE paired (
    channel   TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    route     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    paired_at INTEGER NOT NULL,
    PRIMARY KEY (channel, id, route)
) STRICT, WITHOUT ROWID;
