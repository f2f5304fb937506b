-- The schema of a SQLite file. `accrual.store.events` says what each column holds; `sum` is the checksum of a row
-- (`accrual.store.sqlite.checksums`), and `digest` that of a body (`accrual.store.base.digest`). A row is added before its
-- checksum is known only while a whole file is written.

CREATE TABLE accrual_version (
    version_num TEXT PRIMARY KEY NOT NULL
) STRICT;

CREATE TABLE bandit (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    sum INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE head (
    bandit INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    decisions INTEGER NOT NULL,
    arms INTEGER NOT NULL,
    sum INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE arm (
    bandit INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    cap REAL NOT NULL,
    "window" REAL NOT NULL,
    about BLOB,
    sum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (bandit, number),
    UNIQUE (bandit, name)
) STRICT, WITHOUT ROWID;

-- `key_run` and `key_page` find keys, here and in `piece`: no index does.
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
    sum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (bandit, id),
    UNIQUE (bandit, seq)
) STRICT, WITHOUT ROWID;

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
    sum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (bandit, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE change (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL CHECK (kind IN (2, 3, 4)),
    subject INTEGER NOT NULL,
    at REAL NOT NULL,
    sum INTEGER NOT NULL DEFAULT 0,
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
    ends REAL,
    sum INTEGER NOT NULL DEFAULT 0
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

-- A log-structured index of keys (`accrual.store.sqlite.key_index`): it finds keys at the same cost whether they
-- are random or grow. `seq` is the last event's position.
CREATE TABLE key_run (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    filter BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (bandit, seq)
) STRICT;

CREATE TABLE key_page (
    bandit INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    page INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (bandit, seq, page)
) STRICT;

-- Checksums of which rows a table has, for tables of which a row that is gone would not be missed. Those
-- tables are empty now.
CREATE TABLE seal (
    name TEXT PRIMARY KEY NOT NULL,
    sum INTEGER NOT NULL
) STRICT;

INSERT INTO seal (name, sum) VALUES ('bandit', 0), ('api_key', 0);
