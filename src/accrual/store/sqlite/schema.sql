-- The schema of a SQLite file. `accrual.store.events` says what each column holds; `digest` is that of a body
-- (`accrual.store.base.digest`). Every page of the file has a checksum (`accrual.store.sqlite.file`).

CREATE TABLE accrual_version (
    version_num TEXT PRIMARY KEY NOT NULL
) STRICT;

CREATE TABLE bandit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- the number of a bandit that was erased is never given again
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,
    rounds INTEGER NOT NULL
) STRICT;

CREATE TABLE head (
    bandit INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    decisions INTEGER NOT NULL,
    arms INTEGER NOT NULL
) STRICT;

CREATE TABLE arm (
    bandit INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    cap REAL NOT NULL,
    "window" REAL NOT NULL,
    about BLOB,
    PRIMARY KEY (bandit, number),
    UNIQUE (bandit, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision (
    bandit INTEGER NOT NULL,
    id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    at REAL NOT NULL,
    "window" REAL NOT NULL CHECK ("window" > 0),
    seen INTEGER NOT NULL,
    key TEXT,
    part INTEGER NOT NULL,
    salt INTEGER NOT NULL,
    propensity REAL,
    context BLOB,
    PRIMARY KEY (bandit, id),
    UNIQUE (bandit, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX decision_key ON decision (bandit, key, part) WHERE key IS NOT NULL;

CREATE TABLE piece (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    decision INTEGER NOT NULL,
    key TEXT,
    value REAL NOT NULL CHECK (value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    age REAL NOT NULL CHECK (age BETWEEN 0 AND 1.7976931348623157e308),
    stated INTEGER NOT NULL,
    at REAL NOT NULL,
    late INTEGER NOT NULL,
    stream INTEGER,
    PRIMARY KEY (bandit, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX piece_key ON piece (bandit, decision, key) WHERE key IS NOT NULL;

CREATE TABLE change (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL CHECK (kind IN (2, 3, 4)),
    subject INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (bandit, seq),
    UNIQUE (bandit, kind, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot (
    bandit INTEGER NOT NULL,
    form TEXT NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (bandit, form)
) STRICT;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    digest BLOB NOT NULL,
    made REAL NOT NULL,
    ends REAL
) STRICT;

-- The same events once more, packed, some thousands in a row: SQLite hands out rows too slowly for a
-- refold. `seq` is the last event's position.
CREATE TABLE block (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (bandit, seq)
) STRICT;
