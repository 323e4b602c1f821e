# SPDX-License-Identifier: Apache-2.0
"""A real cluster on the loopback interface: processes that a test can kill, freeze and restart."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from distributed import Client

from spec.paths import ROOT


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Processes:
    """A scheduler and its workers, each a process of its own.

    Attributes:
        address: of the scheduler.
        workers: their processes.
    """

    def __init__(self, folder: Path, workers: int = 3, protocol: str = "tcp") -> None:
        """Start them; their logs go to `folder`. The protocol tls needs its settings."""
        self._folder = folder
        self._port = free_port()
        self._protocol = protocol
        self.address = f"{protocol}://127.0.0.1:{self._port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._scheduler()
        for _ in range(workers):
            self.add_worker()

    def _start(self, name: str, *words: str, tree: Path = ROOT) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
                cwd=tree,
                env={**os.environ, "PYTHONPATH": str(tree)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _scheduler(self) -> subprocess.Popen[bytes]:
        words = ("--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard")
        return self._start("scheduler", "scheduler", "--protocol", self._protocol, *words)

    def add_worker(self, tree: Path = ROOT) -> None:
        """Start one more worker of a tree: one thread, no nanny that would start it again."""
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        words += [
            "--protocol",
            self._protocol,
            "--local-directory",
            str(self._folder),
            "--death-timeout",
            "60",
        ]
        self.workers.append(self._start("worker", "worker", self.address, *words, tree=tree))

    def await_workers(self, count: int) -> None:
        """Wait until so many have come."""
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def kill_worker(self) -> None:
        """Kill the oldest worker."""
        self._end(self.workers.pop(0))

    def freeze_worker(self) -> subprocess.Popen[bytes]:
        """Stop the oldest worker without ending it."""
        worker = self.workers[0]
        os.killpg(worker.pid, signal.SIGSTOP)
        return worker

    def restart_scheduler(self, seconds: float) -> None:
        """Kill the scheduler, with it its workers, and start all anew after some time."""
        count = len(self.workers)
        self._end(self.scheduler)
        for worker in self.workers:
            self._end(worker)
        self.workers.clear()
        time.sleep(seconds)
        self.scheduler = self._scheduler()
        for _ in range(count):
            self.add_worker()

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End them all."""
        for process in [*self.workers, self.scheduler]:
            self._end(process)
