"""
The gate: whether this turn may end. It knows no standard input, no socket and no global; clock, store, judge and settings are given.

The steps stand in their order. Each way out has one outcome code, and none holds because something failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ..costing.ledger import Ledger
from ..costing.outcomes import Outcome
from ..costing.records import DecisionLine, FindingLine
from ..costing.stamps import new_id
from ..costing.store import StoreError
from ..judge.judgement import Ask, AskOutcome, Judgement
from ..rubric.turn import Turn, as_json
from ..rubric.verdict import Finding
from . import background
from .events import STOP_EVENTS, BackgroundTask, Event
from .once import once
from .pausing import Pause
from .settings import Settings
from .transcript import Record, launched_by, notified, read
from .turn_count import Hold, HoldKind, TurnCount, TurnCounts, TurnKey

NOTED_FOR_SUBAGENTS: Final = ("opener", "cave")
"""Faults between an agent and a person; a subagent speaks to another agent."""

WRITING_S: Final = 0.25
"""
How long a transcript that lacks the reply is waited for. At 21 stops of client 2.1.328 the reply and all tool results were there 28 to
118 ms after the start of the hook, and in 14 of them not before 20 ms.
"""

_PAUSE_S: Final = 0.02

SHORT_ID: Final = 9
"""Characters of a decision's id that a person is told: those that tell its millisecond."""

HELD_BY_ANOTHER: Final = "this stop is held by another hook already"
"""The detail of a pass that is no trouble: of two installs of the gate, one holds."""

UNHEARD: Final = "nobody waits for the answer any more"

_UNJUDGED: Final[dict[AskOutcome, Outcome]] = {
    "timeout": "pass_judge_timeout",
    "error": "pass_judge_error",
    "unreadable": "pass_judge_unreadable",
    "refused": "pass_judge_refused",
    "breaker_open": "pass_breaker_open",
    "budget": "pass_budget",
    "no_judge": "pass_no_judge",
}


class Store(NamedTuple):
    """
    The gate's memory. Both are None where the store cannot be opened; `error` then says why, in one line.
    """

    ledger: Ledger | None
    counts: TurnCounts | None
    error: str = ""


class Reply(NamedTuple):
    """
    What the gate answers, and what it remembers of it.
    """

    outcome: Outcome
    reason: str = ""
    """What the agent gets; empty for a pass."""
    message: str = ""
    """One short line for the person, as a rule none."""
    detail: str = ""
    findings: tuple[FindingLine, ...] = ()
    dropped: int = 0
    client_version: str = ""


def decide(
    event: Event,
    *,
    now: datetime,
    store: Store,
    ask: Ask,
    settings: Settings,
    held_back: Callable[[], Judgement | None] = lambda: None,
    decision_id: str = "",
    elapsed: Callable[[], float] = lambda: 0.0,
    is_heard: Callable[[], bool] = lambda: True,
    paused: Pause | None = None,
) -> Reply:
    """
    Decide about one stop, and write the decision into the ledger.

    `now` is when the hook's process started, `elapsed` gives the seconds since then. `held_back` says, before the turn is put
    together, why nobody can be asked; None where somebody can. `is_heard` says whether somebody still waits for the reply:
    else nothing is held. `paused`: the pause that the stop falls into. Never raises for what a transcript, a store or a judge does.
    """
    decision_id = decision_id or new_id(now)
    stop = _Stop(event, now, store, ask, settings, held_back, decision_id, elapsed, is_heard, paused)
    reply = stop.decide()
    line = decision_line(event, reply, now, decision_id, elapsed() * 1000)
    if store.ledger is not None:
        record(store.ledger, line._replace(human_turn=stop.human_turn, spent=stop.spent))
    return reply


def decision_line(event: Event, reply: Reply, now: datetime, decision_id: str, hook_ms: float) -> DecisionLine:
    """
    Give the ledger's line for a reply, as far as the event tells.
    """
    return DecisionLine(
        at=now,
        event=event.name,
        outcome=reply.outcome,
        id=decision_id,
        session_id=event.session_id,
        agent_id=event.agent_id,
        project=event.project,
        prompt_id=event.prompt_id,
        detail=reply.detail,
        findings=reply.findings,
        dropped=reply.dropped,
        hook_ms=round(hook_ms),
        transcript_path=event.own_transcript,
        reply_chars=None if event.reply is None else len(event.reply),
        client_version=reply.client_version,
    )


def record(ledger: Ledger, line: DecisionLine) -> None:
    """
    Write the line. A ledger that cannot be written changes no answer.
    """
    try:
        ledger.record_decision(line)
    except StoreError:
        return


class _Stop:
    """
    One stop on its way. What costs something is read when a step first asks for it, and once.
    """

    def __init__(
        self,
        event: Event,
        now: datetime,
        store: Store,
        ask: Ask,
        settings: Settings,
        held_back: Callable[[], Judgement | None],
        decision_id: str,
        elapsed: Callable[[], float],
        is_heard: Callable[[], bool],
        paused: Pause | None,
    ) -> None:
        self._event: Final = event
        self._started_at: Final = now
        self._store: Final = store
        self._ask: Final = ask
        self._settings: Final = settings
        self._held_back: Final = held_back
        self._decision_id: Final = decision_id
        self._elapsed: Final = elapsed
        self._is_heard: Final = is_heard
        self._paused: Final = paused
        self._state_error = store.error
        self._reserved = False

    def decide(self) -> Reply:
        """
        Take the steps; the first that answers ends them.
        """
        steps = (self._not_a_turn, self._background, self._nothing_to_judge, self._cap)
        reply = next((answer for step in steps if (answer := step())), None) or self._judged()
        return reply._replace(client_version=self._record.client_version if self._was_read else "")

    @property
    def human_turn(self) -> str:
        """
        The id of the human prompt, where the transcript was read and has it.
        """
        return self._record.human_id if self._was_read else ""

    @property
    def spent(self) -> int | None:
        """
        The continuations spent after this decision; None where the turn is not known or the count cannot be read.
        """
        if not self._was_read:
            return None
        return None if self._count is None else self._spent + self._reserved

    # Step 1

    def _not_a_turn(self) -> Reply | None:
        event, settings = self._event, self._settings
        if event.name not in STOP_EVENTS:
            return Reply("pass_not_a_turn", detail=event.name)
        if settings.gate_mode == "off" or event.name not in settings.gate_events:
            return Reply("pass_off")
        if event.agent_type == "":
            return Reply("pass_not_a_turn", detail="an internal fork of the client")
        return self._in_pause(self._paused) if self._paused else None

    def _in_pause(self, pause: Pause) -> Reply:
        # The person is told of a pause that an agent made, once in each session that it is about.
        tells = pause.by_agent and self._told_first(f"pause:{pause.id}")
        message = (
            f"turngate: paused from an agent's shell: {pause.in_words} (`turngate resume` ends it)" if tells else ""
        )
        return Reply("pass_off", detail=f"paused: {pause.in_words}", message=message)

    # Step 2

    def _background(self) -> Reply | None:
        tasks = self._waited_for()
        if not tasks:
            return None
        text = background.hold_text(tasks)
        hold = Hold("background", text, tuple(task.id for task in tasks))
        if self._settings.gate_mode == "shadow":
            return self._played_through(
                hold._replace(kind="shadow_background"), Reply("shadow_background", detail=text)
            )
        return self._held(hold, Reply("block_background", detail=f"{len(tasks)} running"), "background work is running")

    def _waited_for(self) -> Sequence[BackgroundTask]:
        """
        Give the running tasks that this stop should wait for, and was not yet told of.
        """
        settings = self._settings
        off = settings.background_mode == "off"
        if off or (settings.background_mode == "headless" and self._event.attended is not False):
            return ()
        tasks = background.counting(
            self._event.tasks,
            exempt_types=settings.background_exempt_types,
            exempt_commands=settings.background_exempt_commands,
        )
        if not tasks or not self._has_continuation:
            return ()
        named = self._times_named("background", "shadow_background")
        if named is None:
            return ()
        tasks = [task for task in tasks if named.get(task.id, 0) < settings.background_holds_per_task]
        if tasks and self._event.is_subagent:
            # The list is the parent session's: only what this subagent started itself is its own to wait for.
            self._await_reply()
            own = launched_by(self._event.agent_transcript_path)
            tasks = [task for task in tasks if task.id in own and task.id != self._event.agent_id]
        ids, end = {task.id for task in tasks}, self._event.transcript_end
        ended = notified(self._record, ids, end=end) if tasks else frozenset[str]()
        return [task for task in tasks if task.id not in ended]

    # Step 3

    def _nothing_to_judge(self) -> Reply | None:
        if not self._reply.strip():
            return Reply("pass_empty_reply")
        last = self._record.last_message
        if last is not None and last.is_api_error and last.text.strip() == self._reply.strip():
            return Reply("pass_api_error")
        if self._record.wakeup_pending:
            # A notification that was delivered looks queued until the client has written the turn that it woke.
            self._await_reply()
        return Reply("pass_wakeup_pending") if self._record.wakeup_pending else None

    # Step 4

    def _cap(self) -> Reply | None:
        if self._count is None:
            return Reply("pass_state_error", detail=self._state_error)
        if self._count.is_held_since(self._started_at):
            return Reply("pass_state_error", detail=HELD_BY_ANOTHER)
        most = self._settings.gate_continuations
        if self._spent < most:
            return None
        first = most > 0 and self._told_first("cap")
        times = {1: "once", 2: "twice"}.get(most, "")
        return Reply("pass_cap_spent", message=f"turngate: held {times}; this reply was not judged" if first else "")

    # Steps 5 and 6

    def _judged(self) -> Reply:
        # Putting the turn together costs more than all else; it is spared where nobody can be asked.
        if held_back := self._held_back():
            return self._unjudged(held_back)
        if owing := self._owing():
            # Nothing could be held, and no budget would know of the call.
            return Reply("pass_state_error", detail=f"{owing}: cannot be written; nobody is asked until it can be")
        self._await_reply()
        # Once more: the holds before it, too, may have been missing in the transcript.
        if over := self._nothing_to_judge() or self._cap():
            return over
        turn = self._turn()
        if not self._is_heard():  # an answer would be paid for, and reach nobody
            return Reply("pass_service_error", detail=UNHEARD)
        judgement = self._ask(turn)
        if judgement.outcome != "answered" or judgement.verdict is None:
            return self._unjudged(judgement)
        if self._settings.record_turns:
            self._record_turn(turn)
        return self._verdict(judgement, turn)

    def _owing(self) -> str:
        """
        Name the ledger where it still owes lines of stops before.
        """
        ledger = self._store.ledger
        if ledger is None or not ledger.owed:
            return ""
        ledger.pay_owed()
        return ledger.database.path if ledger.owed else ""

    def _turn(self) -> Turn:
        from .evidence import build_turn

        count = self._count or TurnCount()
        return build_turn(
            self._record,
            reply=self._reply,
            subagent=self._event.is_subagent,
            checks=self._settings.evidence_checks,
            crons=self._event.crons,
            holds=tuple(hold.reason for hold in count.holds),
            cwd=self._event.cwd,
            running_task_ids=frozenset(task.id for task in self._event.tasks if task.status == "running"),
            permission_mode=self._event.permission_mode,
        )

    def _record_turn(self, turn: Turn) -> None:
        ledger = self._store.ledger
        try:
            if ledger is not None:
                ledger.record_turn(self._decision_id, as_json(turn))
        except StoreError:
            return

    def _unjudged(self, judgement: Judgement) -> Reply:
        outcome = _UNJUDGED.get(judgement.outcome, "pass_judge_error")
        tells = outcome == "pass_no_judge" and self._settings.judge.backend != "off" and self._told_first("no_judge")
        message = f"turngate: {judgement.detail}; only the free checks run" if tells else ""
        return Reply(outcome, message=message, detail=judgement.detail)

    # Step 7

    def _verdict(self, judgement: Judgement, turn: Turn) -> Reply:
        from ..rubric.verdict import MOST_REASONS, Verdict, ground, reasons

        verdict = ground(judgement.verdict or Verdict(), (self._reply, turn.reply))
        kept = [finding for finding in verdict.findings if self._action(finding.fault) != "off"]
        if not kept:
            outcome = "pass_ungrounded" if verdict.dropped and not verdict.findings else "pass_clean"
            return Reply(outcome, detail=judgement.detail, dropped=verdict.dropped)
        holding = self._holding(kept)[:MOST_REASONS]
        lines = tuple(FindingLine(*finding, held=finding in holding) for finding in kept)
        if not holding:
            return Reply("pass_noted", detail=judgement.detail, findings=lines, dropped=verdict.dropped)
        faults = tuple(dict.fromkeys(finding.fault for finding in holding))
        hold = Hold("verdict", reasons(holding), faults)
        if self._settings.gate_mode == "shadow":
            lines = tuple(line._replace(held=None) for line in lines)
            reply = Reply("shadow_verdict", detail=judgement.detail, findings=lines, dropped=verdict.dropped)
            return self._played_through(hold._replace(kind="shadow_verdict"), reply)
        reply = Reply("block_verdict", detail=judgement.detail, findings=lines, dropped=verdict.dropped)
        return self._held(hold, reply, ", ".join(faults))

    def _action(self, fault: str) -> str:
        action = self._settings.action(fault)
        return "note" if self._event.is_subagent and fault in NOTED_FOR_SUBAGENTS and action != "off" else action

    def _holding(self, findings: Sequence[Finding]) -> list[Finding]:
        """
        Give the findings that hold the turn: a fault of `hold_once` holds alone once per session, and beside another always.
        """
        actions = {finding.fault: self._action(finding.fault) for finding in findings}
        once = {fault for fault, action in actions.items() if action == "hold_once"}
        if "hold" not in actions.values():
            named = self._times_named("verdict", "shadow_verdict")
            if named is None or not once - named.keys():
                return []
        return [finding for finding in findings if actions[finding.fault] in ("hold", "hold_once")]

    # What the steps share

    def _await_reply(self) -> None:
        """
        Wait a little until the transcript has the reply. The client writes it in order, so all that came before is there by then.
        """
        give_up_at = time.monotonic() + WRITING_S
        while not self._is_written and time.monotonic() < give_up_at:
            time.sleep(_PAUSE_S)
            self.__dict__.pop("_record", None)

    @property
    def _is_written(self) -> bool:
        is_past = self._event.transcript_end is not None
        if is_past or self._event.reply is None or not self._record.human_id:
            # Nothing to wait for, or no transcript that could be waited for.
            return True
        known = self._record.prompt_ids
        if known and self._event.prompt_id and self._event.prompt_id not in known:
            # Not even the prompt is there: a reply of the same words is the one before it.
            return False
        return self._record.final_reply.strip() == self._event.reply.strip()

    def _held(self, hold: Hold, reply: Reply, what: str) -> Reply:
        """
        Reserve a continuation and hold; where it cannot be reserved, pass.
        """
        if not self._is_heard():
            return _let_go(reply, "pass_service_error", UNHEARD)
        refusal = self._refused_reservation(hold)
        if refusal:
            # Read anew at the end: another hook spent one meanwhile.
            self.__dict__.pop("_count", None)
            return _let_go(reply, "pass_state_error", refusal)
        self._reserved = True
        message = f"turngate held this reply: {what} (turngate wrong {self._decision_id[:SHORT_ID]})"
        return reply._replace(reason=hold.reason, message=message if self._settings.gate_message else "")

    def _refused_reservation(self, hold: Hold) -> str:
        counts, count = self._store.counts, self._count
        if counts is None or count is None:
            return self._state_error
        try:
            reserved = counts.reserve(
                self._key,
                hold,
                seen=count.spent,
                most=self._settings.gate_continuations,
                started_at=self._started_at,
                now=self._now,
            )
        except StoreError as error:
            return str(error)
        if not reserved:
            return HELD_BY_ANOTHER
        ledger = self._store.ledger
        # Counted in a file that was removed meanwhile, the same turn would be held without end.
        return "the store was removed while the judge was asked" if ledger and ledger.database.is_lost() else ""

    def _played_through(self, hold: Hold, reply: Reply) -> Reply:
        try:
            if self._store.counts is not None:
                self._store.counts.note(self._key, hold, self._now)
        except StoreError as error:
            return reply._replace(detail=str(error))
        return reply

    def _told_first(self, kind: str) -> bool:
        counts = self._store.counts
        try:
            if counts is None:
                return False
            if kind == "cap":
                return counts.first_cap_told(self._key, self._now)
            return counts.first_notice(self._event.session_id, kind, self._now)
        except StoreError:
            return False

    def _times_named(self, *kinds: HoldKind) -> dict[str, int] | None:
        """
        None where it cannot be read; then nothing is held for it.
        """
        try:
            counts = self._store.counts
            return counts.times_named(self._event.session_id, kinds) if counts else None
        except StoreError as error:
            self._state_error = str(error)
            return None

    @property
    def _now(self) -> datetime:
        return self._started_at + timedelta(seconds=self._elapsed())

    @property
    def _was_read(self) -> bool:
        return "_record" in self.__dict__

    @once
    def _record(self) -> Record:
        event = self._event
        return read(event.own_transcript, subagent=event.is_subagent, end=event.transcript_end)

    @once
    def _reply(self) -> str:
        return self._record.final_reply if self._event.reply is None else self._event.reply

    @once
    def _key(self) -> TurnKey:
        prompts = {*self._record.prompt_ids, self._event.prompt_id} - {""}
        return TurnKey(self._event.session_id, self._event.agent_id, self._record.human_id, frozenset(prompts))

    @property
    def _has_continuation(self) -> bool:
        count = self._count
        if count is None or count.is_held_since(self._started_at):
            return False
        return self._spent < self._settings.gate_continuations

    @property
    def _spent(self) -> int:
        """
        The continuations spent by the store and by the transcript: a store that was lost between two stops must not hold without end.
        """
        return max(self._count.spent if self._count else 0, self._record.own_holds)

    @once
    def _count(self) -> TurnCount | None:
        """
        None where the count cannot be read; then nothing is held.
        """
        try:
            return self._store.counts.find(self._key) if self._store.counts else None
        except StoreError as error:
            self._state_error = str(error)
            return None


def _let_go(reply: Reply, outcome: Outcome, detail: str) -> Reply:
    findings = tuple(finding._replace(held=False) for finding in reply.findings)
    return Reply(outcome, detail=detail, findings=findings, dropped=reply.dropped)
