-- A request is shown in several places of a channel, each copy with a secret of its own that its buttons carry;
-- messages name the place, and notices carry their own text and need no request.
CREATE TABLE outbox_of_places (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    channel    TEXT    NOT NULL,
    place      TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    request_id TEXT    REFERENCES requests (id),
    notice     TEXT,
    due_at     INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    error      TEXT
) STRICT;
INSERT INTO outbox_of_places (id, channel, place, kind, request_id, due_at, attempts, error)
    SELECT id, channel, '', kind, request_id, due_at, attempts, error FROM outbox;
DROP TABLE outbox;
ALTER TABLE outbox_of_places RENAME TO outbox;
CREATE INDEX outbox_by_request ON outbox (channel, place, request_id, id);

CREATE TABLE copies_in_places (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT    NOT NULL REFERENCES requests (id),
    channel    TEXT    NOT NULL,
    place      TEXT    NOT NULL,
    nonce      TEXT    NOT NULL,
    ref        TEXT,
    UNIQUE (request_id, channel, place)
) STRICT;
INSERT OR REPLACE INTO copies_in_places (id, request_id, channel, place, nonce, ref)
    SELECT id, request_id, channel, '', '', ref FROM copies ORDER BY id;
DROP TABLE copies;
ALTER TABLE copies_in_places RENAME TO copies;
CREATE UNIQUE INDEX copies_by_nonce ON copies (nonce) WHERE nonce != '';
