"""
Which commands check work: tests, linters, type checkers, compilers and builds, as tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

_Words = tuple[str, ...]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALWAYS: Final = _words(
    """
    pytest py.test unittest tox nox trial behave mypy pyright basedpyright dmypy pytype pyre flake8 pylint pyflakes
    pycodestyle pydocstyle bandit py_compile compileall doctest
    jest vitest mocha ava jasmine karma tap cypress eslint tsc vue-tsc tsgo tslint oxlint standard xo stylelint
    htmlhint markdownlint
    markdownlint-cli2 svelte-check webpack rollup esbuild tsup knip
    golangci-lint staticcheck revive errcheck gotestsum ginkgo
    rustc gcc g++ cc c++ clang clang++ clang-tidy cppcheck cpplint ctest ninja javac kotlinc scalac ktlint detekt
    checkstyle msbuild
    rspec rubocop standardrb minitest cucumber phpunit pest phpstan psalm phpcs swiftlint elixirc ghc hlint
    shellcheck bats yamllint actionlint hadolint ansible-lint tflint kubeconform kubeval
    xcodebuild
    """
)
"""Programs that do nothing but check."""

BY_VERB: Final[Mapping[str, frozenset[str]]] = {
    "ruff": _words("check"),
    "ty": _words("check"),
    "pre-commit": _words("run"),
    "prek": _words("run"),
    "hatch": _words("test build"),
    "coverage": _words("run"),
    "biome": _words("check lint ci"),
    "playwright": _words("test"),
    "next": _words("build lint"),
    "vite": _words("build"),
    "astro": _words("check build"),
    "ng": _words("test build lint e2e"),
    "deno": _words("test check lint"),
    "bun": _words("test build"),
    "go": _words("test vet build"),
    "cargo": _words("test t check c clippy build b nextest llvm-cov tarpaulin"),
    "cmake": _words("--build"),
    "meson": _words("test compile"),
    "bazel": _words("test build"),
    "bazelisk": _words("test build"),
    "buck2": _words("test build"),
    "pants": _words("test lint check"),
    "mvn": _words("test verify package compile install integration-test"),
    "sbt": _words("test compile"),
    "lein": _words("test check"),
    "dotnet": _words("test build"),
    "srb": _words("tc"),
    "swift": _words("test build"),
    "mix": _words("test compile credo dialyzer"),
    "rebar3": _words("eunit ct dialyzer compile"),
    "stack": _words("test build"),
    "cabal": _words("test build"),
    "dune": _words("test build runtest"),
    "zig": _words("build test"),
    "dart": _words("test analyze"),
    "flutter": _words("test analyze build"),
    "terraform": _words("validate"),
    "tofu": _words("validate"),
    "helm": _words("lint"),
    "buf": _words("lint build"),
    "sqlfluff": _words("lint"),
    "docker": _words("build"),
    "manage.py": _words("test check"),
    "django-admin": _words("test check"),
    "artisan": _words("test"),
}
"""Programs that check under some of their verbs."""

BY_OPTION: Final[Mapping[str, frozenset[str]]] = {
    "black": _words("--check --diff"),
    "isort": _words("--check --check-only -c --diff"),
    "prettier": _words("--check -c --list-different -l"),
    "gofmt": _words("-l -d"),
    "rustfmt": _words("--check"),
    "clang-format": _words("--dry-run -n"),
    "node": _words("--test --check -c"),
    "php": _words("-l --syntax-check"),
    "bash": _words("-n"),
    "sh": _words("-n"),
    "zsh": _words("-n"),
    "ruby": _words("-c"),
    "perl": _words("-c"),
}
"""Programs that check only with one of these options."""

RUNNERS: Final = _words("make gmake just task mise rake gradle mage invoke inv nx turbo lerna moon grunt gulp poe pdm")
"""Programs whose targets are a project's own; the target's name says whether it checks."""

PACKAGE_MANAGERS: Final = _words("npm pnpm yarn bun composer")

TARGET_WORDS: Final = _words(
    "test tests unittest unittests spec specs e2e lint lints linting linters check checks typecheck typechecks types "
    "tsc mypy pytest jest vitest eslint ruff build compile vet verify validate ci coverage cov clippy"
)
OTHER_TARGET_WORDS: Final = _words(
    "deploy publish release start serve dev watch clean install docker push down up setup"
)

NO_RUN: Final = _words(
    "--version --help --collect-only --co --dry-run --just-print --fixtures --markers --init --showConfig --listTests "
    "--list --list-tests --no-run --print-config --show-only --listenvs"
)
"""Options with which a check does not run."""
_PRINT_OF_COMPILERS: Final = _words("-dumpversion -dumpmachine -dumpspecs -print-search-dirs -print-sysroot")
NO_RUN_OF: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _PRINT_OF_COMPILERS),
    "go": _words("-list"),
    "ctest": _words("-N"),
    "tox": _words("-l -a list l config devenv --notest"),
    "nox": _words("-l"),
    "xcodebuild": _words("-list -version -showsdks -showBuildSettings"),
    "webpack": _words("serve watch init info"),
    "cypress": _words("open install verify info cache"),
    "ninja": _words("-t clean"),
    "vitest": _words("list"),
}
"""Words with which a single program does not check."""

_TAKE_A_WORD: Final = _words("--filter -F -C --dir --prefix -w --workspace --cwd")
_WITH_VALUE: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("make", "gmake"), _words("-C -f -I -o -W --directory --file --makefile")),
    "just": _words("-f --justfile -d --working-directory"),
    "task": _words("-t --taskfile -d --dir"),
    "gradle": _words("-p --project-dir -b"),
    "go": _words("-C"),
}
"""Options that take the next word, which is no target then."""
_CHECK_ONLY: Final = _words("--check -check --diff --verify-no-changes --check-formatted")
_IGNORES_ERRORS: Final = re.compile("-[Bbekqrsw]*i[Bbekqrsw]*")
_DESCRIBES_ITSELF: Final = _words("-V -h -v version help")


def checks(words: _Words) -> bool:
    """
    Whether a command, freed of what it is wrapped in, checks work.
    """
    name, args = words[0], words[1:]
    if (NO_RUN | NO_RUN_OF.get(name, frozenset())).intersection(args):
        return False
    if len(args) == 1 and args[0] in _DESCRIBES_ITSELF and name != "bats":
        return False
    if name in ALWAYS:
        return True

    args = _without_values(args, _WITH_VALUE.get(name, frozenset()))
    verbs = [arg for arg in args if not arg.startswith(("-", "+")) and "=" not in arg]
    if name in BY_VERB and (BY_VERB[name].intersection(verbs[:1]) or BY_VERB[name].intersection(args[:1])):
        return True
    if name in BY_OPTION and BY_OPTION[name].intersection(args):
        return True
    special = _SPECIAL.get(name)
    return special(verbs, args) if special else False


def forces_zero(words: _Words) -> bool:
    """
    Whether a check ends with status 0 whatever it finds, or where there is nothing to run.
    """
    name, args = words[0], words[1:]
    if "--exit-zero" in args or (name == "ruff" and "-e" in args):
        return True
    if name in ("make", "gmake"):
        return "--ignore-errors" in args or any(map(_IGNORES_ERRORS.fullmatch, args))
    return name in ("npm", "yarn", "pnpm") and "--if-present" in args


def _without_values(args: _Words, options: frozenset[str]) -> _Words:
    before = ("", *args)
    return tuple(arg for option, arg in zip(before, args, strict=False) if option not in options)


def _of_targets(verbs: list[str], _args: _Words) -> bool:
    return any(is_checking_target(verb) for verb in verbs)


def _of_make(verbs: list[str], args: _Words) -> bool:
    verbs = [verb for verb in verbs if not verb.isdigit()]  # of `-j 4`
    # Without a target, make builds.
    if "-n" in args:
        return False
    return not verbs or any(verb == "all" or is_checking_target(verb) for verb in verbs)


def _of_gradle(verbs: list[str], _args: _Words) -> bool:
    return any(is_checking_target(_separated(verb.rpartition(":")[2])) or verb.endswith("assemble") for verb in verbs)


def _of_package_manager(verbs: list[str], args: _Words) -> bool:
    for option, value in pairwise(args):
        if option in _TAKE_A_WORD and value in verbs:
            verbs.remove(value)
    if verbs[:1] == ["workspace"]:
        verbs = verbs[2:]
    if verbs[:1] in (["run"], ["run-script"], ["task"]):
        return is_checking_target(verbs[1]) if len(verbs) > 1 else False
    # `npm ci` installs.
    return bool(verbs) and verbs[0] != "ci" and (verbs[0] in ("t", "tst") or is_checking_target(verbs[0]))


def _of_deno(verbs: list[str], args: _Words) -> bool:
    return _of_formatter(verbs, args) or (verbs[:1] == ["task"] and _of_package_manager(verbs, args))


def _of_formatter(verbs: list[str], args: _Words) -> bool:
    return verbs[:1] in (["format"], ["fmt"]) and bool(_CHECK_ONLY.intersection(args))


def _of_ruff(verbs: list[str], args: _Words) -> bool:
    return _of_formatter(verbs, args) or verbs[:1] == ["."]


def _of_script(_verbs: list[str], args: _Words) -> bool:
    # A project's own script, as `hatch run` runs it; the shell's `test` takes words.
    return not args


_SPECIAL: Final[Mapping[str, Callable[[list[str], _Words], bool]]] = {
    **dict.fromkeys(RUNNERS, _of_targets),
    **dict.fromkeys(PACKAGE_MANAGERS, _of_package_manager),
    **dict.fromkeys(("make", "gmake"), _of_make),
    **dict.fromkeys(("gradle", "sbt"), _of_gradle),
    **dict.fromkeys(("cargo", "terraform", "tofu", "dotnet", "dart", "mix"), _of_formatter),
    **dict.fromkeys(("test", "tests", "lint", "typecheck"), _of_script),
    "deno": _of_deno,
    "ruff": _of_ruff,
}


def is_checking_target(target: str) -> bool:
    """
    Whether the name of a project's own target, such as `test:unit` or `check-types`, says that it checks.
    """
    parts = set(_split(target.lower()))
    return bool(parts & TARGET_WORDS) and not parts & OTHER_TARGET_WORDS


def _split(target: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in target).split()


def _separated(target: str) -> str:
    return "".join(f" {character}" if character.isupper() else character for character in target)
