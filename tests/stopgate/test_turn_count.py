"""
The count of continuations: who shares it, and that it never passes its bound.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.database import open_database
from turngate.costing.store import Store, StoreError
from turngate.stopgate.turn_count import Hold, TurnCount, TurnCounts, TurnKey

from ..costing.places import BOTH, Place, a_place

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOLD = Hold("verdict", "No test ran.", ("claim",))


def a_key(human_id: str = "h1", *prompt_ids: str, session_id: str = "s1", agent_id: str = "") -> TurnKey:
    return TurnKey(session_id, agent_id, human_id, frozenset(prompt_ids))


@pytest.fixture(name="place", params=BOTH)
def each_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with a_place(request.param, tmp_path / "state") as found:
        yield found


@pytest.fixture(name="store")
def open_store(place: Place) -> Iterator[Store]:
    with place.open(busy_timeout_s=10) as found:
        yield found


@pytest.fixture(name="counts")
def counts_in(store: Store) -> TurnCounts:
    return TurnCounts(store)


def reserve(counts: TurnCounts, key: TurnKey, *, minute: int = 0, hold: Hold = HOLD, most: int = 2) -> bool:
    """
    Hold a stop whose process starts in this minute.
    """
    at = NOW + timedelta(minutes=minute)
    return counts.reserve(key, hold, seen=counts.find(key).spent, most=most, started_at=at, now=at)


def test_a_turn_is_held_twice_at_most(counts: TurnCounts) -> None:
    """
    Pitfall 1 and 15: the bound is ours, and the third stop of a turn cannot be held.
    """
    answers = [reserve(counts, a_key(), minute=minute) for minute in range(4)]

    assert answers == [True, True, False, False]
    assert counts.find(a_key())[:2] == (2, (HOLD, HOLD))


def test_a_new_human_prompt_starts_at_zero_and_an_hour_does_not(counts: TurnCounts) -> None:
    """
    Pitfall 13: the unit is the human turn, neither the session nor a time window.
    """
    assert reserve(counts, a_key("h1"))

    assert counts.find(a_key("h2")).spent == 0
    assert reserve(counts, a_key("h1"), minute=60)
    assert not reserve(counts, a_key("h1"), minute=600)


def test_a_task_notification_does_not_start_the_count_anew(counts: TurnCounts) -> None:
    """
    Pitfall 14: it starts a new prompt id under the same human prompt.
    """
    assert reserve(counts, a_key("h1", "p1"))

    assert counts.find(a_key("h1", "p1", "notification")).spent == 1


def test_one_failed_read_does_not_start_the_count_anew(counts: TurnCounts) -> None:
    """
    Either id finds the turn: the human prompt's, or a prompt id that was seen under it.
    """
    assert reserve(counts, a_key("h1", "p1"))

    assert counts.find(a_key("", "p1")).spent == 1
    assert counts.find(a_key("h1")).spent == 1
    assert reserve(counts, a_key("", "p1", "p2"), minute=1)
    assert counts.find(a_key("h1")).spent == 2


def test_a_failed_read_behind_a_notification_does_not_start_the_count_anew(counts: TurnCounts) -> None:
    """
    The notification's prompt id is new and the human prompt cannot be read: it is still the same turn, however often.
    """
    assert reserve(counts, a_key("h1", "p1"))
    assert reserve(counts, a_key("h1", "p1"), minute=1)

    assert [reserve(counts, a_key("", prompt), minute=minute) for minute, prompt in enumerate(("n1", "n2"), 2)] == [
        False,
        False,
    ]
    assert reserve(counts, a_key("h2", "p2"), minute=5)


def test_where_no_transcript_was_ever_read_a_prompt_id_tells_the_turns_apart(counts: TurnCounts) -> None:
    """
    Else a session without a transcript could be held twice in all.
    """
    assert [reserve(counts, a_key("", "p1"), minute=minute) for minute in range(3)] == [True, True, False]
    assert reserve(counts, a_key("", "p2"), minute=4)


def test_where_nothing_is_known_the_sessions_latest_turn_counts(counts: TurnCounts) -> None:
    """
    A stop without any id belongs to the session, not to a fresh turn each time.
    """
    assert reserve(counts, a_key(""))
    assert reserve(counts, a_key(""), minute=1)
    assert not reserve(counts, a_key(""), minute=2)


def test_a_turn_first_met_without_ids_is_taken_up_when_they_are_known(counts: TurnCounts) -> None:
    """
    The count of a turn whose first read failed goes on under its ids; the turn after it starts at 0.
    """
    assert reserve(counts, a_key(""))

    assert reserve(counts, a_key("h1", "p1"), minute=1)
    assert counts.find(a_key("h1")).spent == 2
    assert counts.find(a_key("h2", "p2")).spent == 0


def test_sessions_and_agents_count_apart(counts: TurnCounts) -> None:
    """
    A subagent's holds are not its parent's, nor another session's.
    """
    assert reserve(counts, a_key())

    assert counts.find(a_key(agent_id="a1")).spent == 0
    assert counts.find(a_key(session_id="s2")).spent == 0


def test_a_second_install_cannot_spend_at_the_same_stop(counts: TurnCounts) -> None:
    """
    Two installs read 0 and both want to hold: one may. Nor may one that reads 1 because it came late to the same stop.
    """
    at = NOW
    later = at + timedelta(seconds=2)
    held = counts.reserve(a_key(), HOLD, seen=0, most=2, started_at=at, now=later)
    stale = counts.reserve(a_key(), HOLD, seen=0, most=2, started_at=at, now=later)
    late = counts.reserve(a_key(), HOLD, seen=1, most=2, started_at=at + timedelta(seconds=1), now=later)

    assert (held, stale, late) == (True, False, False)
    assert counts.find(a_key()).spent == 1
    assert counts.find(a_key()).is_held_since(at)
    assert not counts.find(a_key()).is_held_since(later)


def test_no_continuations_means_no_hold(counts: TurnCounts) -> None:
    """
    A bound of 0 is never passed either.
    """
    assert not reserve(counts, a_key(), most=0)


def test_names_are_counted_by_session_and_kind(counts: TurnCounts) -> None:
    """
    A task named in a hold is known in the whole session, for whoever stops next.
    """
    reserve(counts, a_key("h1"), hold=Hold("background", "b1 runs", ("b1", "b2")))
    reserve(counts, a_key("h2"), hold=Hold("background", "b1 runs", ("b1",)))
    reserve(counts, a_key("h3"), hold=HOLD)

    assert counts.times_named("s1", ["background"]) == {"b1": 2, "b2": 1}
    assert counts.times_named("s1", ["verdict"]) == {"claim": 1}
    assert counts.times_named("s2", ["background", "verdict"]) == {}


def test_a_hold_played_through_spends_nothing(counts: TurnCounts) -> None:
    """
    Shadow mode remembers which tasks it would have named, and holds nobody.
    """
    counts.note(a_key(), Hold("shadow_background", "b1 runs", ("b1",)), NOW)

    assert counts.find(a_key()) == TurnCount()
    assert counts.times_named("s1", ["shadow_background"]) == {"b1": 1}


def test_messages_are_given_once(counts: TurnCounts) -> None:
    """
    The person reads of a spent cap once a turn, and of a missing judge once a session.
    """
    assert [counts.first_cap_told(a_key("h1"), NOW) for _ in range(3)] == [True, False, False]
    assert counts.first_cap_told(a_key("h2"), NOW)
    assert [counts.first_notice(session, "no_judge", NOW) for session in ("s1", "s1", "s2")] == [True, False, True]


def test_a_store_that_fails_says_so(tmp_path: Path) -> None:
    """
    Pitfall 11: a count that cannot be read and raised is an error of the store, from which the gate passes.
    """
    open_database(tmp_path / "state").close()
    (tmp_path / "state" / "turngate.db").write_bytes(b"not a database" * 1000)
    for beside in ("-wal", "-shm"):
        (tmp_path / "state" / f"turngate.db{beside}").unlink(missing_ok=True)

    with pytest.raises(StoreError):
        TurnCounts(open_database(tmp_path / "state"))


_HOLD_ONCE = """
import sys
from datetime import UTC, datetime
from turngate.costing.opening import open_ledger_store
from turngate.stopgate.turn_count import Hold, TurnCounts, TurnKey

counts = TurnCounts(open_ledger_store(sys.argv[1], sys.argv[2], busy_timeout_s=30))
key = TurnKey("s1", "", "h1")
started_at = datetime.fromisoformat(sys.argv[3])
seen = counts.find(key).spent
print(counts.reserve(key, Hold("verdict", "x", ()), seen=seen, most=2, started_at=started_at, now=datetime.now(UTC)))
"""


def test_twenty_stops_at_once_are_held_once(place: Place, counts: TurnCounts) -> None:
    """
    Pitfall 12: twenty processes that stop the same turn at once do not hold it more often than once.
    """
    command = [sys.executable, "-c", _HOLD_ONCE, place.folder, place.url, datetime.now(UTC).isoformat()]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(20)]
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]

    assert sorted(answers) == ["False"] * 19 + ["True"]
    assert counts.find(a_key()).spent == 1


def test_twenty_threads_never_pass_the_bound(counts: TurnCounts) -> None:
    """
    Pitfall 12: twenty later and later stops at once, each of which would hold whatever it read, hold twice in all.
    """
    answers: list[bool] = []

    def hold(minute: int) -> None:
        started_at, before = NOW + timedelta(minutes=minute), NOW - timedelta(days=1)
        for seen in range(3):
            is_held = counts.reserve(a_key(), HOLD, seen=seen, most=2, started_at=started_at, now=before)
            answers.append(is_held)

    threads = [threading.Thread(target=hold, args=(minute,)) for minute in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers.count(True) == 2
    assert counts.find(a_key()).spent == 2


def test_threads_that_meet_a_turn_at_once_make_one_of_it(store: Store) -> None:
    """
    Twenty stops that know the turn by different ids, the human prompt's among them, leave one row.
    """
    counts = TurnCounts(store)
    threads = [
        threading.Thread(target=counts.first_cap_told, args=(a_key("h1", f"p{number}"), NOW)) for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.rows("SELECT COUNT(*) FROM turns") == [(1,)]
    assert store.rows("SELECT COUNT(*) FROM turn_ids") == [(21,)]


STOPS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6)
"""Of each stop of a turn: whether a notification came before it, and whether the transcript can be read."""


@pytest.fixture(scope="module", params=BOTH)
def shared_counts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TurnCounts]:
    with a_place(request.param, tmp_path_factory.mktemp("state")) as place, place.open() as store:
        yield TurnCounts(store)


@given(st.lists(STOPS, min_size=1, max_size=5), st.booleans())
def test_no_human_turn_is_ever_held_more_than_twice(
    shared_counts: TurnCounts, turns: list[list[tuple[bool, bool]]], has_prompt_ids: bool
) -> None:
    """
    Whichever reads fail and however many notifications come, in clients with and without prompt ids.
    """
    session_id = uuid.uuid4().hex
    # One good read: where no transcript is ever read, a notification cannot be told from a human prompt.
    shared_counts.first_cap_told(a_key("h0", "p0", session_id=session_id), NOW)
    minute = 0
    for number, stops in enumerate(turns, 1):
        seen, held = [f"p{number}"], 0
        for notified, is_read in stops:
            minute += 1
            seen += [f"n{number}.{minute}"] if notified else []
            prompts = (seen if is_read else seen[-1:]) if has_prompt_ids else []
            key = a_key(f"h{number}" if is_read else "", *prompts, session_id=session_id)
            held += reserve(shared_counts, key, minute=minute)
        assert held <= 2
