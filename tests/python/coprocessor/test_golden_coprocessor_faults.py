# SPDX-License-Identifier: Apache-2.0
"""Faults of the coprocessor: which one comes first, what is written by then, what stays open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from golden.command import GuardedRange
from golden.coprocessor import (
    ArrayMemory,
    CopFault,
    CopInstruction,
    CopResult,
    FaultCode,
    RefusedError,
    Uncertain,
)
from golden.coprocessor.memory import Range
from spec.isa.cop_generated import CopOp
from tests.python.coprocessor import coprocessor_reference as reference
from tests.python.coprocessor.coprocessor_support import (
    COUNT_IN_RD,
    COUNT_IN_RS2,
    MEMORY_BYTES,
    WRITERS,
    CopMachine,
    element_bytes,
    word,
)
from tests.python.golden.golden_support import Rng, integers, seeded

PAGE = 4096
TOP = (1 << 32) - 1
FLOAT_NAN = 0x7FC0_0000
CHEAP = ("VMAC", "VMUL", "VREDUCE", "VMAX", "FVMAC", "FVADD", "FVSUB", "FVRELU", "FVMUL", "FVMAX")
"""Counted instructions whose elements a plain model computes quickly."""


@dataclass
class QuietMemory(ArrayMemory):
    """A memory that is silent in ranges of its own for reads and writes."""

    quiet_reads: tuple[Range, ...] = ()
    quiet_writes: tuple[Range, ...] = ()

    def silence(self, *, write: bool) -> list[Range]:
        """Return where nothing is answered."""
        return list(self.quiet_writes if write else self.quiet_reads)


def one_range(rng: Rng, near: list[int], chance: float) -> tuple[Range, ...]:
    """Return, with a chance, a short range of bytes in one of the arrays."""
    if rng.random() >= chance:
        return ()
    first = int(rng.choice(near)) + int(rng.integers(0, 160))
    return ((first, first + int(rng.integers(0, 20))),)


def random_regions(rng: Rng, pages: list[int]) -> list[GuardedRange]:
    """Return all that is permitted, but for some pages."""
    found = []
    for page in range(MEMORY_BYTES // PAGE):
        odd = page in pages and rng.random() < 0.3
        read, write = (not odd or rng.random() < 0.5 for _ in range(2))
        found.append(GuardedRange(page * PAGE, page * PAGE + PAGE - 1, bool(read), bool(write)))
    rng.shuffle(found)
    return [*found, GuardedRange(MEMORY_BYTES, TOP, True, True)]


def place(rng: Rng) -> int:
    """Return an address before the end of a page, of the memory, or of all addresses."""
    kind = rng.random()
    end = MEMORY_BYTES if kind < 0.05 else TOP + 1 if kind < 0.1 else PAGE * int(rng.integers(1, 9))
    return end - int(rng.integers(1, 200))


@pytest.mark.parametrize("seed", range(8))
def test_any_fault_anywhere(seed: int) -> None:
    """Regions, stream, errors and silence against the plain model, byte for byte."""
    rng = seeded(seed)
    seen: dict[str, int] = {}
    for _ in range(150):
        name = CHEAP[int(rng.integers(len(CHEAP)))]
        op = CopOp[name]
        source = place(rng)
        other = source + int(rng.integers(-20, 20)) if rng.random() < 0.3 else place(rng)
        other = min(max(other, 0), TOP)
        count = int(rng.integers(0, 200 // element_bytes(name)))
        near = [at for at in (source, other) if at < MEMORY_BYTES] or [0]
        stream = one_range(rng, near, 0.15)
        memory = QuietMemory(
            integers(rng, np.uint8, (MEMORY_BYTES,)),
            read_errors=list(one_range(rng, near, 0.25)),
            write_errors=list(one_range(rng, near, 0.25)),
            regions=random_regions(rng, [at // PAGE for at in near]),
            stream=(stream[0][0] & -16, stream[0][1] | 15) if stream else None,
            quiet_reads=one_range(rng, near, 0.15),
            quiet_writes=one_range(rng, near, 0.15),
        )
        machine = CopMachine(memory)
        machine.cop.limit = int(rng.choice([0, 100, 256]))
        machine.cop.state.acc = int(rng.integers(0, 1 << 40))
        ref = reference.Reference(
            bytearray(memory.data),
            acc=machine.cop.state.acc,
            readable=[(area.first, area.last) for area in memory.regions if area.read],
            writable=without(
                [(area.first, area.last) for area in memory.regions if area.write], memory.stream
            ),
            read_errors=memory.read_errors,
            write_errors=memory.write_errors,
            silent_reads=list(memory.quiet_reads),
            silent_writes=list(memory.quiet_writes),
            limit=machine.cop.limit or 1 << 20,
        )
        rs2 = count if name in COUNT_IN_RS2 else other
        result = machine.run(name, source, rs2, count)
        expected = reference.execute(ref, op, source, rs2, count)
        compare(machine, ref, result, expected)
        seen[expected.code] = seen.get(expected.code, 0) + 1
        if result.uncertain:
            seen["open"] = seen.get("open", 0) + 1
    assert set(seen) == {"", "LENGTH", "DENIED", "BUS", "TIMEOUT", "open"}, seen


def without(ranges: list[Range], hole: Range | None) -> list[Range]:
    """Return ranges but for a hole."""
    if hole is None:
        return ranges
    parts = [
        part for a, b in ranges for part in ((a, min(b, hole[0] - 1)), (max(a, hole[1] + 1), b))
    ]
    return [(a, b) for a, b in parts if a <= b]


def compare(
    machine: CopMachine,
    ref: reference.Reference,
    result: CopResult,
    expected: reference.CopOutcome,
) -> None:
    """Hold golden's fault, state, memory and open bytes against the plain model's."""
    fault = machine.cop.fault
    assert result.fault == fault
    assert (fault.code.name if fault else "") == expected.code
    if fault:
        assert (fault.index, fault.address) == (expected.index, expected.address)
    else:
        assert result.data == (expected.data or 0)
    assert (machine.cop.state.acc, machine.cop.state.facc) == (ref.acc, ref.facc)
    assert machine.memory.data.tobytes() == bytes(ref.memory)
    found = {}
    if result.uncertain:
        at = result.uncertain.address
        found = dict(enumerate(result.uncertain.new, at))
        assert result.uncertain.old == machine.memory.load(at, len(result.uncertain.old))
    assert found == ref.open_bytes


@pytest.mark.parametrize("name", [*COUNT_IN_RD, *COUNT_IN_RS2])
def test_length_comes_before_everything(name: str) -> None:
    """Nothing is permitted, and counts reach 2^32 - 1: n times the size is taken in full width."""
    machine = CopMachine()
    machine.memory.regions = []
    machine.cop.trap = False
    size = element_bytes(name)
    before = machine.snapshot()
    for limit, count in (
        (0, (1 << 20) // size + 1),
        (256, 256 // size + 1),
        (1, 1 << 30),
        (256, TOP),
    ):
        if count * size > (limit or 1 << 20):
            machine.cop.limit, machine.cop.fault = limit, None
            result = machine.vector(name, 0x100, 0x200, count)
            assert machine.fault == CopFault(FaultCode.LENGTH, machine.fault.instruction, 0, 0)
            assert result.fault == machine.fault
    for limit, count in ((0, (1 << 20) // size), (256, 256 // size), (255, 255 // size)):
        machine.cop.limit, machine.cop.fault = limit, None
        machine.vector(name, 0x100, 0x200, count)
        assert machine.fault.code == FaultCode.DENIED
    assert machine.snapshot() == before


def test_large_counts_within_limit() -> None:
    """A megabyte at once; behind the memory's end the bus answers with an error."""
    machine = CopMachine()
    machine.cop.limit = 0
    machine.run("VMAX", 0, 1 << 18)
    assert (machine.fault.code, machine.fault.index) == (FaultCode.BUS, MEMORY_BYTES // 4)
    machine.cop.fault = None
    machine.run("VMAC", 0x8003, 0, 1 << 20)
    assert (machine.fault.index, machine.fault.address) == (0x7FFD, MEMORY_BYTES)


@pytest.mark.parametrize(
    ("name", "rs1", "index", "address"),
    [
        ("VREDUCE", TOP - 7, 2, 0),
        ("VREDUCE", TOP - 5, 1, TOP - 1),
        ("VREDUCE", TOP, 0, TOP),
        ("VMAC", TOP - 7, 8, 0),
        ("FVRSQRT", TOP - 2, 0, TOP - 2),
        ("VRSQRT", TOP, 0, TOP),
        ("LDVEC", TOP - 2, 0, TOP - 2),
        ("STVEC", TOP - 2, 0, TOP - 2),
    ],
)
def test_past_the_end_of_addresses(name: str, rs1: int, index: int, address: int) -> None:
    """An access does not wrap to address 0: the element that would is denied."""
    machine = CopMachine(EndlessMemory(np.zeros(MEMORY_BYTES, np.uint8)))
    machine.run(name, rs1, 9 if name == "VREDUCE" else 0, 9)
    assert machine.fault.code == FaultCode.DENIED
    assert (machine.fault.index, machine.fault.address) == (index, address)


class EndlessMemory(ArrayMemory):
    """Zeros behind the array."""

    def errors(self, *, write: bool) -> list[Range]:
        """Return nothing: no access fails."""
        return []

    def load(self, address: int, size: int) -> bytes:
        """Return bytes, zeros where there are none."""
        return super().load(address, size).ljust(size, b"\0")


@pytest.mark.parametrize(
    "name", ["VRSQRT", "VREDUCE", "VMAX", "FVRSQRT", "FVREDUCE", "FVMAX", "VMAC", "FVMAC", "LDVEC"]
)
def test_a_faulting_instruction_changes_no_state(name: str) -> None:
    """Accumulators and vector registers stay; a result is 0, of a float NaN."""
    machine = CopMachine()
    machine.put(0, seeded(1).integers(0, 256, 0x400), np.uint8)
    machine.run("LDVEC", 0x10, rd=1)
    machine.run("MACC", 77, 99)
    machine.run("FMACC", 0x3FC0_0000, 0x3FC0_0000)
    before = machine.snapshot()
    machine.memory.read_errors = [(0x120, 0x120)]
    result = machine.run(name, 0x11E if name.endswith("RSQRT") else 0x11D, 7, 7, rd=1)
    assert machine.snapshot() == before
    assert machine.fault.code == FaultCode.BUS
    assert result.data == (FLOAT_NAN if name in ("FVRSQRT", "FVREDUCE", "FVMAX") else 0)
    assert result.we == (name not in ("VMAC", "FVMAC", "LDVEC")) and result.rd == 1


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("code", [FaultCode.DENIED, FaultCode.BUS, FaultCode.TIMEOUT])
def test_a_write_that_fails(name: str, code: FaultCode) -> None:
    """Elements before it are written; behind a refused one nothing, else each byte is open."""
    machine, whole = CopMachine(), CopMachine()
    rng = seeded(int(code))
    for each in (machine, whole):
        each.put(0, seeded(5).integers(0, 256, 0x3000), np.uint8)
        each.run("MACC", 50_000, 1)
        each.run("FMACC", 0x3FC0_0000, 0x3FC0_0000)
    size, source, target = element_bytes(name), 0x103, PAGE - 41
    count = 20 * 4 // size
    before = machine.memory.data.copy()
    if code == FaultCode.DENIED:
        machine.memory.regions = [
            GuardedRange(0, PAGE - 1, True, True),
            GuardedRange(0, TOP, True, False),
        ]
    elif code == FaultCode.BUS:
        machine.memory.write_errors = [(PAGE + 3, PAGE + 3)]
    else:
        machine.memory.silent = [(PAGE + 3, PAGE + 3)]
    whole.vector(name, source, target, count)
    result = machine.vector(name, source, target, count)
    index = 41 // size
    # FVADD and FVSUB read there as well, and a memory that is silent is so for reads.
    in_place = name in ("FVADD", "FVSUB") and code == FaultCode.TIMEOUT
    assert machine.fault == CopFault(code, machine.fault.instruction, target + index * size, index)
    assert np.array_equal(
        machine.memory.data[target:][: index * size], whole.memory.data[target:][: index * size]
    )
    rest = target + index * size
    assert np.array_equal(machine.memory.data[rest:], before[rest:])
    if code == FaultCode.DENIED or in_place:
        assert result.uncertain is None
        return
    assert result.uncertain is not None
    size_left = (count - index) * size
    old, new = before[rest:][:size_left], whole.memory.data[rest:][:size_left]
    assert result.uncertain == Uncertain(rest, old.tobytes(), new.tobytes())
    mixed = np.where(rng.random(size_left) < 0.5, old, new)
    assert result.uncertain.permits(mixed.tobytes())
    mixed[3] = next(byte for byte in range(3) if byte not in (old[3], new[3]))
    assert not result.uncertain.permits(mixed.tobytes())
    with pytest.raises(ValueError, match="allowed"):
        result.uncertain.permits(b"")


def test_a_store_that_fails_is_open() -> None:
    """STVEC is one element."""
    machine = CopMachine()
    machine.cop.state.vreg[2] = 0x0403_0201
    machine.memory.write_errors = [(0x110, 0x110)]
    result = machine.run("STVEC", 0x10F, vreg=2)
    assert machine.fault == CopFault(FaultCode.BUS, word("STVEC", rs2=2), 0x10F, 0)
    assert result.uncertain == Uncertain(0x10F, bytes(4), bytes([1, 2, 3, 4]))


def test_denied_comes_before_a_bus_error_of_one_access() -> None:
    """The element lies in two words: the lower one answers badly, the upper one is denied."""
    machine = CopMachine()
    machine.memory.regions = [GuardedRange(0, PAGE - 1, True, True)]
    machine.memory.read_errors = [(PAGE - 1, PAGE - 1)]
    machine.run("VRSQRT", PAGE - 2)
    assert machine.fault.code == FaultCode.DENIED
    machine.cop.fault = None
    machine.run("VREDUCE", PAGE - 6, 2)
    assert (machine.fault.code, machine.fault.index) == (FaultCode.BUS, 0)


def test_the_lower_word_of_an_access_decides() -> None:
    """Two words, one with an error and one that is silent: they are asked in ascending order.

    A word that is both answers nothing.
    """
    for wrong, quiet, code in (
        (0x100, 0x110, FaultCode.BUS),
        (0x110, 0x100, FaultCode.TIMEOUT),
        (0x10F, 0x101, FaultCode.TIMEOUT),
    ):
        machine = CopMachine()
        machine.memory.read_errors, machine.memory.silent = [(wrong, wrong)], [(quiet, quiet)]
        machine.run("VRSQRT", 0x10E)
        assert machine.fault.code == code


def test_a_fault_refuses_what_follows_until_it_is_cleared() -> None:
    """With TRAP every word is refused; without, instructions go on and the first fault stays."""
    machine = CopMachine()
    machine.run("VMAC", 0, 0, 257)
    first = machine.fault
    assert not machine.cop.offer(word("MACC")).accept
    with pytest.raises(RefusedError, match="0x0073000b"):
        machine.run("MACC", 1, 1, rd=0)
    machine.cop.trap = False
    machine.run("MACC", 3, 3)
    machine.memory.regions = []
    result = machine.run("VRSQRT", 0x40)
    assert result.fault is not None and result.fault.code == FaultCode.DENIED
    assert machine.fault == first and machine.cop.has_fault
    machine.cop.trap, machine.cop.fault = True, None
    assert machine.cop.offer(word("MACC")).accept and machine.cop.state.acc == 9
    machine.run("VRSQRT", 0x40)
    assert machine.fault.code == FaultCode.DENIED


def test_soft_reset_ends_a_running_instruction() -> None:
    """So many elements as were complete are written; then the state is zero."""
    machine = CopMachine()
    machine.cop.limit = 64
    machine.put(0x100, [0x3F80_0000] * 10, np.uint32)
    machine.run("MACC", 1, 1)
    machine.run("FMACC", 0x3F80_0000, 0x4000_0000)
    machine.run("LDVEC", 0x100, rd=0)
    running = CopInstruction(word("FVMUL"), 0x100, 0x201, 10)
    result = machine.cop.soft_reset(running, 4)
    assert machine.get(0x201, 6, np.uint32) == [0x4000_0000] * 4 + [0, 0]
    assert result == CopResult(False, 5, 0, CopFault(FaultCode.RESET, running.word, 0, 4))
    state = machine.cop.state
    assert (state.acc, state.facc, state.vreg) == (0, 0, [0] * 4)
    assert (
        machine.cop.limit == 64 and machine.fault == result.fault and machine.cop.instructions == 4
    )
    assert machine.cop.soft_reset() is None and machine.fault == result.fault


@pytest.mark.parametrize(
    ("name", "rs1", "rs3", "most"),
    [
        ("FVMUL", 0x100, 10, 10),
        ("FVMUL", 0x100, 65, 0),
        ("FVMUL", PAGE - 10, 9, 2),
        ("MACC", 0, 0, 0),
    ],
)
def test_soft_reset_knows_how_much_can_be_complete(
    name: str, rs1: int, rs3: int, most: int
) -> None:
    """Not more than there are elements, nor than lie before a fault."""
    machine = CopMachine()
    machine.memory.regions = [GuardedRange(0, PAGE - 1, True, True)]
    running = CopInstruction(word(name), rs1, 0x200, rs3)
    for wrong in (-1, most + 1):
        with pytest.raises(ValueError, match=f"allowed 0..{most}"):
            machine.cop.soft_reset(running, wrong)
    assert machine.cop.soft_reset(running, most) is not None


def test_soft_reset_of_a_float_result() -> None:
    """A register instruction ends with NaN, and a fault that stands stays."""
    machine = CopMachine()
    machine.cop.trap = False
    machine.run("VMAC", 0, 0, 257)
    first = machine.fault
    result = machine.cop.soft_reset(CopInstruction(word("FGELU"), 0x3F80_0000))
    assert result is not None and result.data == FLOAT_NAN and result.we
    assert machine.fault == first


def test_memory_shared_with_others() -> None:
    """A bytearray is worked on in place."""
    data = bytearray(64)
    machine = CopMachine(ArrayMemory.of(data))
    machine.cop.state.vreg[0] = 0x6463_6261
    machine.run("STVEC", 3, vreg=0)
    assert bytes(data[:8]) == b"\0\0\0abcd\0"
