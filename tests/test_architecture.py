"""
The shape of the house: which folder may import which, and under which names.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT: dict[str, set[str]] = {
    "rubric": set(),
    "costing": set(),
    "judge": {"rubric", "costing"},
    "stopgate": {"rubric", "costing", "judge"},
    "lab": {"rubric", "costing", "judge", "stopgate"},
}


def imported_modules(path: Path) -> Iterator[str]:
    """
    Give the absolute name of each module that the file imports, as it is named after installation.
    """
    package = ["turngate", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *(node.module or "").split(".")]).rstrip(".")


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_one_way(folder: str) -> None:
    """
    A folder imports only from the folders below it.
    """
    allowed = {folder, *MAY_IMPORT[folder]}
    files = list((ROOT / folder).rglob("*.py"))
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in imported_modules(path)
        if module.startswith("turngate.") and module.split(".")[1] not in allowed
    ]

    assert files
    assert wrong == []


@pytest.mark.parametrize("folder", [*MAY_IMPORT, "tests"])
def test_nobody_uses_a_bare_folder_name(folder: str) -> None:
    """
    A bare `judge` or `lab` is somebody else's package, in whose projects the hook runs.
    """
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / folder).rglob("*.py")
        for module in imported_modules(path)
        if module.split(".")[0] in MAY_IMPORT
    ]

    assert wrong == []


def test_every_folder_with_code_is_installed() -> None:
    """
    The packages are listed by hand, so the list is checked against the tree.
    """
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        ".".join(["turngate", *path.parent.relative_to(ROOT).parts])
        for folder in MAY_IMPORT
        for path in (ROOT / folder).rglob("__init__.py")
    }

    assert found == listed


HEAVY_LIBRARIES = (
    *("anthropic", "genai_prices", "httpx", "jinja2", "numpy", "plotly", "prometheus_client", "psycopg", "scipy"),
    *("starlette", "tenacity", "tree_sitter", "tree_sitter_bash", "uvicorn"),
)
"""Not pydantic: a schema stands where its data are told of, which the hook's hot path never reaches."""


@pytest.mark.parametrize("library", HEAVY_LIBRARIES)
def test_a_heavy_library_has_one_owner(library: str) -> None:
    """
    Knowledge of a heavy library lies in one file, so that one file changes with it.
    """
    owners = [
        path.relative_to(ROOT)
        for folder in MAY_IMPORT
        for path in (ROOT / folder).rglob("*.py")
        if any(module.split(".")[0] == library for module in imported_modules(path))
    ]

    assert len(owners) == 1
