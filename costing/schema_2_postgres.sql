-- Migration 2, PostgreSQL alone: a table that is emptied at once tells its rows' triggers nothing.
CREATE FUNCTION day_sums_emptied() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN DELETE FROM day_sums; RETURN NULL; END$$;
CREATE TRIGGER calls_emptied AFTER TRUNCATE ON calls FOR EACH STATEMENT EXECUTE FUNCTION day_sums_emptied();
CREATE TRIGGER decisions_emptied AFTER TRUNCATE ON decisions FOR EACH STATEMENT EXECUTE FUNCTION day_sums_emptied();
CREATE TRIGGER labels_emptied AFTER TRUNCATE ON labels FOR EACH STATEMENT EXECUTE FUNCTION day_sums_emptied();
