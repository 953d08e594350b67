-- The ledger in SQLite 3.37 or later. It refuses overspending, refunds and changes of the past by itself.
-- Costs are at most 2^60, so that no sum leaves 64 bits: SQLite would go on with a float.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  ledger_id BLOB NOT NULL CHECK (length(ledger_id) = 16),
  format INTEGER NOT NULL,
  sigma_bits INTEGER NOT NULL CHECK (sigma_bits = 24),
  head_seq INTEGER NOT NULL CHECK (head_seq >= 0),
  head_hash BLOB NOT NULL CHECK (length(head_hash) = 32)
) STRICT;

CREATE TABLE entry (
  seq INTEGER PRIMARY KEY CHECK (seq > 0),
  kind TEXT NOT NULL CHECK (kind IN ('open', 'charge', 'release', 'burn', 'cap', 'restore')),
  idem TEXT,
  request BLOB,          -- keyed digest of what was asked
  release_id BLOB,
  cost INTEGER NOT NULL DEFAULT 0 CHECK (cost BETWEEN 0 AND 1152921504606846976),  -- the largest of its rows in charged
  slack INTEGER NOT NULL DEFAULT 0 CHECK (slack BETWEEN 0 AND 1152921504606846976),
  n_accounts INTEGER NOT NULL DEFAULT 0 CHECK (n_accounts >= 0),
  accounts_hash BLOB,    -- HMAC(ledger key, sorted rows)
  body TEXT NOT NULL,    -- canonical JSON
  prev_hash BLOB NOT NULL CHECK (length(prev_hash) = 32),
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  CHECK (kind <> 'charge' OR (idem IS NOT NULL AND request IS NOT NULL)),
  CHECK (kind NOT IN ('charge', 'release', 'burn') OR length(release_id) = 16)
) STRICT;

CREATE TABLE account (
  account BLOB PRIMARY KEY CHECK (length(account) = 16),
  unit TEXT NOT NULL CHECK (unit IN ('rating', 'event', 'user')),
  cap_cost INTEGER NOT NULL CHECK (cap_cost BETWEEN 1 AND 1152921504606846976),
  cap_slack INTEGER NOT NULL CHECK (cap_slack BETWEEN 1 AND 1152921504606846976),
  capped INTEGER NOT NULL REFERENCES entry,  -- the entry that set the cap
  cost INTEGER NOT NULL DEFAULT 0 CHECK (cost >= 0),
  slack INTEGER NOT NULL DEFAULT 0 CHECK (slack >= 0),
  CHECK (cost <= cap_cost),
  CHECK (slack <= cap_slack)
) STRICT, WITHOUT ROWID;

CREATE TABLE charged (
  seq INTEGER NOT NULL REFERENCES entry,
  account BLOB NOT NULL REFERENCES account,
  cost INTEGER NOT NULL CHECK (cost >= 0),
  slack INTEGER NOT NULL CHECK (slack >= 0),
  PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_charge_a_key ON entry (idem) WHERE kind = 'charge';
CREATE UNIQUE INDEX one_charge_a_release ON entry (release_id) WHERE kind = 'charge';
CREATE UNIQUE INDEX one_end_a_release ON entry (release_id) WHERE kind IN ('release', 'burn');

-- BEFORE triggers see what INSERT OR REPLACE would delete, and raise even under INSERT OR IGNORE.
CREATE TRIGGER entry_follows_head BEFORE INSERT ON entry BEGIN
  SELECT RAISE(ABORT, 'an entry must follow the head') WHERE NOT EXISTS (
    SELECT 1 FROM meta WHERE head_hash = NEW.prev_hash
      AND (NEW.seq = head_seq + 1 OR (NEW.kind = 'restore' AND NEW.seq > head_seq)));
  SELECT RAISE(ABORT, 'an end needs its charge') WHERE NEW.kind IN ('release', 'burn') AND NOT EXISTS (
    SELECT 1 FROM entry WHERE kind = 'charge' AND release_id = NEW.release_id);
  SELECT RAISE(ABORT, 'one end a release') WHERE NEW.kind IN ('release', 'burn') AND EXISTS (
    SELECT 1 FROM entry WHERE kind IN ('release', 'burn') AND release_id = NEW.release_id);
  SELECT RAISE(ABORT, 'one charge a key') WHERE NEW.kind = 'charge' AND EXISTS (
    SELECT 1 FROM entry WHERE kind = 'charge' AND idem = NEW.idem);
  SELECT RAISE(ABORT, 'one charge a release') WHERE NEW.kind = 'charge' AND EXISTS (
    SELECT 1 FROM entry WHERE kind = 'charge' AND release_id = NEW.release_id);
END;
CREATE TRIGGER entry_moves_head AFTER INSERT ON entry BEGIN
  UPDATE meta SET head_seq = NEW.seq, head_hash = NEW.hash;
END;
CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'an entry is final'); END;
CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'an entry is final'); END;

CREATE TRIGGER meta_is_one BEFORE INSERT ON meta WHEN EXISTS (SELECT 1 FROM meta) BEGIN
  SELECT RAISE(ABORT, 'there is one ledger');
END;
CREATE TRIGGER meta_follows_entries BEFORE UPDATE ON meta
WHEN NEW.one <> OLD.one OR NEW.ledger_id <> OLD.ledger_id OR NEW.format <> OLD.format OR NEW.head_seq <= OLD.head_seq
  OR NOT EXISTS (SELECT 1 FROM entry WHERE seq = NEW.head_seq AND hash = NEW.head_hash AND prev_hash = OLD.head_hash)
BEGIN SELECT RAISE(ABORT, 'the head is the last entry'); END;
CREATE TRIGGER meta_remains BEFORE DELETE ON meta BEGIN SELECT RAISE(ABORT, 'there is one ledger'); END;

CREATE TRIGGER charged_fits_entry BEFORE INSERT ON charged BEGIN
  SELECT RAISE(ABORT, 'a charge must fit its entry') WHERE NOT EXISTS (
    SELECT 1 FROM entry JOIN meta ON entry.seq = meta.head_seq
      WHERE entry.seq = NEW.seq AND entry.kind IN ('charge', 'restore', 'open')
        AND NEW.cost <= entry.cost AND NEW.slack <= entry.slack)
    OR EXISTS (SELECT 1 FROM charged WHERE account = NEW.account AND seq = NEW.seq);
  SELECT RAISE(ABORT, 'GF601') FROM account
    WHERE account = NEW.account AND (cost + NEW.cost > cap_cost OR slack + NEW.slack > cap_slack);
END;
CREATE TRIGGER charged_books_itself AFTER INSERT ON charged BEGIN
  UPDATE account SET cost = cost + NEW.cost, slack = slack + NEW.slack WHERE account = NEW.account;
END;
CREATE TRIGGER charged_is_final BEFORE UPDATE ON charged BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER charged_remains BEFORE DELETE ON charged BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;

CREATE TRIGGER account_opens_once BEFORE INSERT ON account
WHEN NEW.cost <> 0 OR NEW.slack <> 0 OR EXISTS (SELECT 1 FROM account WHERE account = NEW.account)
  OR NOT EXISTS (SELECT 1 FROM entry JOIN meta ON seq = head_seq WHERE seq = NEW.capped AND kind = 'open')
BEGIN SELECT RAISE(ABORT, 'an account opens once and empty'); END;
CREATE TRIGGER account_is_charged BEFORE UPDATE ON account
WHEN NEW.account <> OLD.account OR NEW.unit <> OLD.unit OR NEW.cost < OLD.cost OR NEW.slack < OLD.slack
BEGIN SELECT RAISE(ABORT, 'what was spent never falls'); END;
CREATE TRIGGER account_cap_needs_entry BEFORE UPDATE ON account
WHEN (NEW.cap_cost <> OLD.cap_cost OR NEW.cap_slack <> OLD.cap_slack OR NEW.capped <> OLD.capped)
  AND (NEW.cap_cost < OLD.cap_cost OR NEW.cap_slack < OLD.cap_slack OR NOT EXISTS (
    SELECT 1 FROM entry JOIN meta ON seq = head_seq WHERE seq = NEW.capped AND kind = 'cap'))
BEGIN SELECT RAISE(ABORT, 'a cap needs its entry'); END;
CREATE TRIGGER account_remains BEFORE DELETE ON account BEGIN SELECT RAISE(ABORT, 'an account remains'); END;
