"""
Turngate installed from a wheel into an environment of its own, and its service as a process of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("costing", "judge", "lab", "rubric", "stopgate", "pyproject.toml", "README.md", "LICENSE")

START_WAIT_S = 30.0
QUIET_S = 0.5


def installed(scratch: Path) -> Path:
    """
    Give the interpreter of an environment with the wheel in it, as a user has it; without libraries: the relay needs none.
    """
    sources, wheels, folder = scratch / "sources", scratch / "wheels", scratch / "venv"
    sources.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    python = folder / "bin" / "python"
    for command in (
        ["build", "--wheel", "--no-isolation", "--outdir", wheels, sources],
        ["venv", "--without-pip", folder],
    ):
        subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    install = ["--python", python, "install", "--no-deps", "--no-index", "--no-warn-script-location"]
    subprocess.run([sys.executable, "-m", "pip", *install, *wheels.glob("*.whl")], check=True, capture_output=True)
    return python


def lend_libraries(python: Path) -> None:
    """
    Let the environment see this one's libraries. Its turngate stays its own: what an editable install puts in the way is not read there.
    """
    site = next(python.parents[1].glob("lib/python3*/site-packages"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")


def started(python: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """
    Start the service as a hook starts it.
    """
    return subprocess.Popen([python, "-I", "-m", "turngate.stopgate.serving"], env=dict(environ))


def ended(service: subprocess.Popen[bytes]) -> None:
    """
    End the service.
    """
    service.terminate()
    service.wait(START_WAIT_S)


@contextmanager
def serving(python: str, state: Path, environ: Mapping[str, str]) -> Generator[int]:
    """
    Keep a service running that has imported all it will; gives its process id.
    """
    service = started(python, environ)
    give_up_at = time.monotonic() + START_WAIT_S
    try:
        while not (state / "turngate.sock").exists():
            if service.poll() is not None or time.monotonic() > give_up_at:
                raise AssertionError("the service did not start")
            time.sleep(0.02)
        while _works(service.pid) and time.monotonic() < give_up_at:
            pass
        yield service.pid
    finally:
        ended(service)


def cpu_s(pid: int) -> float:
    """
    Give the processor's time that a process has used, in steps of 10 ms.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_mb(pid: int) -> float:
    """
    Give the memory that a process has resident.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def _works(pid: int) -> bool:
    before = cpu_s(pid)
    time.sleep(QUIET_S)
    return cpu_s(pid) - before > 0.1 * QUIET_S
