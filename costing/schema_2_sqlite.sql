-- Migration 2, SQLite alone. REPLACE and UPDATE OR REPLACE take rows away and tell no trigger of it: what is kept is forgotten where
-- the row that comes instead does not lie in the same days. `number` is -1 where SQLite is to choose it.
CREATE TRIGGER calls_replaced BEFORE INSERT ON calls WHEN EXISTS (SELECT 1 FROM calls WHERE (id = NEW.id OR number = NEW.number) AND (at <> NEW.at OR decision_id <> NEW.decision_id)) BEGIN DELETE FROM day_sums; END;
CREATE TRIGGER calls_displaced BEFORE UPDATE OF number, id ON calls BEGIN DELETE FROM day_sums; END;
CREATE TRIGGER decisions_replaced BEFORE INSERT ON decisions WHEN EXISTS (SELECT 1 FROM decisions WHERE (id = NEW.id OR number = NEW.number) AND (id <> NEW.id OR at <> NEW.at)) BEGIN DELETE FROM day_sums; END;
CREATE TRIGGER decisions_displaced BEFORE UPDATE OF number, id ON decisions BEGIN DELETE FROM day_sums; END;
