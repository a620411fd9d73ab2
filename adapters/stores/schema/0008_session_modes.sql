-- Modes of `exec` that the operator set for one session and its subagents; they only make the configured ones stricter.
CREATE TABLE session_modes (
    key      TEXT    PRIMARY KEY,
    security TEXT,
    ask      TEXT,
    set_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
