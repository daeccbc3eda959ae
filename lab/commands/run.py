"""
`turngate lab run`: ask a model all questions of a file of cases, and keep what it answers.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...stopgate.console import Commands, add_command, print_text, warn
from ..asking.question_options import add_question_options, count_up_to, name

if TYPE_CHECKING:
    from ...judge.connect import Target
    from ..asking.question_options import Questions
    from ..asking.spending import Paid
    from ..asking.trial import Ended
    from ..runs import Asked, Run

DEADLINE_S: Final = 30.0
"""Longer than a gate's: what an endpoint under load answers late still says how good the rubric is."""


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(
        commands,
        "run",
        _run,
        "ask a model about every case, as the gate would; run it again to go on where it ended",
        "turngate lab run --cases cases.jsonl --repeats 3 --usd 1.50",
    )
    add_question_options(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: runs/CASES-RUBRIC-MODEL)")
    parser.add_argument("--concurrency", type=count_up_to(1000), default=8, metavar="N", help="at once (default: 8)")
    parser.add_argument("--usd", type=_usd, metavar="MAX", help="stop before this is passed, earlier goes included")
    parser.add_argument(
        "--deadline", type=_seconds, default=DEADLINE_S, metavar="S", help="for a question (default: 30)"
    )
    parser.add_argument(
        "--again", action="store_true", help="ask refused and unreadable answers once more: billed again"
    )
    parser.add_argument("--base-url", type=name, metavar="URL", help="an endpoint that speaks the Messages API")
    parser.add_argument("--api-key-env", type=name, metavar="V", help="the variable that holds the key")
    parser.add_argument("--batch", action="store_true", help="by the Message Batches API: half the price, up to a day")


def _run(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..asking.question_options import read_questions
    from ..asking.run_lock import alone
    from ..asking.trial import unanswered
    from ..errors import LabError
    from ..run_warnings import opening_warnings
    from ..runs import open_run

    found = read_questions(asked, environ)
    target, found = _target(found, asked, environ)
    questions = found.asked()
    folder = asked.out or _folder(found)
    with alone(folder):
        run = open_run(folder, found.cases, found.cases_file, found.rubric, found.settings, found.repeats)
        for warning in opening_warnings(run):
            warn(warning)
        todo = unanswered(run, questions, again=asked.again)
        if len(todo) < len(questions):
            warn(f"{folder}: {len(questions) - len(todo)} of {len(questions)} are answered already")
        ask = _ask_in_batches if asked.batch else _ask
        try:
            ended = ask(asked, environ, run, todo, questions, target, found)
        except LabError:
            _tell_cost(folder)
            raise
    return _told(folder, questions, ended)


def _target(found: Questions, asked: argparse.Namespace, environ: Mapping[str, str]) -> tuple[Target, Questions]:
    """
    Say who is asked, and give the questions with the settings that hold for them.
    """
    from ...judge.connect import NoJudge, choose
    from ...stopgate.places import state_dir
    from ..errors import LabError

    settings = found.settings._replace(
        base_url=asked.base_url or found.settings.base_url,
        api_key_env=asked.api_key_env or found.settings.api_key_env,
        deadline_s=asked.deadline,
    )
    # Hundreds of questions are put to the client's log-in only where the settings say so.
    if asked.base_url or settings.backend == "auto":
        settings = settings._replace(backend="anthropic")
    if settings.backend == "remote":
        raise LabError("judge.backend is remote, and the lab asks a model itself: name an endpoint with --base-url")

    state = state_dir(environ)
    target = choose(settings, environ, Path(state, "scripted.jsonl") if state else None)
    if isinstance(target, NoJudge):
        raise LabError(target.reason)
    return target, found._replace(settings=settings._replace(backend=target.backend, model=target.model))


def _ask(
    asked: argparse.Namespace,
    environ: Mapping[str, str],
    run: Run,
    todo: Sequence[Asked],
    questions: Sequence[Asked],
    target: Target,
    found: Questions,
) -> Ended:
    from ...costing.ledger import Ledger
    from ...costing.opening import open_ledger_store
    from ..asking.run_summary import cost
    from ..asking.spending import limited
    from ..asking.trial import Ended, How, ask_all
    from ..progress import Progress

    if not todo:
        return Ended()
    _check_no_batch(run.folder)
    prices = _prices_folder(environ)
    with open_ledger_store(run.folder) as database:
        ledger = Ledger(database)
        spending = limited(run, ledger.calls(), questions, found.settings, asked.usd, prices)
        before = len(questions) - len(todo)
        progress = Progress(len(questions), before)
        how = How(target, found.settings, found.rubric, asked.concurrency, prices)

        def tell(answers: int, failures: int) -> None:
            failed = f", {failures} failed" if failures else ""
            progress.tell(before + answers, f"{cost(spending.paid)}{failed}")

        try:
            return ask_all(run.folder, todo, how, ledger, spending, tell)
        finally:
            progress.close()
            if spending.passed:
                warn(spending.passed)


def _check_no_batch(folder: Path) -> None:
    from ..batches.submissions import Submissions
    from ..errors import LabError

    if Submissions(folder).read()[0]:
        raise LabError(
            f"{folder}: questions of this run wait in a batch that is paid for: collect it with --batch first"
        )


def _ask_in_batches(
    asked: argparse.Namespace,
    environ: Mapping[str, str],
    run: Run,
    todo: Sequence[Asked],
    questions: Sequence[Asked],
    target: Target,
    found: Questions,
) -> Ended:
    from ..asking.trial import Ended, unanswered
    from ..batches.batch import run_batch

    # An answer without a verdict gives way to what a batch brings: the question was asked again, maybe by an earlier go.
    mute = {(question.case.id, question.repeat) for question in unanswered(run, questions, again=True)}
    run = run._replace(answers={key: answer for key, answer in run.answers.items() if key not in mute})
    try:
        run_batch(
            run,
            list(todo),
            target,
            found.settings,
            limit_usd=asked.usd,
            prices_folder=_prices_folder(environ),
            say=warn,
        )
    except KeyboardInterrupt:
        return Ended(is_interrupted=True)
    return Ended()


def _told(folder: Path, questions: Sequence[Asked], ended: Ended) -> int:
    from ..asking.run_summary import summary
    from ..asking.trial import unanswered
    from ..runs import read_run

    run = read_run(folder)
    left = len(unanswered(run, questions))
    done = f"{len(questions) - left} of {len(questions)} answered"
    print_text(summary(run, questions, _spent(run)))
    if ended.is_interrupted:
        warn(f"{done}; run again to go on")
        return 130
    if ended.why:
        warn(f"{ended.why}; {done} and kept; run again to go on")
        return 2
    if left:
        warn(f"{done}; run again to go on")
        return 2
    return _next(run)


def _next(run: Run) -> int:
    """
    Say what to do with a run in which nothing is left to ask: it is scored, or too many of its answers have no verdict.
    """
    from ..asking.run_summary import cost
    from ..asking.spending import paid_by
    from ..errors import NotDecidable
    from ..scoring.scorable import check_scorable

    try:
        check_scorable(run, run.readings())
    except NotDecidable as error:
        answers = [each.answer for each in run.readings() if each.answer is not None and each.verdict is None]
        mute = [answer for answer in answers if answer.outcome in ("answered", "refused")]
        again = f"; --again asks these once more, and they took {cost(paid_by(mute))}" if mute else ""
        warn(f"{error}{again}")
        return 2
    print_text(f"next: turngate lab score {run.folder}\n")
    return 0


def _spent(run: Run) -> Paid:
    from ...costing.ledger import Ledger
    from ...costing.opening import open_ledger_store
    from ..asking.spending import spent_on

    with open_ledger_store(run.folder) as database:
        return spent_on(run, Ledger(database).calls())


def _tell_cost(folder: Path) -> None:
    """
    Print what was paid, where anything was, of a run that ends in an error; the error is what has to be seen.
    """
    from ...costing.store import StoreError
    from ..asking.run_summary import cost
    from ..asking.spending import Paid
    from ..errors import LabError
    from ..runs import read_run

    with suppress(LabError, StoreError):
        spent = _spent(read_run(folder))
        if spent != Paid():
            print_text(f"cost: {cost(spent)}\n")


def _folder(found: Questions) -> Path:
    name = f"{found.cases_file.stem}-{found.rubric.label}-{found.settings.model}"
    return Path("runs", re.sub(r"[^\w.@-]+", "-", name)[:150])


def _prices_folder(environ: Mapping[str, str]) -> Path | None:
    from ...stopgate.places import config_dir

    config = config_dir(environ)
    return Path(config) if config else None


def _usd(text: str) -> Decimal:
    amount = _decimal(text)
    if not 0 < amount <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no amount in US dollars above 0, such as 1.50")
    return amount


def _seconds(text: str) -> float:
    seconds = _decimal(text)
    if not Decimal("0.1") <= seconds <= 600:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no time from 0.1 to 600 seconds")
    return float(seconds)


def _decimal(text: str) -> Decimal:
    """
    Read a number in plain digits with at most one point; -1 where it is none.
    """
    return Decimal(text) if re.fullmatch(r"(?=.{1,20}\Z)([0-9]+\.?[0-9]*|\.[0-9]+)", text) else Decimal(-1)
