"""
`turngate`: the commands for people.

Knows arguments and exit codes; what the commands say is `costing`'s. Every failure is one line on stderr and exit 2.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..costing.database import FILE_NAME
from ..costing.json_lines import call_json, decision_json
from ..costing.ledger import Ledger
from ..costing.outcomes import HOLDS
from ..costing.read_only import open_to_read
from ..costing.records import Decision
from ..costing.screen import one_line
from ..costing.store import Store, StoreError
from ..costing.text import NOTHING_HELD, NOTHING_YET, call_text, decision_text, log_text
from ..judge.service.sockets import CannotServe
from .commands import cost, dashboard, doctor, export, forget, install, pause, prune, resume, uninstall
from .console import CommandDone, CommandError, Commands, Parser, add_command, count_from_one, print_text, warn
from .places import state_dir
from .recent_decisions import lately
from .service_commands import ServiceTrouble, end_service, standing, status_text
from .serving import serve
from .settings import BadSetting, Settings, ledger_url, read_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

REPORT_WAIT_S = 30.0
"""For one statement of a report, on a server with the lines of years."""

Command = Callable[[argparse.Namespace, Mapping[str, str]], str]
"""Gives the text to print."""


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """
    Run one command, and give the exit code.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        parser, commands = _parser()
        if not arguments or arguments[0] not in commands.choices:
            # Looking for what other folders add takes 40 ms.
            added = _added_commands()
            if arguments and (entry := added.get(arguments[0])):
                return entry.load()(arguments[1:], environ)
            for name in sorted(added):
                commands.add_parser(name, help=_see(name))
        asked = parser.parse_args(arguments)
        command: Command = asked.command
        print_text(command(asked, environ))
    except (CommandError, StoreError, CannotServe, BadSetting, ServiceTrouble) as exc:
        warn(str(exc))
        return 2
    except CommandDone as done:
        return done.code
    except KeyboardInterrupt:
        return 130
    return 0


def _log(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    with ledger_store(environ) as database:
        ledger = Ledger(database) if database else None
        is_all = asked.all or asked.json or asked.would_hold
        outcomes = HOLDS if asked.would_hold else ()
        decisions = ledger.decisions(asked.n, outcomes=outcomes, passed_commands=is_all) if ledger else []
        left_out = _left_out(ledger, decisions, asked.n) if ledger and not is_all else 0
    _warn_of_damage(ledger)
    if asked.json:
        return "".join(json.dumps(decision_json(decision)) + "\n" for decision in decisions)
    if left_out:
        warn(f"not listed: {left_out:,} command{'' if left_out == 1 else 's'} that the jobs check let through (--all)")
        if not decisions:
            return ""
    nothing = NOTHING_HELD if asked.would_hold and ledger else NOTHING_YET
    return log_text(decisions, width=_terminal_width(), styled=_styled(environ), nothing=nothing)


def _left_out(ledger: Ledger, listed: Sequence[Decision], most: int) -> int:
    """
    Count the commands let through among the decisions that are listed.
    """
    return ledger.count_passed_commands(listed[0].line.at if len(listed) == most else None)


def _show(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    with ledger_store(environ) as database:
        ledger = Ledger(database) if database else None
        decision = find_decision(ledger, asked.id) if ledger else None
        # A developer's log refers to calls that a team's service made.
        calls = ledger.calls(call_id=asked.id) if ledger and not decision else []
    _warn_of_damage(ledger)
    if calls:
        return json.dumps(call_json(calls[0])) + "\n" if asked.json else call_text(calls[0])
    if decision is None:
        raise CommandError(f"no decision {asked.id!r}: `turngate log` lists the latest")
    return json.dumps(decision_json(decision)) + "\n" if asked.json else decision_text(decision)


def find_decision(ledger: Ledger, prefix: str) -> Decision | None:
    """
    Give the decision with this id, or with the only one that begins so. Raises `CommandError` where more than one does.
    """
    found = ledger.ids_starting(prefix)
    if len(found) > 1 and prefix not in found:
        raise CommandError(f"{prefix!r} begins more than one id: {', '.join(found)}")
    return ledger.decision(prefix if prefix in found else found[0]) if found else None


def _warn_of_damage(ledger: Ledger | None) -> None:
    if ledger is None or not ledger.damaged:
        return

    rows = list(ledger.damaged)
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    what = "damaged row, shown" if len(rows) == 1 else "damaged rows, shown"
    warn(f"{ledger.database.path}: {len(rows)} {what} without what cannot be read: {', '.join(rows[:3])}{more}")


def _serve(_asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    try:
        serve(environ, print_text)
    except (RuntimeError, MemoryError) as exc:  # no thread, or no memory
        raise CommandError(f"the service cannot run: {exc}") from exc
    return ""


def _status(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    found = standing(environ)
    return json.dumps(found) + "\n" if asked.json else status_text(found, environ) + _lately_text(environ)


def _lately_text(environ: Mapping[str, str]) -> str:
    settings, folder = Settings(), state_dir(environ) or ""
    with suppress(BadSetting):  # whoever opens the ledger says so
        settings = read_settings(environ).settings
    try:
        with ledger_store(environ) as store:
            lines = lately(store, settings, folder, datetime.now(UTC))
    except StoreError as error:
        lines = [("last stop", f"not known: {error}")]
    return "".join(f"{name:<15}{one_line(value)}\n" for name, value in lines)


def _stop(_asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    return end_service(environ)


def _demo(_asked: argparse.Namespace, _environ: Mapping[str, str]) -> str:
    from .demo import NotAsTold, play

    try:
        play(print_text)  # as it happens: the whole takes some seconds
    except (NotAsTold, OSError) as exc:
        raise CommandError(f"the demo went wrong: {exc}") from exc
    return ""


def _completion(asked: argparse.Namespace, _environ: Mapping[str, str]) -> str:
    from .completion import completion_script

    return completion_script(whole_parser(), asked.shell)


def _version(_asked: argparse.Namespace, _environ: Mapping[str, str]) -> str:
    from importlib.metadata import version

    return f"turngate {version('turngate')}\n"


@contextmanager
def ledger_store(environ: Mapping[str, str]) -> Generator[Store | None]:
    """
    Open the store of decisions; None where nothing was ever recorded: looking leaves no files behind.
    """
    folder = state_dir(environ)
    if folder is None:
        raise CommandError("no home directory is known: set TURNGATE_STATE_DIR")

    try:
        url = read_settings(environ).settings.ledger_url
    except BadSetting as exc:
        # Every stop passes meanwhile, and the log is where one looks for the reason.
        warn(str(exc))
        url = ledger_url(environ)
    if not url and not _is_there(Path(folder)):
        yield None
        return

    with open_to_read(folder, url, busy_timeout_s=REPORT_WAIT_S) as database:
        yield database


def _is_there(folder: Path) -> bool:
    try:
        (folder / FILE_NAME).lstat()
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise CommandError(f"the state directory {folder} cannot be used: {exc.strerror}") from exc
    except ValueError as exc:
        raise CommandError(f"the state directory {folder} cannot be used: {exc}") from exc
    return True


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if os.isatty(1) else None


def _styled(environ: Mapping[str, str]) -> bool:
    return os.isatty(1) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _added_commands() -> dict[str, EntryPoint]:
    """
    The commands of folders that import this one, by name.
    """
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="turngate.commands")}


def whole_parser() -> argparse.ArgumentParser:
    """
    Give the parser of every command, also of those that other folders add: for completion, and to check a command line.
    """
    from importlib import import_module

    parser, commands = _parser()
    for name, entry in sorted(_added_commands().items()):
        # Each module has a `parser()` beside its `main`.
        own: Parser = import_module(entry.module).parser()
        commands.add_parser(
            name, help=_see(name), parents=[own], add_help=False, description=own.description, epilog=own.epilog
        )
    return parser


def _see(name: str) -> str:
    return f"see `turngate {name} --help`"


def _parser() -> tuple[argparse.ArgumentParser, Commands]:
    parser = Parser(prog="turngate", description="A gate at the end of every turn of a coding agent.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    log = add_command(commands, "log", _log, "list the latest decisions, newest last", "turngate log -n 5")
    log.add_argument("-n", type=count_from_one, default=20, metavar="N", help="how many (default: 20)")
    log.add_argument("--all", action="store_true", help="also the commands that the jobs check let through")
    log.add_argument(
        "--would-hold", action="store_true", help="only what was held, or would have been if not for shadow mode"
    )
    log.add_argument(
        "--json", action="store_true", help="one JSON object per line, with findings and calls; always all"
    )

    show = add_command(commands, "show", _show, "show one decision in full", "turngate show 1m8pt7f1s")
    show.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    show.add_argument("--json", action="store_true", help="the same as one JSON object, as in `turngate log --json`")

    cost.add(commands)

    add_command(commands, "serve", _serve, "run the judge service in the foreground", "turngate serve")

    status = add_command(commands, "status", _status, "say how the service stands", "turngate status")
    status.add_argument("--json", action="store_true", help="the same as one JSON object; null where none is running")

    add_command(commands, "stop", _stop, "end the service; the next stop of an agent starts another", "turngate stop")

    install.add(commands)

    uninstall.add(commands)

    doctor.add(commands)

    pause.add(commands)

    resume.add(commands)

    add_command(commands, "demo", _demo, "play a false claim held and withdrawn, with no key", "turngate demo")

    dashboard.add(commands)

    export.add(commands)

    prune.add(commands)

    forget.add(commands)

    completion = add_command(
        commands,
        "completion",
        _completion,
        "print the script that lets a shell complete these commands",
        "turngate completion bash > ~/.local/share/bash-completion/completions/turngate",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")

    add_command(commands, "version", _version, "print the version", "turngate version")
    return parser, commands
