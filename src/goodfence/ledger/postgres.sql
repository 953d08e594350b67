-- The ledger in PostgreSQL, in a schema of its own; the rules are those of sqlite.sql.
-- Statement triggers check a million rows at once, where foreign keys would check them one by one.
CREATE SCHEMA IF NOT EXISTS goodfence_ledger;
SET LOCAL search_path TO goodfence_ledger;

CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  ledger_id BYTEA NOT NULL CHECK (length(ledger_id) = 16),
  format INTEGER NOT NULL,
  sigma_bits INTEGER NOT NULL CHECK (sigma_bits = 24),
  head_seq BIGINT NOT NULL CHECK (head_seq >= 0),
  head_hash BYTEA NOT NULL CHECK (length(head_hash) = 32)
);

CREATE TABLE entry (
  seq BIGINT PRIMARY KEY CHECK (seq > 0),
  kind TEXT NOT NULL CHECK (kind IN ('open', 'charge', 'release', 'burn', 'cap', 'restore')),
  idem TEXT,
  request BYTEA,
  release_id BYTEA,
  cost BIGINT NOT NULL DEFAULT 0 CHECK (cost BETWEEN 0 AND 1152921504606846976),
  slack BIGINT NOT NULL DEFAULT 0 CHECK (slack BETWEEN 0 AND 1152921504606846976),
  n_accounts BIGINT NOT NULL DEFAULT 0 CHECK (n_accounts >= 0),
  accounts_hash BYTEA,
  body TEXT NOT NULL,
  prev_hash BYTEA NOT NULL CHECK (length(prev_hash) = 32),
  hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
  CHECK (kind <> 'charge' OR (idem IS NOT NULL AND request IS NOT NULL)),
  CHECK (kind NOT IN ('charge', 'release', 'burn') OR (release_id IS NOT NULL AND length(release_id) = 16))
);

CREATE TABLE account (
  account BYTEA PRIMARY KEY CHECK (length(account) = 16),
  unit TEXT NOT NULL CHECK (unit IN ('rating', 'event', 'user')),
  cap_cost BIGINT NOT NULL CHECK (cap_cost BETWEEN 1 AND 1152921504606846976),
  cap_slack BIGINT NOT NULL CHECK (cap_slack BETWEEN 1 AND 1152921504606846976),
  capped BIGINT NOT NULL,
  cost BIGINT NOT NULL DEFAULT 0 CHECK (cost >= 0),
  slack BIGINT NOT NULL DEFAULT 0 CHECK (slack >= 0),
  CONSTRAINT "GF601 cost" CHECK (cost <= cap_cost),
  CONSTRAINT "GF601 slack" CHECK (slack <= cap_slack)
);

CREATE TABLE charged (
  seq BIGINT NOT NULL,
  account BYTEA NOT NULL,
  cost BIGINT NOT NULL CHECK (cost >= 0),
  slack BIGINT NOT NULL CHECK (slack >= 0),
  PRIMARY KEY (account, seq)
);

CREATE UNIQUE INDEX one_charge_a_key ON entry (idem) WHERE kind = 'charge';
CREATE UNIQUE INDEX one_charge_a_release ON entry (release_id) WHERE kind = 'charge';
CREATE UNIQUE INDEX one_end_a_release ON entry (release_id) WHERE kind IN ('release', 'burn');

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION insist(holds boolean, rule text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF holds IS NOT TRUE THEN
    RAISE EXCEPTION '%', rule USING ERRCODE = 'integrity_constraint_violation';
  END IF;
END $$;

CREATE FUNCTION entry_follows_head() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM insist(EXISTS (SELECT 1 FROM meta WHERE head_hash = NEW.prev_hash
    AND (NEW.seq = head_seq + 1 OR (NEW.kind = 'restore' AND NEW.seq > head_seq))), 'an entry must follow the head');
  PERFORM insist(NEW.kind NOT IN ('release', 'burn') OR EXISTS (
    SELECT 1 FROM entry WHERE kind = 'charge' AND release_id = NEW.release_id), 'an end needs its charge');
  RETURN NEW;
END $$;
CREATE TRIGGER entry_follows_head BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION entry_follows_head();

CREATE FUNCTION entry_moves_head() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE meta SET head_seq = NEW.seq, head_hash = NEW.hash;
  RETURN NULL;
END $$;
CREATE TRIGGER entry_moves_head AFTER INSERT ON entry FOR EACH ROW EXECUTE FUNCTION entry_moves_head();
CREATE TRIGGER entry_is_final BEFORE UPDATE OR DELETE OR TRUNCATE ON entry EXECUTE FUNCTION refuse();

CREATE FUNCTION meta_follows_entries() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM insist(NEW.one = OLD.one AND NEW.ledger_id = OLD.ledger_id AND NEW.format = OLD.format
    AND NEW.head_seq > OLD.head_seq AND EXISTS (
      SELECT 1 FROM entry WHERE seq = NEW.head_seq AND hash = NEW.head_hash AND prev_hash = OLD.head_hash),
    'the head is the last entry');
  RETURN NEW;
END $$;
CREATE TRIGGER meta_follows_entries BEFORE UPDATE ON meta FOR EACH ROW EXECUTE FUNCTION meta_follows_entries();
CREATE TRIGGER meta_remains BEFORE DELETE OR TRUNCATE ON meta EXECUTE FUNCTION refuse();

CREATE FUNCTION charged_books_itself() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE n_added BIGINT; n_booked BIGINT;
BEGIN
  SELECT count(*) INTO n_added FROM added;
  PERFORM insist(n_added = (
    SELECT count(*) FROM added JOIN entry ON entry.seq = added.seq JOIN meta ON entry.seq = meta.head_seq
      WHERE entry.kind IN ('charge', 'restore', 'open') AND added.cost <= entry.cost AND added.slack <= entry.slack),
    'a charge must fit its entry');
  UPDATE account SET cost = account.cost + added.cost, slack = account.slack + added.slack
    FROM added WHERE account.account = added.account;
  GET DIAGNOSTICS n_booked = ROW_COUNT;
  PERFORM insist(n_booked = n_added, 'a charge needs its account');
  RETURN NULL;
END $$;
CREATE TRIGGER charged_books_itself AFTER INSERT ON charged REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION charged_books_itself();
CREATE TRIGGER charged_is_final BEFORE UPDATE OR DELETE OR TRUNCATE ON charged EXECUTE FUNCTION refuse();

CREATE FUNCTION account_opens_once() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM insist(NOT EXISTS (SELECT 1 FROM added WHERE cost <> 0 OR slack <> 0 OR capped NOT IN (
    SELECT seq FROM entry JOIN meta ON seq = head_seq WHERE kind = 'open')), 'an account opens once and empty');
  RETURN NULL;
END $$;
CREATE TRIGGER account_opens_once AFTER INSERT ON account REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION account_opens_once();

CREATE TRIGGER account_is_charged BEFORE UPDATE ON account FOR EACH ROW
  WHEN (NEW.account <> OLD.account OR NEW.unit <> OLD.unit OR NEW.cost < OLD.cost OR NEW.slack < OLD.slack
    OR NEW.cap_cost < OLD.cap_cost OR NEW.cap_slack < OLD.cap_slack)
  EXECUTE FUNCTION refuse();
CREATE FUNCTION account_cap_needs_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM insist(EXISTS (SELECT 1 FROM entry JOIN meta ON seq = head_seq WHERE seq = NEW.capped AND kind = 'cap'),
    'a cap needs its entry');
  RETURN NEW;
END $$;
CREATE TRIGGER account_cap_needs_entry BEFORE UPDATE ON account FOR EACH ROW
  WHEN (NEW.cap_cost <> OLD.cap_cost OR NEW.cap_slack <> OLD.cap_slack OR NEW.capped <> OLD.capped)
  EXECUTE FUNCTION account_cap_needs_entry();
CREATE TRIGGER account_remains BEFORE DELETE OR TRUNCATE ON account EXECUTE FUNCTION refuse();

-- Others than the owner get the right to read and to add, and no more: GRANT SELECT, INSERT ON ALL TABLES ...
REVOKE UPDATE, DELETE, TRUNCATE ON meta, entry, account, charged FROM PUBLIC;
REVOKE DELETE, TRUNCATE ON meta, entry, account, charged FROM CURRENT_USER;
REVOKE UPDATE ON entry, charged FROM CURRENT_USER;
