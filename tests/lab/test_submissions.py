"""
The file of a run's submissions: what may have been sent is never forgotten, wherever a crash cut it off.
"""

from __future__ import annotations

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.settings import JudgeSettings
from turngate.lab.batches.submissions import Submissions, payer
from turngate.lab.errors import LabError
from turngate.lab.runs import questions
from turngate.rubric.library import load

from .batched import KEY, some_cases

AT = datetime(2026, 12, 1, 12, 0, 0, 123000, UTC)
ASKED = questions(some_cases(3), load(), JudgeSettings(), 2)


def begin(submissions: Submissions) -> str:
    submission = submissions.begin(ASKED, at=AT, endpoint="127.0.0.1:1", api_key=KEY, model="m")
    return submission.key


def test_a_submission_is_read_as_it_was_written(tmp_path: Path) -> None:
    """
    Its questions have ids that the API takes, and lines of the ledger that differ.
    """
    submissions = Submissions(tmp_path)
    key = begin(submissions)
    ((submission, batch),), batches = submissions.read()

    assert (submission.key, submission.at, batch, batches) == (key, AT, "", frozenset())
    items = submission.questions
    assert [item[:3] for item in items.values()] == [(one.case.id, one.repeat, one.hash) for one in ASKED]
    assert len({item.call for item in items.values()}) == len(ASKED)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in items)


def test_the_longest_id_is_one_that_the_api_takes() -> None:
    """
    64 characters: a hash, a repeat, the submission and the place in it.
    """
    assert len(f"{'0' * 32}-r{10**9}-{'0' * 8}-{99_999}") <= 64


def test_another_key_is_told_by_its_hash_alone(tmp_path: Path) -> None:
    """
    The key itself is not written, and its hash is another one each time.
    """
    submissions = Submissions(tmp_path)
    begin(submissions)
    begin(submissions)
    (first, second), _ = submissions.read()

    assert KEY not in submissions.path.read_text()
    assert first.submission.payer != second.submission.payer
    assert first.submission.payer == payer(first.submission.key, KEY) != payer(first.submission.key, KEY + "x")
    assert submissions.path.stat().st_mode & 0o777 == 0o600


@given(st.lists(st.sampled_from(["begin", "create", "collect"]), max_size=8), st.floats(0, 1))
def test_a_cut_off_file_still_knows_what_may_have_been_sent(steps: list[str], share: float) -> None:
    """
    Only a whole line counts; those after it, added by the next go, are read too.
    """
    with tempfile.TemporaryDirectory() as folder:
        submissions = Submissions(Path(folder))
        for number, step in enumerate(steps):
            opened = submissions.read()[0]
            if step == "begin" or not opened:
                begin(submissions)
            elif step == "create":
                submissions.created(opened[-1].submission, f"msgbatch_{number}")
            else:
                submissions.ended(opened[0].submission, "collected")

        whole = submissions.path.read_bytes() if steps else b""
        kept = whole[: round(len(whole) * share)]
        submissions.path.write_bytes(kept)
        lines = kept.decode().splitlines()
        lines = lines if not lines or lines[-1].endswith("}") else lines[:-1]
        sent = [key for line in lines if '"submit"' in line for key in re.findall(r'"key":"(\w+)"', line)]
        ended = [key for line in lines if '"end"' in line for key in re.findall(r'"key":"(\w+)"', line)]
        last = begin(submissions)

        found = [one.submission.key for one in submissions.read()[0]]
        assert found == [key for key in sent if key not in ended] + [last]


def test_a_key_stands_once_in_a_line(tmp_path: Path) -> None:
    """
    Of two values nobody knows which one holds.
    """
    submissions = Submissions(tmp_path)
    submissions.path.write_text('{"did": "end", "key": "a", "how": "collected", "key": "b"}\n')

    with pytest.raises(LabError, match=r"line 1: key: stands twice in one object"):
        submissions.read()
