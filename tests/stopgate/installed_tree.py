"""
The folders under the names that they are installed by, as a wheel lays them out; without a finder of editable installs.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

FOLDERS = ("costing", "judge", "rubric", "stopgate")


def installed_tree(folder: Path) -> Path:
    """
    Give a folder in which `turngate` lies as in `site-packages`.
    """
    tree = folder / "site"
    (tree / "turngate").mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        link = tree / "turngate" / name
        if not link.exists():
            link.symlink_to(Path(str(import_module(f"turngate.{name}").__file__)).parent)
    return tree
