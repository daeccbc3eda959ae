-- Migration 2: the sums of days, and an index for lists without the commands that were let through.
CREATE INDEX decisions_listed ON decisions (at) WHERE outcome <> 'jobs_pass';

-- What is known of whole days that are over: a cache, so that years are added up at once. `zone`: whose days these are.
-- A line is there before its sums, and its `writer` is named by whoever adds them. Whatever is changed within a day takes its line
-- away, so what stands in a line is right. A trigger is one line, as `costing/schema.py` splits statements.
CREATE TABLE day_sums (
    zone TEXT NOT NULL,
    starts_at TEXT NOT NULL,
    ends_at TEXT NOT NULL,
    writer TEXT NOT NULL,
    sums TEXT,
    cube TEXT,
    session_sums TEXT,
    PRIMARY KEY (zone, starts_at)
);
CREATE INDEX day_sums_ends ON day_sums (ends_at, starts_at);
CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN DELETE FROM day_sums WHERE ends_at > NEW.at AND starts_at <= NEW.at; DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = NEW.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = NEW.decision_id); END;
CREATE TRIGGER calls_changed AFTER UPDATE OF at, decision_id, event, session_id, project, model, input_tokens, output_tokens, thinking_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, cost_usd ON calls BEGIN DELETE FROM day_sums WHERE ends_at > OLD.at AND starts_at <= OLD.at; DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = OLD.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = OLD.decision_id); DELETE FROM day_sums WHERE ends_at > NEW.at AND starts_at <= NEW.at; DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = NEW.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = NEW.decision_id); END;
CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN DELETE FROM day_sums WHERE ends_at > OLD.at AND starts_at <= OLD.at; DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = OLD.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = OLD.decision_id); END;
CREATE TRIGGER decisions_added AFTER INSERT ON decisions BEGIN DELETE FROM day_sums WHERE ends_at > NEW.at AND starts_at <= NEW.at; DELETE FROM day_sums WHERE ends_at > (SELECT MIN(at) FROM calls WHERE decision_id = NEW.id) AND starts_at <= (SELECT MAX(at) FROM calls WHERE decision_id = NEW.id); END;
CREATE TRIGGER decisions_changed AFTER UPDATE OF id, at, event, session_id, project, outcome ON decisions BEGIN DELETE FROM day_sums WHERE ends_at > OLD.at AND starts_at <= OLD.at; DELETE FROM day_sums WHERE ends_at > (SELECT MIN(at) FROM calls WHERE decision_id = OLD.id) AND starts_at <= (SELECT MAX(at) FROM calls WHERE decision_id = OLD.id); DELETE FROM day_sums WHERE ends_at > NEW.at AND starts_at <= NEW.at; DELETE FROM day_sums WHERE ends_at > (SELECT MIN(at) FROM calls WHERE decision_id = NEW.id) AND starts_at <= (SELECT MAX(at) FROM calls WHERE decision_id = NEW.id); END;
CREATE TRIGGER decisions_removed AFTER DELETE ON decisions BEGIN DELETE FROM day_sums WHERE ends_at > OLD.at AND starts_at <= OLD.at; DELETE FROM day_sums WHERE ends_at > (SELECT MIN(at) FROM calls WHERE decision_id = OLD.id) AND starts_at <= (SELECT MAX(at) FROM calls WHERE decision_id = OLD.id); END;
CREATE TRIGGER labels_added AFTER INSERT ON labels BEGIN DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = NEW.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = NEW.decision_id); END;
CREATE TRIGGER labels_changed AFTER UPDATE OF decision_id, label ON labels BEGIN DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = OLD.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = OLD.decision_id); DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = NEW.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = NEW.decision_id); END;
CREATE TRIGGER labels_removed AFTER DELETE ON labels BEGIN DELETE FROM day_sums WHERE ends_at > (SELECT at FROM decisions WHERE id = OLD.decision_id) AND starts_at <= (SELECT at FROM decisions WHERE id = OLD.decision_id); END;
