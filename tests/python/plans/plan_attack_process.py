# SPDX-License-Identifier: Apache-2.0
"""A user's process that runs plans of strangers, one after the other, and says what came of it.

A line of the standard input names a folder and an input; the answer is a line of JSON. Whatever is
opened is noted by Python itself.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from npu.cli.command_line import run
from npu.commands import last_resort
from npu.graph import host_process
from spec.paths import ROOT

# What Python and its packages read of themselves, and the machine of itself.
_PACKAGES: tuple[str, ...] = (*filter(None, sys.path), sys.prefix, sys.base_prefix)
_SYSTEM = ("/proc", "/sys", "/usr", "/etc")
_KNOWN = tuple(os.path.realpath(path) for path in (*_PACKAGES, str(ROOT), *_SYSTEM))
_TICKS = os.sysconf("SC_CLK_TCK")


class _Watch:
    """Notes the paths of files that are opened."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, bool]] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(details[0], str | bytes | os.PathLike):
            flags = details[2] if isinstance(details[2], int) else 0
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            path = Path(os.fsdecode(details[0]))
            place = path.parent.resolve() / path.name if flags & os.O_NOFOLLOW else path.resolve()
            self.paths.append((str(place), writes))

    def outside(self, *allowed: Path) -> list[str]:
        """Return what was opened outside of folders, and forget all."""
        places = (*map(os.path.realpath, allowed), "/dev/null", "/dev/urandom")
        found = [
            path
            for path, writes in self.paths
            if not path.startswith(places) and (writes or not path.startswith(_KNOWN))
        ]
        self.paths.clear()
        return [path for path in found if "__pycache__" not in path]


def _child() -> int | None:
    process = host_process.CHILD.process
    return None if process is None else process.pid


def _seconds() -> float:
    """Return the processor time of this process and of its child, dead ones included."""
    own, dead = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    total = sum(one.ru_utime + one.ru_stime for one in (own, dead))
    child = _child()
    if child is not None:
        fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


def _peak(pid: int | str, anew: bool = False) -> int:
    """Return the most memory of a process since it was asked anew, in bytes."""
    if anew:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(lines.get("VmHWM", "0 kB").split()[0]) << 10


def _attempt(watch: _Watch, folder: str, given: str) -> dict[str, Any]:
    child = _child()
    _peak("self", anew=True)
    if child is not None:
        _peak(child, anew=True)
    begun, started = _seconds(), time.monotonic()
    said = StringIO()
    watch.paths.clear()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            status = run(["run", folder, "--input", given])
        outcome, message = ("taken" if status == 0 else f"status {status}"), ""
    except last_resort.Refusal as error:
        outcome, message = "refused", str(error)
    except BaseException as error:
        outcome, message = "crashed", f"{type(error).__name__}: {error}"
    opened = watch.outside(Path(folder), Path(given))
    child = _child()
    return {
        "outcome": outcome,
        "message": message,
        "said": said.getvalue(),
        "opened": opened,
        "seconds": _seconds() - begun,
        "wall": time.monotonic() - started,
        "bytes": _peak("self") + (_peak(child) if child is not None else 0),
    }


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    watch = _Watch()
    for line in sys.stdin:
        folder, given = json.loads(line)
        answers.write(json.dumps(_attempt(watch, folder, given)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
