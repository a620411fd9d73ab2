-- Requests leave when they are old; what answers left standing outlives the request that it came from, so it
-- names the request without referring to it.
CREATE TABLE allowlist_standing (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    entry        TEXT    NOT NULL UNIQUE,
    agent        TEXT,
    given_by     TEXT,
    given_at     INTEGER NOT NULL,
    request_id   TEXT,
    last_used_at INTEGER,
    last_command TEXT,
    last_path    BLOB
) STRICT;
INSERT INTO allowlist_standing SELECT seq, id, entry, agent, given_by, given_at, request_id, last_used_at,
    last_command, last_path FROM allowlist;
DROP TABLE allowlist;
ALTER TABLE allowlist_standing RENAME TO allowlist;
CREATE INDEX allowlist_by_agent ON allowlist (agent);
CREATE TRIGGER allowlist_grows AFTER INSERT ON allowlist
BEGIN UPDATE exec_approvals SET revision = revision + 1; END;
CREATE TRIGGER allowlist_shrinks AFTER DELETE ON allowlist
BEGIN UPDATE exec_approvals SET revision = revision + 1; END;

CREATE TABLE permissions_standing (
    request_id TEXT    PRIMARY KEY,
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
INSERT INTO permissions_standing SELECT request_id, agent, session, binding, command, given_by, given_at,
    expires_at, max_uses, uses, ended_at FROM permissions;
DROP TABLE permissions;
ALTER TABLE permissions_standing RENAME TO permissions;
CREATE INDEX permissions_by_binding ON permissions (agent, binding) WHERE ended_at IS NULL;

CREATE TABLE deny_rules_standing (
    request_id TEXT    PRIMARY KEY,
    agent      TEXT    NOT NULL,
    command    BLOB    NOT NULL,
    given_by   TEXT    NOT NULL,
    given_at   INTEGER NOT NULL,
    reason     TEXT,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO deny_rules_standing SELECT request_id, agent, command, given_by, given_at, reason, ended_at
    FROM deny_rules;
DROP TABLE deny_rules;
ALTER TABLE deny_rules_standing RENAME TO deny_rules;
CREATE INDEX deny_rules_by_agent ON deny_rules (agent) WHERE ended_at IS NULL;

-- How each copy fared: what it shows by now (post, update or remove), how often that was tried, and what the
-- platform said where it was given up.
ALTER TABLE copies ADD COLUMN shows TEXT;
ALTER TABLE copies ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE copies ADD COLUMN error TEXT;
UPDATE copies SET shows = 'post', tries = 1 WHERE ref IS NOT NULL;
CREATE INDEX outbox_about ON outbox (request_id) WHERE request_id IS NOT NULL;

-- The history is searched by these: who answered, when it ended (or was made, where it is open), and the command line
-- as it was shown. The index holds all that filters look at, so that only rows that are returned are read.
CREATE TABLE answerers (
    person     TEXT NOT NULL,
    request_id TEXT NOT NULL REFERENCES requests (id),
    name       TEXT,
    PRIMARY KEY (person, request_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX answerers_by_request ON answerers (request_id);
INSERT OR IGNORE INTO answerers (person, request_id, name)
    SELECT json_extract(body, '$.resolution.by.channel') || ':' || json_extract(body, '$.resolution.by.id'), id,
           json_extract(body, '$.resolution.by.name')
    FROM requests WHERE json_valid(body) AND json_extract(body, '$.resolution.by.id') IS NOT NULL;
ALTER TABLE requests ADD COLUMN command TEXT NOT NULL DEFAULT '';
UPDATE requests SET command = coalesce(json_extract(body, '$.canonical'), '') WHERE json_valid(body);
ALTER TABLE requests ADD COLUMN moment INTEGER NOT NULL DEFAULT 0;
UPDATE requests SET moment = coalesce(ended_at, created_at);
CREATE INDEX requests_by_moment ON requests (moment, state, agent, session, id, command);
DROP INDEX requests_by_end;
