"""
What a shell runs to complete the commands. Knows the library that writes such scripts.
"""

from __future__ import annotations

import argparse
from typing import Literal

Shell = Literal["bash", "zsh", "fish"]


def completion_script(parser: argparse.ArgumentParser, shell: Shell) -> str:
    """
    Give the script by which that shell completes the parser's commands, options and their values.
    """
    import shtab

    return shtab.complete(parser, shell).rstrip("\n") + "\n"
