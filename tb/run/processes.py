# SPDX-License-Identifier: Apache-2.0
"""Processes that simulate: the end of one ends whatever it has started."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

TIME_LIMIT_S = 1800
"""Wall-clock limit of one run; every wait inside has a limit in cycles as well."""

_LIVE: set[subprocess.Popen[bytes]] = set()
"""Those that run now: they do not hear Ctrl-C themselves."""


def start(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a program that simulates, or that starts simulators, in a folder."""
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    _LIVE.add(process)
    return process


def wait(
    process: subprocess.Popen[bytes],
    limit_s: float = TIME_LIMIT_S,
    processor_s: float = math.inf,
) -> int | str:
    """Wait for the end of a process; return its exit status, or why there is none.

    Args:
        process: that `start` has returned.
        limit_s: of wall-clock time.
        processor_s: of processor time, which other work on the machine does not lengthen.
    """
    try:
        if processor_s < math.inf:
            whole = math.ceil(processor_s)
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (whole, whole + 5))
        status = process.wait(limit_s)
        if status == -signal.SIGXCPU:
            return f"no end within {processor_s:.0f} s of processor time"
        return status
    except subprocess.TimeoutExpired:
        return f"no end within {limit_s:.0f} s"
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that has not ended, and whatever it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _LIVE.discard(process)


def kill_all() -> None:
    """End all that this program has started."""
    for process in tuple(_LIVE):
        kill(process)
