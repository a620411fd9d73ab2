-- Every answer that was taken, in order: `number` counts from 0 within its request, so that of two answers given at
-- once the second sees the first. `person` is whom `people` in the configuration named then.
CREATE TABLE reviews (
    request_id TEXT    NOT NULL REFERENCES requests (id),
    number     INTEGER NOT NULL,
    person     TEXT,
    channel    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    answer     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (request_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX reviews_by_person ON reviews (person, at) WHERE person IS NOT NULL;
CREATE INDEX reviews_by_id ON reviews (channel, id, at);
