-- What people set for sessions. `set_by` is the sender as JSON; what no longer stands has `ended_at`.
CREATE TABLE elevations (
    id          TEXT    PRIMARY KEY,
    session     TEXT    NOT NULL,
    level       TEXT    NOT NULL,
    set_by      TEXT    NOT NULL,
    set_at      INTEGER NOT NULL,
    until       INTEGER,
    reason      TEXT,
    once        INTEGER NOT NULL,
    used_at     INTEGER,
    break_glass INTEGER NOT NULL,
    place       TEXT,
    ended_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX elevations_standing ON elevations (session) WHERE ended_at IS NULL;

-- Which session a chat means where it names none: one for each agent.
CREATE TABLE chat_bindings (
    channel  TEXT    NOT NULL,
    place    TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    bound_by TEXT    NOT NULL,
    bound_at INTEGER NOT NULL,
    PRIMARY KEY (channel, place, agent)
) STRICT, WITHOUT ROWID;
