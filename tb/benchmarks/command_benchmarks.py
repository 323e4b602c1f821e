# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the command port: what is driven, on chip and model, and what of it is timed.

A strobe is the cycle in which CTRL_STATUS.START is seen behind the register port; the way of the
access to it is not timed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import numpy as np

from npu.asm import assemble
from npu.compiler.ideal import LeastWork
from spec.regs import CmdOp
from tb.bench import logs
from tb.bench.environment import INPUT, OUTPUT, PROGRAM
from tb.benchmarks.benchmark import Benchmark, Interval
from tb.command.command_session import CommandSession
from tb.command.descriptor_words import SCALARS, DescriptorWords, TileWords, launch

TURNS = 8
"""So often each scalar operation is run, on other operands."""
COUNT = 7
"""Descriptors in the ring: as many as can be pending."""
SHAPE = (2, 3, 7)
LANES = 8
"""Products of signed bytes a cycle."""

Drive = Callable[[CommandSession], Awaitable[None]]


def _cycles(trace: logs.Records, kind: int) -> list[int]:
    return [int(cycle) for cycle in trace["cycle"][trace["kind"] == kind]]


def operation_cycles(events: logs.Records, trace: logs.Records) -> int:
    """Return the most cycles from a strobe to its interrupt.

    Raises:
        ValueError: the log does not hold both ends of every operation.
    """
    del events
    begins, ends = _cycles(trace, logs.CMD_START), _cycles(trace, logs.CMD_INTERRUPT)
    if not begins or len(begins) != len(ends):
        raise ValueError(f"{len(begins)} strobes and {len(ends)} interrupts in the log")
    return max(end - begin for begin, end in zip(begins, ends, strict=True))


def launch_cycles(events: logs.Records, trace: logs.Records) -> int:
    """Return the most cycles from the end of a program to the first word of the next one.

    Raises:
        ValueError: the logs do not hold the ends of programs and what is between them.
    """
    ends = _cycles(trace, logs.FINISH)
    dispatched = np.sort(events["cycle"][events["kind"] == logs.DISPATCH].astype(np.int64))
    if len(ends) < 2 or not (dispatched > ends[-2]).any():
        raise ValueError(f"{len(ends)} ends of programs in the log")
    return max(int(dispatched[dispatched > end][0]) - end for end in ends[:-1])


async def _scalars(session: CommandSession) -> None:
    for op in SCALARS:
        for _ in range(TURNS):
            words = np.array([session.word() & 0x7E7E_7E7E, session.word() & 0x7E7E_7E7E])
            assert await session.operate(op, int(words[0]), int(words[1]), session.word())


async def _descriptors(session: CommandSession) -> None:
    made = [DescriptorWords(SCALARS[n], session.word(), session.word()) for n in range(COUNT)]
    assert await session.run(*made)


async def _tile(session: CommandSession) -> None:
    m, n, k = SHAPE
    await session.fill_scratch(16)
    tile = TileWords.gemm(m, n, k, (0, m * k, 36), (k, n, 4 * n))
    assert await session.operate(CmdOp.GEMM_S8, tile=tile)


async def _programs(session: CommandSession) -> None:
    made = []
    for number in range(2):
        place = PROGRAM + 0x1000 * number
        words = assemble(f"SET OUTCNT v={number + 1}\nNOP\nEND").instructions
        session.bus.write_memory(place, b"".join(word.encode() for word in words))
        made.append(launch(place, len(words), base0=INPUT, base1=OUTPUT, tag=number))
    assert await session.run(*made)


def port_cases() -> Iterator[Benchmark]:
    """Yield the benchmarks of the command port."""
    m, n, k = SHAPE
    elements = m * n * -(-k // LANES)

    def case(
        name: str,
        parameters: dict[str, int],
        work: LeastWork,
        drive: Drive,
        interval: Interval,
    ) -> Benchmark:
        return Benchmark(
            name,
            {**parameters, "latency": 40},
            work,
            drive=drive,
            interval=interval,
            pictured=False,
        )

    yield case(
        "cmd_scalar",
        {"operations": len(SCALARS)},
        LeastWork(cycles=1),
        _scalars,
        Interval.OPERATION,
    )
    yield case(
        "desc_scalar_7",
        {"descriptors": COUNT},
        LeastWork(read_bytes=16 * COUNT),
        _descriptors,
        Interval.OPERATION,
    )
    yield case(
        "cmd_gemm_2x3x7",
        {"m": m, "n": n, "k": k},
        LeastWork(macs=m * n * k, cycles=elements),
        _tile,
        Interval.OPERATION,
    )
    yield case("ucode_launch", {"programs": 2}, LeastWork(cycles=1), _programs, Interval.LAUNCH)
