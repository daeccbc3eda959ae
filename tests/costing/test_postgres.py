"""
The store on a real PostgreSQL: alone where it must be, bounded where the server is away, and discreet.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import DecisionLine
from turngate.costing.schema import SCHEMA
from turngate.costing.store import BadValue, Store, StoreError

from .ledger_lines import NOW
from .places import SERVER, a_schema, administer, needs_postgres

pytestmark = needs_postgres

NOTICE: Final = "INSERT INTO notices (session_id, kind, at) VALUES (?, ?, '')"
START: Final = str(Path(__file__).with_name("start-postgres"))
BOUND_S: Final = 2.0
"""The most that a server that is away or frozen may cost, with the waits of a second that the tests set."""


@pytest.fixture
def url() -> Iterator[str]:
    with a_schema(SERVER) as found:
        yield found


@contextmanager
def opened(url: str, busy_timeout_s: float = 1.0) -> Generator[Store]:
    with open_ledger_store("", url, busy_timeout_s=busy_timeout_s) as store:
        yield store


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with opened(url, busy_timeout_s=10) as found:
        yield found


def note(store: Store, kind: object, *, durable: bool = False) -> None:
    with store.write(durable=durable) as transaction:
        transaction.execute(NOTICE, ("s", kind))


def kinds(store: Store) -> list[str]:
    return [kind for (kind,) in store.rows("SELECT kind FROM notices ORDER BY kind")]


def test_the_tables_are_those_of_the_file(store: Store, tmp_path: Path) -> None:
    """
    One set of migrations: both databases have the same tables with the same columns, of types that hold the same.
    """
    same = {"TEXT": "text", "INTEGER": "bigint", "BIGINT": "bigint"}
    with open_ledger_store(tmp_path) as file:
        tables = [name for (name,) in file.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        expected = {
            (table, column, same[kind])
            for table in tables
            for _, column, kind, *_ in file.rows(f"PRAGMA table_info({table})")
        }

    found = store.rows(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name <> 'turngate_schema'"
    )

    assert set(found) == expected
    assert store.rows("SELECT version FROM turngate_schema") == [(SCHEMA,)]


MIGRATE = """
import sys
from turngate.costing.opening import open_ledger_store
with open_ledger_store("", sys.argv[1], busy_timeout_s=30) as store:
    with store.write() as transaction:
        transaction.execute("INSERT INTO notices (session_id, kind, at) VALUES (?, 'k', '')", (sys.argv[2],))
"""


def test_many_processes_make_the_tables_at_once(url: str, store: Store) -> None:
    """
    Eight that find an empty schema at the same moment migrate it once, and each writes its line.
    """
    workers = [subprocess.Popen([sys.executable, "-c", MIGRATE, url, str(name)]) for name in range(8)]

    assert [worker.wait(timeout=60) for worker in workers] == [0] * 8
    assert store.rows("SELECT COUNT(*) FROM notices") == [(8,)]
    assert store.rows("SELECT COUNT(*) FROM turngate_schema") == [(1,)]


def test_threads_make_the_tables_at_once(store: Store) -> None:
    """
    The same for the threads of one process.
    """
    errors = in_threads(8, lambda number: note(store, str(number)))

    assert errors == []
    assert len(kinds(store)) == 8


def in_threads(count: int, work: object) -> list[BaseException]:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)  # pyright: ignore[reportCallIssue]
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_a_schema_of_a_newer_turngate_is_left_alone(url: str, store: Store) -> None:
    """
    The message says which, and what to do.
    """
    with store.write() as transaction:
        transaction.execute("UPDATE turngate_schema SET version = ?", (SCHEMA + 1,))

    with opened(url) as older, pytest.raises(StoreError, match=f"schema {SCHEMA + 1} is newer .* update turngate"):
        kinds(older)


def test_a_migration_that_fails_leaves_no_half_a_schema(url: str) -> None:
    """
    All tables are made or none.
    """
    schema = url.rpartition("%3D")[2]
    administer(SERVER, f"CREATE TABLE {schema}.labels (number BIGINT)")

    with opened(url) as store, pytest.raises(StoreError, match="already exists"):
        kinds(store)

    with psycopg.connect(SERVER) as beside:
        found = beside.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    assert found == [("labels",)]


@pytest.mark.parametrize(("durable", "setting"), [(False, "off"), (True, "on")], ids=["ledger", "reservation"])
def test_only_a_durable_write_waits_for_the_disk(store: Store, durable: bool, setting: str) -> None:
    """
    As `PRAGMA synchronous` in the file.
    """
    with store.write(durable=durable) as transaction:
        assert transaction.execute("SHOW synchronous_commit").fetchone() == (setting,)


def test_a_block_that_fails_leaves_nothing_behind(store: Store) -> None:
    """
    A write that raises is rolled back whole, and the connection is used again.
    """

    def fail() -> None:
        with store.write() as transaction:
            transaction.execute(NOTICE, ("s", "lost"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    note(store, "kept")
    assert kinds(store) == ["kept"]


def test_an_error_that_the_block_keeps_to_itself_is_not_lost(store: Store) -> None:
    """
    PostgreSQL answers COMMIT with a roll-back then; that is an error, and no silence.
    """

    def hide() -> None:
        with store.write() as transaction:
            transaction.execute(NOTICE, ("s", "k"))
            with pytest.raises(psycopg.Error):
                transaction.execute(NOTICE, ("s", "k"))

    with pytest.raises(StoreError, match="rolled back"):
        hide()
    assert kinds(store) == []


def test_those_with_one_word_wait_for_each_other_and_nobody_else_does(url: str, store: Store) -> None:
    """
    A transaction that is alone keeps out those that say the same, for the bounded wait; others go on beside it.
    """
    with opened(url) as other, store.write(alone="turns s1") as transaction:
        transaction.execute(NOTICE, ("s", "k"))

        note(other, "other")
        with other.write(alone="turns s2"):
            pass
        with pytest.raises(StoreError, match="lock timeout"), other.write(wait_s=0.05, alone="turns s1"):
            pass

    assert kinds(store) == ["k", "other"]


def test_more_threads_than_connections_take_turns(url: str) -> None:
    """
    Two hundred threads on eight connections: all are served, and the server sees no more than eight.
    """
    with opened(f"{url}&application_name=two-hundred", busy_timeout_s=20) as store:
        errors = in_threads(200, lambda number: note(store, str(number)))

        assert errors == []
        assert len(kinds(store)) == 200
        named = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'two-hundred'"
        assert 1 <= store.rows(named)[0][0] <= 8


COUNTED: Final = "INSERT INTO turns (session_id, agent_id, spent, updated_at) VALUES ('', '', ?, '')"
NAMED: Final = "INSERT INTO notices (session_id, kind, at) VALUES ('s', ?, '')"


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        pytest.param(COUNTED, 2**70, id="beyond-64-bits"),
        pytest.param(COUNTED, "x", id="no-number"),
        pytest.param(NAMED, None, id="nothing"),
        pytest.param(NAMED, "\ud800", id="lone-surrogate"),
        pytest.param(NAMED, random.Random(7).randbytes(50_000).hex(), id="too-long-for-an-index"),
    ],
)
def test_values_that_the_database_does_not_take_are_store_errors(store: Store, statement: str, value: object) -> None:
    """
    They are told apart from a store that fails: trying again is no use.
    """
    with pytest.raises(BadValue) as raised, store.write() as transaction:
        transaction.execute(statement, (value,))

    assert len(str(raised.value)) < 300
    note(store, "kept")


def test_a_wrong_password_is_told_without_user_and_password() -> None:
    """
    What the server says names the user; the message does not.
    """
    wrong = SERVER.replace("only-for-tests", "hunter2").replace("turngate:", "somebody:")

    with opened(wrong) as store, pytest.raises(StoreError, match="authentication failed") as raised:
        kinds(store)

    told = str(raised.value)
    assert "hunter2" not in told
    assert "somebody" not in told
    assert "\n" not in told
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "option",
    [
        pytest.param("options=-chunter2%3D1", id="in-an-option"),
        pytest.param("sslmode=verify-full&sslrootcert=/nowhere/hunter2", id="file"),
        pytest.param("user=hunter2", id="user"),
        pytest.param("channel_binding=require&user=hunter2&password=hunter2", id="password"),
    ],
)
def test_what_an_option_of_the_url_says_is_not_told(option: str) -> None:
    """
    Whatever the server or its library quotes of it.
    """
    with opened(f"{SERVER}?{option}") as store, pytest.raises(StoreError) as raised:
        kinds(store)

    assert "hunter2" not in str(raised.value)


def test_a_database_that_cannot_hold_every_text_is_refused() -> None:
    """
    In another encoding than UTF-8 an emoji would take its whole line away.
    """
    name = f"latin_{os.getpid()}"
    administer(SERVER, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with opened(f"{SERVER.rpartition('/')[0]}/{name}") as store, pytest.raises(StoreError, match="LATIN1.*UTF8"):
            kinds(store)
    finally:
        administer(SERVER, f"DROP DATABASE {name} WITH (FORCE)")


class Server:
    """
    A server of the test's own, which it may kill.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""

    def start(self) -> None:
        self.url = subprocess.run(
            [START, str(self.folder)], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()

    @property
    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self, how: signal.Signals = signal.SIGQUIT) -> None:
        os.kill(self.pid, how)
        while self._answers():
            continue

    def restart(self) -> None:
        self.kill(signal.SIGINT)
        self.start()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return (self.folder / "data" / "postmaster.pid").exists()
        return True

    def remove(self) -> None:
        subprocess.run([START, "--stop", str(self.folder)], check=True, stderr=subprocess.DEVNULL)

    @contextmanager
    def frozen(self) -> Generator[None]:
        """
        Let nothing of the server run.
        """
        try:
            self._signal(signal.SIGSTOP)
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)
        found = subprocess.run(["pgrep", "-P", str(self.pid)], stdout=subprocess.PIPE, text=True, check=True)
        for pid in found.stdout.split():
            with suppress(ProcessLookupError):  # one that was about to end
                os.kill(int(pid), number)


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    # Not below pytest's own folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    server = Server(folder / "postgres")
    server.start()
    yield server
    server.remove()
    shutil.rmtree(folder)


@pytest.fixture
def own_url(own_server: Server) -> Iterator[str]:
    with a_schema(own_server.url) as found:
        yield found


def took(work: object, times: int = 1) -> float:
    started = time.monotonic()
    for _ in range(times):
        with pytest.raises(StoreError) as raised:
            work()  # pyright: ignore[reportCallIssue]
        assert "\n" not in str(raised.value)
    return time.monotonic() - started


def test_a_server_that_is_restarted_is_found_again_at_once(own_server: Server, own_url: str) -> None:
    """
    Connections that broke while nobody used them are replaced before anybody is told.
    """
    with opened(own_url, busy_timeout_s=5) as store:
        in_threads(8, lambda number: note(store, str(number)))
        own_server.restart()

        assert in_threads(8, lambda number: note(store, f"after {number}")) == []
        own_server.restart()
        assert len(kinds(store)) == 16


def test_a_server_that_dies_in_the_middle_is_an_error_of_bounded_time(own_server: Server, own_url: str) -> None:
    """
    The transaction under way fails, nothing of it is kept, those after it fail at once; and it is used again when it is
    back, with what was owed meanwhile.
    """
    with opened(own_url) as store:
        ledger = Ledger(store)
        ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id="before"))
        note(store, "durable, and so is all before it", durable=True)

        def write() -> None:
            with store.write() as transaction:
                transaction.execute(NOTICE, ("s", "lost"))
                own_server.kill()
                transaction.execute(NOTICE, ("s", "lost too"))

        with pytest.raises(StoreError):
            write()
        line = DecisionLine(NOW, "Stop", "pass_clean", id="meanwhile")
        assert took(lambda: ledger.record_decision(line), times=20) < BOUND_S
        own_server.start()
        while ledger.owed:
            ledger.pay_owed(wait_s=1)
            time.sleep(0.1)  # it is left alone for some seconds

        assert [decision.line.id for decision in ledger.decisions()] == ["before", "meanwhile"]
        assert kinds(store) == ["durable, and so is all before it"]


def test_a_frozen_server_costs_a_stop_no_more_than_a_dead_one(own_server: Server, own_url: str) -> None:
    """
    It takes what is sent and answers nothing, so that its own timeouts do not help; ours do, for 30 statements together.
    """
    with opened(own_url) as store, opened(own_url) as fresh:
        note(store, "before")
        with own_server.frozen():
            assert took(lambda: kinds(store), times=30) < BOUND_S
            assert took(lambda: kinds(fresh), times=30) < BOUND_S


def test_sixty_four_stops_at_once_wait_no_longer_than_one(own_server: Server, own_url: str) -> None:
    """
    Threads that need a frozen server do not queue up for it.
    """
    with opened(own_url) as store:
        note(store, "before")
        with own_server.frozen():
            started = time.monotonic()
            errors = in_threads(64, lambda _: note(store, "k"))
            lasted = time.monotonic() - started

    assert [type(error) for error in errors] == [StoreError] * 64
    assert lasted < 2 * BOUND_S


NOBODY_THERE: Final = """
import sys
from turngate.costing.opening import open_ledger_store
from turngate.costing.store import StoreError
store = open_ledger_store("", sys.argv[1], busy_timeout_s=0.2)
try:
    store.rows("SELECT 1")
except StoreError as error:
    print(error)
"""


def test_a_process_ends_whatever_is_still_connecting(own_server: Server) -> None:
    """
    No thread keeps it alive: a hook that gave up on its store is gone at once.
    """
    with own_server.frozen():
        started = time.monotonic()
        told = subprocess.run(
            [sys.executable, "-c", NOBODY_THERE, own_server.url],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        lasted = time.monotonic() - started

    assert "no connection within 0.2 s" in told
    assert lasted < 4
