-- Migration 1. Never edited once released: a change is a new file with the next number.
-- Both databases take it as it stands, but for two words that PostgreSQL spells otherwise (costing/postgres_dialect.py):
-- TEXT and INTEGER PRIMARY KEY.
-- Times are ISO 8601 in UTC with milliseconds, money is a plain decimal in a text column, yes and no are 1 and 0.

-- `number` grows in the order of writing, where two lines have the same time.
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE NOT NULL,
    at TEXT NOT NULL,
    event TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    project TEXT NOT NULL,
    prompt_id TEXT NOT NULL,
    human_turn TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    findings TEXT NOT NULL,
    dropped BIGINT NOT NULL,
    spent BIGINT,
    hook_ms BIGINT,
    transcript_path TEXT NOT NULL,
    reply_chars BIGINT,
    client_version TEXT NOT NULL
);
CREATE INDEX decisions_at ON decisions (at);
CREATE INDEX decisions_session ON decisions (session_id, at);

-- One line per try, written before the try is sent. No outcome: it never ended as far as we know.
CREATE TABLE calls (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE NOT NULL,
    decision_id TEXT NOT NULL,
    at TEXT NOT NULL,
    event TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    project TEXT NOT NULL,
    human_turn TEXT NOT NULL,
    backend TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    rubric TEXT NOT NULL,
    rubric_hash TEXT NOT NULL,
    try_number BIGINT NOT NULL,
    outcome TEXT,
    detail TEXT NOT NULL DEFAULT '',
    model_answered TEXT NOT NULL DEFAULT '',
    input_tokens BIGINT,
    output_tokens BIGINT,
    thinking_tokens BIGINT,
    cache_write_5m_tokens BIGINT,
    cache_write_1h_tokens BIGINT,
    cache_read_tokens BIGINT,
    raw_usage TEXT,
    cost_usd TEXT,
    price_source TEXT NOT NULL DEFAULT '',
    latency_ms BIGINT,
    request_id TEXT NOT NULL DEFAULT ''
);
CREATE INDEX calls_at ON calls (at);
CREATE INDEX calls_decision ON calls (decision_id);
CREATE INDEX calls_session ON calls (session_id, at);
CREATE INDEX calls_endpoint ON calls (endpoint, at);

CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    spent BIGINT NOT NULL DEFAULT 0,
    unsure BIGINT NOT NULL DEFAULT 0,
    cap_told BIGINT NOT NULL DEFAULT 0,
    updated_at TEXT NOT NULL
);
CREATE INDEX turns_agent ON turns (session_id, agent_id, updated_at);

-- By what a turn is known: `human:` and `prompt:` ids.
CREATE TABLE turn_ids (
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    known_id TEXT NOT NULL,
    turn_id BIGINT NOT NULL,
    PRIMARY KEY (session_id, agent_id, known_id)
);
CREATE INDEX turn_ids_turn ON turn_ids (turn_id);

CREATE TABLE holds (
    id INTEGER PRIMARY KEY,
    turn_id BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    named TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX holds_session ON holds (session_id);
CREATE INDEX holds_turn ON holds (turn_id);

CREATE TABLE notices (
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (session_id, kind)
);

-- `owner`: the process that asks. Empty: not known.
CREATE TABLE shared_judgements (
    stop TEXT PRIMARY KEY NOT NULL,
    claimed_at TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    answer TEXT,
    answered_at TEXT
);

CREATE TABLE endpoint_refusals (
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    fields TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (endpoint, model)
);

-- Only with `record.turns`: what was judged, without secrets.
CREATE TABLE recorded_turns (
    decision_id TEXT PRIMARY KEY NOT NULL,
    turn TEXT NOT NULL
);

CREATE TABLE labels (
    decision_id TEXT PRIMARY KEY NOT NULL,
    label TEXT NOT NULL,
    at TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT ''
);
