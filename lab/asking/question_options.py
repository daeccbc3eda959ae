"""
The options that say what is asked: the cases, the rubric, the model and how often.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ...judge.settings import EFFORTS, JudgeSettings
from ...rubric.library import BadRubric, Rubric, UnknownRubric, load
from ...stopgate.places import config_dir
from ...stopgate.settings import read_settings
from ..cases import Case, read_cases
from ..errors import LabError
from ..runs import Asked, questions

STAND_IN = "stand-in"
"""The model of answers that came from elsewhere, where nobody names one."""


MOST_REPEATS: Final = 100
"""Beyond this a flip rate gets no better, and the questions are held in memory."""

LONGEST_NAME: Final = 200


class Questions(NamedTuple):
    """
    What is asked, and with which settings.
    """

    cases_file: Path
    cases: list[Case]
    rubric: Rubric
    settings: JudgeSettings
    """The user's own, with what the options say instead; no budget of the gate's counts here."""
    repeats: int

    def asked(self) -> list[Asked]:
        """
        Give every question. Raises `LabError` where the rubric leaves no room for a turn.
        """
        return questions(self.cases, self.rubric, self.settings, self.repeats)


def add_question_options(parser: argparse.ArgumentParser, *, model: str = "") -> None:
    """
    Add the options to a command; `model` is asked where nobody names one, that of the settings where it is empty.
    """
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE", help="the cases, JSON Lines")
    parser.add_argument("--rubric", type=name, metavar="NAME", help="default: that of the settings")
    parser.add_argument("--rubric-folder", type=Path, metavar="DIR", help="where rubrics of your own lie")
    shown = model or "that of the settings"
    parser.add_argument("--model", type=name, default=model or None, metavar="ID", help=f"default: {shown}")
    parser.add_argument("--effort", choices=EFFORTS, help="default: that of the settings")
    parser.add_argument(
        "--repeats",
        type=count_up_to(MOST_REPEATS),
        default=1,
        metavar="K",
        help=f"each case so often (default: 1, at most {MOST_REPEATS})",
    )


def name(text: str) -> str:
    """
    Read an argument that names something: an empty one is a variable of a script that was never set.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: leave the option out, or name something")
    if len(text) > LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"has {len(text):,} characters, at most {LONGEST_NAME} may be")
    return text


def count_up_to(most: int) -> Callable[[str], int]:
    """
    Give a reader of arguments that are whole numbers from 1 up to `most`, in plain digits.
    """

    def count(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text[:60]!r} is no number from 1 to {most}")
        return int(text)

    return count


def read_questions(asked: argparse.Namespace, environ: Mapping[str, str]) -> Questions:
    """
    Read what the options name. Raises `LabError` and `BadSetting`.
    """
    settings = _settings(asked, environ)
    try:
        rubric = load(settings.rubric_name, settings.rubric_folder)
    except (BadRubric, UnknownRubric) as error:
        raise LabError(str(error)) from None
    return Questions(asked.cases, read_cases(asked.cases, faults=rubric.faults), rubric, settings, asked.repeats)


def _settings(asked: argparse.Namespace, environ: Mapping[str, str]) -> JudgeSettings:
    settings = read_settings(environ).settings.judge
    config = config_dir(environ)
    folder = asked.rubric_folder or (Path(config, "rubrics") if config else None)
    return settings._replace(
        rubric_name=asked.rubric or settings.rubric_name,
        rubric_folder=folder,
        model=asked.model or settings.model,
        effort=asked.effort or settings.effort,
        usd_per_day=None,
        usd_per_session=None,
    )
