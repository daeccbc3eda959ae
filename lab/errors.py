"""
What the lab cannot do, told in one line.
"""

from __future__ import annotations


class LabError(Exception):
    """
    The command cannot be done as asked; one line that says why, and names file, line and key where there are any.
    """


class NotDecidable(LabError):
    """
    The figures cannot answer what was asked: no score, no comparison.
    """
