from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, Database, open_database
from turngate.costing.schema import SCHEMA
from turngate.costing.store import StoreError

NOTICE = "INSERT INTO notices (session_id, kind, at) VALUES (?, ?, '')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(tmp_path / "state") as database:
        yield database


def note(database: Database, kind: str) -> None:
    with database.write() as connection:
        connection.execute(NOTICE, ("s", kind))


def kinds(database: Database) -> set[str]:
    return {kind for (kind,) in database.rows("SELECT kind FROM notices")}


def run(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, **options)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


OPEN_WITHOUT_UMASK = """
import os, sys
from turngate.costing.database import open_database
os.umask(0)
with open_database(sys.argv[1]) as database:
    with database.write() as connection:
        connection.execute("INSERT INTO notices VALUES ('s', 'k', '')")
    for name in sorted(os.listdir(sys.argv[1])):
        print(name, oct(os.stat(os.path.join(sys.argv[1], name)).st_mode & 0o777))
"""


def test_folder_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """
    With umask 0 the folder has mode 0700, and the database and both files beside it have 0600.
    """
    folder = tmp_path / "a" / "state"

    listed = run(OPEN_WITHOUT_UMASK, str(folder)).communicate()[0].split("\n")

    assert listed[:3] == [f"{FILE_NAME} 0o600", f"{FILE_NAME}-shm 0o600", f"{FILE_NAME}-wal 0o600"]
    assert mode(folder) == 0o700


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    """
    A database restored with mode 0644 becomes private again when it is opened.
    """
    open_database(tmp_path).close()
    (tmp_path / FILE_NAME).chmod(0o644)

    open_database(tmp_path).close()

    assert mode(tmp_path / FILE_NAME) == 0o600


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        pytest.param([], 0o755, 0o700, id="empty"),
        pytest.param(["turngate.sock", "scripted.jsonl"], 0o775, 0o700, id="only-files-of-ours"),
        pytest.param(["turngate.sock", "notes.txt"], 0o755, 0o755, id="somebody-elses-file-too"),
        pytest.param([], 0o1777, 0o1777, id="made-to-be-shared"),
        pytest.param([], 0o500, 0o500, id="narrower"),
    ],
)
def test_a_folder_of_ours_that_others_may_enter_is_closed_to_them(
    tmp_path: Path, names: list[str], before: int, after: int
) -> None:
    """
    A state directory made with mode 0755 becomes private when it is opened; one that others use too stays as it is.
    """
    folder = tmp_path / "state"
    open_database(folder).close()
    for name in names:
        (folder / name).touch()
    folder.chmod(before)

    with suppress(StoreError):  # a folder that nobody may write is none for a store
        open_database(folder).close()

    assert mode(folder) == after


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_keeps_its_mode(tmp_path: Path) -> None:
    """
    What belongs to somebody else is not ours to close.
    """
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    os.chown(folder, 54321, 54321)

    open_database(folder).close()

    assert mode(folder) == 0o755


def test_a_new_store_has_every_table(database: Database) -> None:
    """
    The tables that other folders rely on are there, and the file says which schema it has.
    """
    tables = {name for (name,) in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    assert tables >= {
        "decisions",
        "calls",
        "turns",
        "holds",
        "notices",
        "shared_judgements",
        "endpoint_refusals",
        "labels",
    }
    assert database.rows("PRAGMA user_version") == [(SCHEMA,)]
    assert database.rows("PRAGMA journal_mode") == [("wal",)]


def test_a_block_that_fails_leaves_nothing_behind(database: Database) -> None:
    """
    A write that raises is rolled back whole, and the store goes on working.
    """

    def fail() -> None:
        with database.write() as connection:
            connection.execute(NOTICE, ("s", "lost"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    note(database, "kept")
    assert kinds(database) == {"kept"}


@pytest.mark.parametrize(("durable", "level"), [(False, 1), (True, 2)], ids=["ledger-normal", "reservation-full"])
def test_only_a_durable_write_waits_for_the_disk(database: Database, durable: bool, level: int) -> None:
    """
    `PRAGMA synchronous` is FULL (2) for a durable write and NORMAL (1) for any other.
    """
    with database.write(durable=durable) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def test_a_locked_store_fails_within_the_busy_timeout(database: Database, tmp_path: Path) -> None:
    """
    While another process writes, reading works and writing gives up after the time that was set.
    """
    with open_database(tmp_path / "state", busy_timeout_s=0.02) as impatient, database.write() as connection:
        connection.execute(NOTICE, ("s", "first"))

        assert kinds(impatient) == set()
        with pytest.raises(StoreError, match=f"{FILE_NAME}: database is locked"):
            note(impatient, "second")


def test_a_store_locked_before_it_was_ever_opened_fails_too(tmp_path: Path) -> None:
    """
    Another process that holds the bare file cannot keep us waiting beyond the busy timeout.
    """
    holder = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreError, match="locked"):
        open_database(tmp_path, busy_timeout_s=0.02)
    holder.close()


def test_threads_share_a_store_without_mixing_transactions(database: Database) -> None:
    """
    Eight threads that write at once lose nothing and see no error.
    """
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(20):
                note(database, f"{name}-{number}")
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(kinds(database)) == 160


WRITE_FIFTY = """
import sys
from turngate.costing.database import open_database
with open_database(sys.argv[1], busy_timeout_s=30) as database:
    for number in range(50):
        with database.write() as connection:
            connection.execute("INSERT INTO notices VALUES (?, ?, '')", (sys.argv[2], str(number)))
"""


def test_many_processes_make_and_fill_a_store_at_once(tmp_path: Path) -> None:
    """
    Eight processes create, migrate and write one store at the same moment: 400 lines, none lost.
    """
    workers = [run(WRITE_FIFTY, str(tmp_path / "state"), str(name)) for name in range(8)]

    assert [worker.wait() for worker in workers] == [0] * 8
    for worker in workers:
        worker.communicate()
    with open_database(tmp_path / "state") as database:
        assert database.rows("SELECT COUNT(*) FROM notices") == [(400,)]


WRITE_FOR_EVER = """
import itertools, sys
from turngate.costing.database import open_database
database = open_database(sys.argv[1])
for number in itertools.count():
    with database.write() as connection:
        connection.execute("INSERT INTO notices VALUES ('s', ?, '')", (str(number),))
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_all_that_it_committed(tmp_path: Path) -> None:
    """
    After `kill -9` in the middle of writing, each line that was told as written is there and the file is sound.
    """
    writer = run(WRITE_FOR_EVER, str(tmp_path))
    assert writer.stdout is not None
    told = [writer.stdout.readline().strip() for _ in range(30)]
    writer.send_signal(signal.SIGKILL)
    told += writer.communicate()[0].split()

    with open_database(tmp_path) as database:
        assert set(told) <= kinds(database)
        assert database.rows("PRAGMA integrity_check") == [("ok",)]


FILL_UNTIL_FULL = """
import sys
from turngate.costing.database import open_database
from turngate.costing.store import StoreError
try:
    with open_database(sys.argv[1]) as database:
        number = -1
        for number in range(100_000):
            with database.write(durable=True) as connection:
                connection.execute("INSERT INTO notices VALUES ('s', ?, ?)", (str(number), "x" * 500))
            told = number
except StoreError as exc:
    print(told, str(exc).count("\\n"))
"""


def test_a_full_disk_is_a_store_error_and_loses_no_committed_line(tmp_path: Path) -> None:
    """
    Where the file may grow no more, the write that does not fit fails, and those before it are kept.
    """
    limit = 400_000
    filler = run(
        FILL_UNTIL_FULL,
        str(tmp_path),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    told, line_breaks = filler.communicate()[0].split()

    assert line_breaks == "0"
    with open_database(tmp_path) as database:
        assert {str(number) for number in range(int(told) + 1)} <= kinds(database)


def of_bytes(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / FILE_NAME).write_bytes(content)
        return folder

    return make


def cut_in_half(folder: Path) -> Path:
    open_database(folder).close()
    file = folder / FILE_NAME
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])
    return folder


def overwritten(folder: Path) -> Path:
    open_database(folder).close()
    file = folder / FILE_NAME
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    return folder


def with_newer_schema(folder: Path) -> Path:
    with open_database(folder) as database:
        database.rows(f"PRAGMA user_version = {SCHEMA + 1}")
    return folder


def of_somebody_else(folder: Path) -> Path:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("CREATE TABLE calls (number TEXT)")
    connection.close()
    return folder


def folder_in_its_place(folder: Path) -> Path:
    (folder / FILE_NAME).mkdir()
    return folder


def pipe_in_its_place(folder: Path) -> Path:
    os.mkfifo(folder / FILE_NAME)
    return folder


def dangling_link(folder: Path) -> Path:
    (folder / FILE_NAME).symlink_to(folder / "gone" / FILE_NAME)
    return folder


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "state"


def read_everything(folder: Path) -> None:
    with open_database(folder) as database:
        for table in ("decisions", "calls", "turns", "labels"):
            database.rows(f"SELECT * FROM {table} ORDER BY 1")


def write_and_read(folder: Path) -> None:
    with open_database(folder) as database:
        for number in range(200):
            note(database, f"{number:0200}")
            kinds(database)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(of_bytes(b"not a database, by any means " * 40), "not a database", id="other-content"),
        pytest.param(overwritten, "malformed|not a database", id="overwritten"),
        pytest.param(with_newer_schema, f"schema {SCHEMA + 1} is newer", id="newer-schema"),
        pytest.param(of_somebody_else, "already exists", id="another-programs-database"),
        pytest.param(folder_in_its_place, "not a file", id="folder"),
        pytest.param(pipe_in_its_place, "not a file", id="named-pipe"),
        pytest.param(dangling_link, "No such file", id="dangling-link"),
        pytest.param(below_a_file, "Not a directory", id="below-a-file"),
        pytest.param(lambda _: Path("/proc/turngate"), "No such file", id="file-system-that-takes-nothing"),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        pytest.param(lambda folder: folder / "x\0y", "NUL", id="nul"),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        pytest.param(lambda folder: folder / ("x" * 10_000), "too long", id="too-long"),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    ],
)
def test_what_cannot_be_used_is_a_store_error_in_one_line(
    make: Callable[[Path], Path], says: str, tmp_path: Path
) -> None:
    """
    Whatever stands where the store should be, opening and reading it raise StoreError, which names the file.
    """
    folder = make(tmp_path)

    with pytest.raises(StoreError, match=says) as raised:
        read_everything(folder)

    assert FILE_NAME in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_cut_file_never_raises_anything_else(tmp_path: Path) -> None:
    """
    A file cut in the middle is a StoreError, whether reading or writing finds it out.
    """
    folder = cut_in_half(tmp_path)

    with pytest.raises(StoreError):
        write_and_read(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_store_of_another_user_is_refused(tmp_path: Path) -> None:
    """
    A database that belongs to somebody else is not written to, even where the system would allow it.
    """
    open_database(tmp_path).close()
    os.chown(tmp_path / FILE_NAME, 12345, 12345)

    with pytest.raises(StoreError, match="belongs to another user"):
        open_database(tmp_path)


def test_a_migration_that_fails_leaves_no_half_a_schema(tmp_path: Path) -> None:
    """
    All tables are made or none: the next try does not meet the remains of the last.
    """
    of_somebody_else(tmp_path)
    with pytest.raises(StoreError):
        open_database(tmp_path)

    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        assert [name for (name,) in connection.execute("SELECT name FROM sqlite_master")] == ["calls"]
    connection.close()


def test_a_closed_store_says_so(database: Database) -> None:
    """
    Using a store after closing it, or closing it twice, raises nothing but StoreError.
    """
    database.close()
    database.close()

    with pytest.raises(StoreError, match="closed"):
        kinds(database)


def test_values_that_no_database_takes_are_store_errors(database: Database) -> None:
    """
    A lone surrogate or a number beyond 64 bits does not escape as another exception.
    """
    for value in ("\ud800", 2**70):
        with pytest.raises(StoreError), database.write() as connection:
            connection.execute(NOTICE, ("s", value))


def test_opening_imports_nothing_heavy() -> None:
    """
    The store and the ledger cost the hook no decimal, no pathlib of their own, and none of the heavy libraries.
    """
    code = (
        "import sys; before = set(sys.modules); import turngate.costing.ledger;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = set(run(code).communicate()[0].split())

    assert not loaded & {
        "decimal",
        "tomllib",
        "genai_prices",
        "pydantic",
        "rich",
        "asyncio",
        "uuid",
        "dataclasses",
        "secrets",
    }
