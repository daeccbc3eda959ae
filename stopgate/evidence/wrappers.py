"""
What a command is wrapped in, taken off: `env`, `timeout 60`, `npx`, `uv run`, `python -m` and their kin.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_Words = tuple[str, ...]


class _Wrapper(NamedTuple):
    verbs: tuple[str, ...] = ()
    """One of these has to come first, where there are any."""
    with_value: str = ""
    """Options that take the next word."""
    positional: int = 0
    """Words of its own before the command."""


_WRAPPERS: Final[dict[str, _Wrapper]] = {
    "env": _Wrapper(with_value="-u --unset -C --chdir"),
    "sudo": _Wrapper(with_value="-u -g -C -D -h -p -r -t -U --user --group --chdir --host --prompt"),
    "doas": _Wrapper(with_value="-u -C"),
    "time": _Wrapper(with_value="-o -f --output --format"),
    "timeout": _Wrapper(with_value="-s -k --signal --kill-after", positional=1),
    "gtimeout": _Wrapper(with_value="-s -k --signal --kill-after", positional=1),
    "nice": _Wrapper(with_value="-n --adjustment"),
    "ionice": _Wrapper(with_value="-c -n"),
    "stdbuf": _Wrapper(with_value="-i -o -e"),
    "xvfb-run": _Wrapper(with_value="-s -n -e -w"),
    "command": _Wrapper(),
    "exec": _Wrapper(with_value="-a"),
    "builtin": _Wrapper(),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "chroot": _Wrapper(positional=1),
    "flock": _Wrapper(with_value="-w -E --timeout --wait --conflict-exit-code", positional=1),
    "taskset": _Wrapper(with_value="-p --pid", positional=1),
    "chrt": _Wrapper(positional=1),
    "numactl": _Wrapper(),
    "unbuffer": _Wrapper(),
    "unshare": _Wrapper(),
    "strace": _Wrapper(with_value="-e -o -p -s -u"),
    "dbus-run-session": _Wrapper(),
    "runuser": _Wrapper(with_value="-u -g -G -s"),
    "systemd-run": _Wrapper(with_value="-p -E -u --unit --property --setenv --slice --uid --gid"),
    "entr": _Wrapper(),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "xargs": _Wrapper(with_value="-I -L -n -P -s -d -E -a --max-args --max-procs --delimiter --replace --arg-file"),
    "parallel": _Wrapper(with_value="-j -N -n --jobs --delay --timeout --colsep -a --arg-file"),
    "caffeinate": _Wrapper(with_value="-t -w"),
    "dotenv": _Wrapper(with_value="-e -f"),
    "npx": _Wrapper(with_value="-p --package -c"),
    "bunx": _Wrapper(),
    "uvx": _Wrapper(with_value="--from --with --python -p"),
    "pipx": _Wrapper(("run",), "--spec --python"),
    "pnpm": _Wrapper(("exec", "dlx"), "-C --dir --filter -F"),
    "npm": _Wrapper(("exec", "x"), "--prefix -w --workspace"),
    "yarn": _Wrapper(("exec", "dlx"), "--cwd"),
    "bun": _Wrapper(("x",)),
    "uv": _Wrapper(
        ("run",),
        "--with --with-editable --with-requirements --extra --no-extra --group --no-group --only-group --python -p "
        "--project --directory --package --env-file --index",
    ),
    "poetry": _Wrapper(("run",), "-C --directory -P --project"),
    "pipenv": _Wrapper(("run",)),
    "pdm": _Wrapper(("run",), "-p --project"),
    "rye": _Wrapper(("run",)),
    "hatch": _Wrapper(("run",), "-e --env"),
    "conda": _Wrapper(("run",), "-n --name -p --prefix"),
    "bundle": _Wrapper(("exec",)),
    "direnv": _Wrapper(("exec",), positional=1),
    "coverage": _Wrapper(("run",), "--source --omit --include --rcfile --data-file"),
    "dotnet-coverage": _Wrapper(("collect",)),
}
SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_SHELL_OPTIONS_WITH_VALUE: Final = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")
_MOST: Final = 8


def unwrapped(words: _Words) -> _Words:
    """
    The command inside; a shell's `-c` text is not looked into here.
    """
    return layers(words)[-1] if words else ()


def layers(words: _Words) -> list[_Words]:
    """
    The command as it stands, and what each of its wrappers runs, the innermost last; each begins with the name of a program.
    """
    found = list[_Words]()
    while words and len(found) <= _MOST:
        words = (_program(words[0]), *words[1:])
        found.append(words)
        inner = _inside(words)
        if inner == words:
            break
        words = inner
    return found


def shell_text(words: _Words) -> str:
    """
    The text that a shell is given to run, by `bash -c "..."`; empty where there is none.
    """
    if not words or words[0] not in SHELLS:
        return ""
    is_value = False
    for position, word in enumerate(words[1:], start=1):
        if is_value:
            is_value = False
        elif word in _SHELL_OPTIONS_WITH_VALUE:
            is_value = True
        elif word.startswith("-") and not word.startswith("--") and "c" in word:
            return words[position + 1] if position + 1 < len(words) else ""
        elif not word.startswith(("-", "+")):
            return ""
    return ""


def _program(word: str) -> str:
    name = word.replace("\\", "/").rpartition("/")[2] or word
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    return {"gradlew": "gradle", "mvnw": "mvn"}.get(name, name)


def _inside(words: _Words) -> _Words:
    name = words[0]
    if name.startswith(("python", "pypy")) or name == "py":
        return _python(words)
    if name in ("node", "php", "ruby", "bash", "sh") and len(words) > 1 and not words[1].startswith("-"):
        script = _program(words[1]).removesuffix(".js").removesuffix(".mjs").removesuffix(".cjs")
        return (script, *words[2:]) if "/bin/" in words[1] or "/.bin/" in words[1] or script == "artisan" else words
    if name in ("mise", "rtx") and words[1:2] in (("exec",), ("x",)) and "--" in words:
        return words[words.index("--") + 1 :]
    if name == "command" and words[1:2] in (("-v",), ("-V",)):
        return words
    wrapper = _WRAPPERS.get(name)
    return _behind(words, wrapper) if wrapper else words


def _behind(words: _Words, wrapper: _Wrapper) -> _Words:
    with_value = frozenset(wrapper.with_value.split())
    verbs, positional = wrapper.verbs, wrapper.positional
    position = 1
    while position < len(words):
        word = words[position]
        if verbs and word in verbs:
            verbs = ()
        elif word == "-m" and words[0] in ("uv", "coverage"):
            position += 1
            break
        elif word.startswith("-"):
            position += word in with_value
        elif verbs:
            return words
        elif words[0] == "env" and "=" in word:
            pass
        elif positional:
            positional -= 1
        else:
            break
        position += 1
    rest = words[position:]
    return words if verbs or not rest else rest


def _python(words: _Words) -> _Words:
    """
    The module that `python -m` runs, or a script that is a known program.
    """
    for position, word in enumerate(words[1:], start=1):
        if word == "-m":
            return words[position + 1 :] or words
        if words[position - 1] in ("-W", "-X"):
            continue
        if word == "-c" or not word.startswith("-"):
            return (_program(word), *words[position + 1 :]) if word.endswith("manage.py") or "/bin/" in word else words
    return words
