"""
Which store a setting opens, and what it says where it cannot.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME
from turngate.costing.opening import open_ledger_store
from turngate.costing.store import StoreError

PLACEHOLDER = "hunter2"
"""Stands for a password: no message may hold it."""


def test_no_url_is_the_file_in_the_folder(tmp_path: Path) -> None:
    """
    SQLite is what one gets without asking.
    """
    with open_ledger_store(tmp_path) as store:
        assert store.path == str(tmp_path / FILE_NAME)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param(f"mysql://u:{PLACEHOLDER}@h/db", "unknown scheme 'mysql'", id="another-database"),
        pytest.param(
            f"postgresql+psycopg://u:{PLACEHOLDER}@h/db", r"unknown scheme 'postgresql\+psycopg'", id="with-driver"
        ),
        pytest.param(f"{PLACEHOLDER}@h/db", "no URL", id="no-scheme"),
        pytest.param(f"u:{PLACEHOLDER}@h://x", "no URL", id="scheme-in-the-wrong-place"),
        pytest.param(f"host=h password={PLACEHOLDER}", "no URL", id="key-and-value"),
        pytest.param(f"postgresql://u:{PLACEHOLDER}@h/db?nonsense={PLACEHOLDER}", "not a URL", id="unknown-option"),
        pytest.param(f"postgresql://u:{PLACEHOLDER}@h:port/db?{PLACEHOLDER}", "not a URL", id="option-without-value"),
        pytest.param(f"postgresql://u:%zz{PLACEHOLDER}@h/db", "not a URL", id="bad-escape"),
        pytest.param(f"postgresql://u:p@{PLACEHOLDER}@h/db", "%40", id="at-in-the-password"),
        pytest.param(f"postgresql://u@h:{PLACEHOLDER}/db", "port", id="password-in-place-of-the-port"),
        pytest.param(f"postgresql://u:%ff{PLACEHOLDER}@h/db", "%XX", id="not-utf-8"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_line_without_the_password(tmp_path: Path, url: str, says: str) -> None:
    """
    The message names the scheme, never what may be secret.
    """
    with pytest.raises(StoreError, match=says) as raised:
        open_ledger_store(tmp_path, url)

    assert PLACEHOLDER not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param(f"postgresql://u:{PLACEHOLDER}@h:5433/db", "postgresql://h:5433/db", id="plain"),
        pytest.param(f"postgres://h/db?password={PLACEHOLDER}", "postgresql://h/db", id="password-as-option"),
        pytest.param(f"postgresql://u:{PLACEHOLDER}@h,i:1/db", "postgresql://h,i:1/db", id="two-hosts"),
        pytest.param(f"postgresql:///db?user=u@{PLACEHOLDER}", "postgresql://", id="at-in-an-option"),
    ],
)
def test_a_store_is_named_without_user_password_and_options(tmp_path: Path, url: str, shown: str) -> None:
    """
    Nothing is connected to before the first use, and neither name nor repr holds a secret.
    """
    with open_ledger_store(tmp_path, url) as store:
        assert store.path == shown
        assert PLACEHOLDER not in repr(store)


WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
from turngate.costing.opening import open_ledger_store
from turngate.costing.store import StoreError
try:
    open_ledger_store(sys.argv[1], "postgresql://u:hunter2@h/db")
except StoreError as error:
    print(error)
"""


def test_a_missing_psycopg_says_what_to_install(tmp_path: Path) -> None:
    """
    The extra is named, in one line.
    """
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_PSYCOPG, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True
    ).stdout

    assert "pip install 'psycopg[binary]'" in told
    assert told.count("\n") == 1
    assert PLACEHOLDER not in told


def test_a_file_costs_nothing_of_postgres(tmp_path: Path) -> None:
    """
    Who keeps the ledger in a file imports nothing of the other database.
    """
    code = (
        "import sys; from turngate.costing.opening import open_ledger_store; open_ledger_store(sys.argv[1]);"
        "print([name for name in sys.modules if 'psycopg' in name or name.endswith('postgres')])"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)

    assert told.stdout.strip() == "[]"
