"""
The options that say what is asked: the cases, the rubric, the model and how often.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...judge.settings import EFFORTS, JudgeSettings
from ...rubric.library import BadRubric, Rubric, UnknownRubric, load
from ...stopgate.console import count_from_one
from ...stopgate.places import config_dir
from ...stopgate.settings import read_settings
from ..cases import Case, read_cases
from ..errors import LabError
from ..runs import Asked, questions

STAND_IN = "stand-in"
"""The model of answers that came from elsewhere, where nobody names one."""


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
    parser.add_argument("--rubric", default="", metavar="NAME", help="default: that of the settings")
    parser.add_argument("--rubric-folder", type=Path, metavar="DIR", help="where rubrics of your own lie")
    shown = model or "that of the settings"
    parser.add_argument("--model", default=model, metavar="ID", help=f"default: {shown}")
    parser.add_argument("--effort", choices=EFFORTS, help="default: that of the settings")
    parser.add_argument(
        "--repeats", type=count_from_one, default=1, metavar="K", help="each case so often (default: 1)"
    )


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
