-- Entries may also be added by an operator, without a request; each has an id by which people name it. `given_by` is
-- the reviewer as JSON. `last_path` holds bytes, as paths need not be text.
CREATE TABLE allowlist_kept (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    entry        TEXT    NOT NULL UNIQUE,
    agent        TEXT,
    given_by     TEXT,
    given_at     INTEGER NOT NULL,
    request_id   TEXT    REFERENCES requests (id),
    last_used_at INTEGER,
    last_command TEXT,
    last_path    BLOB
) STRICT;
INSERT INTO allowlist_kept (seq, id, entry, agent, given_by, given_at, request_id, last_used_at, last_command)
    SELECT a.id,
           lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
                 || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
           a.entry, a.agent,
           CASE json_type(r.body, '$.resolution.by') WHEN 'object' THEN json_extract(r.body, '$.resolution.by') END,
           coalesce(json_extract(r.body, '$.resolution.at'), r.created_at),
           a.request_id, a.last_used_at, a.last_command
    FROM allowlist AS a JOIN requests AS r ON r.id = a.request_id ORDER BY a.id;
DROP TABLE allowlist;
ALTER TABLE allowlist_kept RENAME TO allowlist;
CREATE INDEX allowlist_by_agent ON allowlist (agent);

-- One row: the settings of exec-approvals.json as JSON, and a number that grows with every change of the document.
CREATE TABLE exec_approvals (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    settings TEXT    NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO exec_approvals VALUES (1, '{}', 0);
CREATE TRIGGER allowlist_grows AFTER INSERT ON allowlist
BEGIN UPDATE exec_approvals SET revision = revision + 1; END;
CREATE TRIGGER allowlist_shrinks AFTER DELETE ON allowlist
BEGIN UPDATE exec_approvals SET revision = revision + 1; END;
CREATE TRIGGER exec_approvals_settings AFTER UPDATE OF settings ON exec_approvals
BEGIN UPDATE exec_approvals SET revision = revision + 1; END;
