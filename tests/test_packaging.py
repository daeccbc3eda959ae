"""
The wheel: what it installs, and that each of its files can be imported without the sources.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("costing", "judge", "lab", "rubric", "stopgate")

NOT_PACKED = (".claude-plugin", "plugin")
"""Folders that the client gets from the repository, and the wheel must not have."""


@pytest.fixture(scope="module", name="wheel")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Build the wheel from a copy of the sources, with the build back end of this environment.
    """
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    for name in (*FOLDERS, *NOT_PACKED):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, sources],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_installs_only_under_turngate(wheel: Path) -> None:
    """
    No file of ours lies where another package's `judge` or `lab` would lie.
    """
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"turngate"}


def test_the_wheel_lacks_the_plugin(wheel: Path) -> None:
    """
    The client takes it from the repository; in a wheel nothing would find it.
    """
    with zipfile.ZipFile(wheel) as archive:
        packed = [name for name in archive.namelist() if "plugin" in name or name.endswith("hooks.json")]

    assert packed == []


def test_the_wheel_has_all_sources_and_data(wheel: Path) -> None:
    """
    Every source file, word file and typing mark of the tree is in the wheel.
    """
    wanted = {
        f"turngate/{path.relative_to(ROOT)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".css", ".html", ".js", ".py", ".sql", ".toml", ".typed", ".yml"} or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    assert wanted - packed == set()


def test_every_file_imports_from_the_wheel(wheel: Path) -> None:
    """
    Each module imports with only the wheel and the dependencies on the path, from a folder that has a `judge` of its own.
    """
    with zipfile.ZipFile(wheel) as archive:
        modules = sorted(
            name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".py")
        )
        site = wheel.parent / "site"
        archive.extractall(site)
    (wheel.parent / "judge").mkdir(exist_ok=True)
    (wheel.parent / "judge" / "__init__.py").write_text(
        "raise ImportError('the judge of the project that the hook runs in')"
    )
    program = (
        "import importlib, sys\n"
        # The editable install of this environment must not serve the modules.
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
        f"sys.path.insert(0, {str(site)!r})\n"
        f"for name in {modules!r}:\n"
        "    module = importlib.import_module(name)\n"
        f"    assert module.__file__.startswith({str(site)!r}), module.__file__\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=wheel.parent, capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert len(modules) > 20
