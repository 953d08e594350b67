CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE account (id INTEGER PRIMARY KEY, ext TEXT NOT NULL UNIQUE, uid BLOB NOT NULL UNIQUE, labels TEXT NOT NULL, joined INTEGER NOT NULL);
CREATE TABLE item (id INTEGER PRIMARY KEY, ext TEXT NOT NULL UNIQUE, title TEXT NOT NULL, labels TEXT NOT NULL, hidden INTEGER NOT NULL);
CREATE TABLE batch (id INTEGER PRIMARY KEY, closed INTEGER NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL CHECK (state IN ('closed', 'released', 'burned')));
CREATE TABLE cell (user_id INTEGER NOT NULL REFERENCES account, item_id INTEGER NOT NULL REFERENCES item, value REAL NOT NULL, at INTEGER NOT NULL,
  batch INTEGER, learnt REAL, PRIMARY KEY (user_id, item_id)) WITHOUT ROWID;
CREATE INDEX cell_of_batch ON cell (batch);
CREATE TABLE spent_cell (tag BLOB PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE model (id TEXT PRIMARY KEY, kind TEXT NOT NULL, method TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL, guarantee TEXT NOT NULL, batch INTEGER NOT NULL,
  paid INTEGER NOT NULL, made INTEGER NOT NULL, activated INTEGER, state TEXT NOT NULL CHECK (state IN ('ready', 'active', 'retired')));
CREATE UNIQUE INDEX one_active_model ON model (state) WHERE state = 'active';
CREATE TABLE job (id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'stopped')),
  done INTEGER NOT NULL, total INTEGER NOT NULL, request TEXT NOT NULL, result TEXT, error TEXT, begun INTEGER NOT NULL, ended INTEGER);
CREATE TABLE job_event (job TEXT NOT NULL REFERENCES job, n INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (job, n)) WITHOUT ROWID;
CREATE TABLE api_key (id TEXT PRIMARY KEY, hash BLOB NOT NULL, scopes TEXT NOT NULL, user_id INTEGER, created INTEGER NOT NULL, expires INTEGER, revoked INTEGER);
CREATE TABLE idempotency (key_id TEXT NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (key_id, key)) WITHOUT ROWID;
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), ledger_id TEXT NOT NULL, ledger_seq INTEGER NOT NULL, ledger_hash TEXT NOT NULL);
