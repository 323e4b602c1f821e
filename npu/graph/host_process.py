# SPDX-License-Identifier: Apache-2.0
"""Operations that only a framework knows, checked and evaluated in a process of their own.

What the host is to do may come from a stranger: it is in the plan. The interpreter of onnx and the
compiler of jax were not made for that, so neither runs here. A child does what they are asked for,
within processor time and memory that follow from the shapes, and writes no file; whatever way it
ends, here it is one line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

import numpy as np

from npu.graph.form import Array, Graph, GraphError, Operation, Tensor
from npu.graph.host_evaluators import MissingError, Run, evaluator_of
from npu.graph.text import parse, write
from npu.graph.verify import named

Answer: TypeAlias = tuple[dict[str, str], list[Array | None]]
"""What went wrong, if anything did, and arrays."""
SECONDS, MEGABYTES = 2, 256
"""What any operation may take: of processor time, and of memory beyond the framework's own."""
BYTES_A_SECOND = 1 << 16
"""Tensors of so many bytes give another second."""
COPIES = 16
"""How often the memory of its tensors an operation may take."""
START_SECONDS = 120
"""A machine that does other things too may take long to start a process."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an operation may take.

    Attributes:
        seconds: of processor time.
        bytes: of memory.
    """

    seconds: int
    bytes: int

    @classmethod
    def of(cls, graph: Graph, operation: Operation) -> Allowance:
        """Return what follows from the shapes of an operation of a graph."""
        size = sum(graph.type(name).bytes for name in (*operation.used, *operation.outputs))
        return cls(SECONDS + size // BYTES_A_SECOND, (MEGABYTES << 20) + COPIES * size)


def check(graph: Graph, operation: Operation) -> None:
    """Check what an operation `host` asks for, without evaluating it.

    Without the framework nothing is checked, for then nothing is evaluated either.

    Raises:
        GraphError: it is not what an importer makes of the operator that it names.
    """
    try:
        CHILD.ask(graph, operation, None)
    except MissingError:
        return
    except GraphError as error:
        raise GraphError(f"{named(operation)}: {error}") from None


def evaluate(graph: Graph, operation: Operation, values: Sequence[Array | None]) -> list[Array]:
    """Evaluate an operation `host`.

    Args:
        graph: that has the types of its tensors.
        operation: of the graph.
        values: one per input.

    Returns:
        One array per output, as the framework gives it.

    Raises:
        GraphError: as `check`; or the framework is missing, fails, or takes more than it may.
    """
    return CHILD.ask(graph, operation, values)


def alone(graph: Graph, operation: Operation) -> Graph:
    """Return an operation as a graph of its own, without values of its inputs."""
    names = dict.fromkeys(operation.used)
    tensors = {name: Tensor(name, graph.type(name)) for name in (*names, *operation.outputs)}
    return Graph("host", tuple(names), operation.outputs, tensors, (operation,))


class _Child:
    """The process, started when it is needed first; one at a time asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self.process: subprocess.Popen[bytes] | None = None

    def ask(
        self, graph: Graph, operation: Operation, values: Sequence[Array | None] | None
    ) -> list[Array]:
        allowed = Allowance.of(graph, operation)
        request = {"graph": write(alone(graph, operation)), "check": values is None}
        with self._lock:
            answer, found = self._talk(_packed(request, values or ()), allowed)
        if "missing" in answer:
            raise MissingError(answer["missing"])
        if "error" in answer:
            raise GraphError(answer["error"])
        return [one for one in found if one is not None]

    def _talk(self, request: bytes, allowed: Allowance) -> Answer:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        given = Connection(os.dup(process.stdin.fileno()), readable=False)
        taken = Connection(os.dup(process.stdout.fileno()), writable=False)
        with given, taken:
            try:
                given.send_bytes(request)
                if not taken.poll(START_SECONDS + 10 * allowed.seconds):
                    raise TimeoutError
                return _unpacked(taken.recv_bytes(allowed.bytes // 4))
            except BaseException as error:
                # Whoever asks next must not get the answer to this.
                process.kill()
                ended = -process.wait()
                self.process = None
                if not isinstance(error, OSError | EOFError | ValueError):
                    raise
        if ended == signal.SIGPROF:
            raise GraphError(
                f"more than {allowed.seconds} s of processor time, allowed for tensors of its "
                f"size are {allowed.seconds}"
            )
        name = signal.Signals(ended).name if ended in {*signal.Signals} else f"status {-ended}"
        raise GraphError(f"the process that evaluates it has ended with {name}")

    def _running(self) -> subprocess.Popen[bytes]:
        # A fork of the process that has started the child would share its pipes.
        process = self.process if self._owner == os.getpid() else None
        if process is None or process.poll() is not None:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
            )
            self.process, self._owner = process, os.getpid()
        return process


CHILD = _Child()


def _packed(head: object, values: Sequence[Array | None]) -> bytes:
    found = io.BytesIO()
    given = [value is not None for value in values]
    found.write(json.dumps([head, given]).encode() + b"\n")
    for value in values:
        if value is not None:
            np.save(found, np.asarray(value), allow_pickle=False)
    return found.getvalue()


def _unpacked(data: bytes) -> Answer:
    stored = io.BytesIO(data)
    head, given = json.loads(stored.readline())
    return head, [np.load(stored, allow_pickle=False) if one else None for one in given]


# -------------------------------------------------------------------------------------------------
# The other side
# -------------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _run_of(text: str) -> tuple[Run, Allowance]:
    graph = parse(text)
    (operation,) = graph.operations
    allowed = Allowance.of(graph, operation)
    evaluator = evaluator_of(operation)
    with _limited(allowed):
        return evaluator(graph, operation), allowed


def _data_bytes() -> int:
    """Return how much memory the process may write to, as RLIMIT_DATA counts it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    return pages * resource.getpagesize()


@contextlib.contextmanager
def _limited(allowed: Allowance) -> Iterator[None]:
    limits = {
        resource.RLIMIT_DATA: _data_bytes() + allowed.bytes,
        resource.RLIMIT_FSIZE: 0,
    }
    before = {which: resource.getrlimit(which) for which in limits}
    for which, limit in limits.items():
        hard = before[which][1]
        resource.setrlimit(which, (limit if hard < 0 else min(limit, hard), hard))
    # Nobody waits for the signal at the end of the time: it ends the process.
    signal.setitimer(signal.ITIMER_PROF, allowed.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for which, pair in before.items():
            resource.setrlimit(which, pair)


def _answer(request: bytes) -> bytes:
    head, values = _unpacked(request)
    try:
        run, allowed = _run_of(head["graph"])
        if head["check"]:
            return _packed({}, ())
        with _limited(allowed):
            return _packed({}, run(values))
    except MissingError as error:
        return _packed({"missing": str(error)}, ())
    except MemoryError:
        return _packed({"error": "more memory than tensors of its size are allowed"}, ())
    except GraphError as error:
        return _packed({"error": str(error)}, ())
    except Exception as error:  # whatever a framework makes of what a stranger has written
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return _packed({"error": text}, ())


def main() -> None:
    """Answer until nobody asks any more."""
    # Whatever is printed must not come between the answers.
    answers = Connection(os.dup(1), readable=False)
    requests = Connection(os.dup(0), writable=False)
    with Path(os.devnull).open("r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            answers.send_bytes(_answer(requests.recv_bytes()))


if __name__ == "__main__":
    main()
