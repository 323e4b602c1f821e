# SPDX-License-Identifier: Apache-2.0
"""What a program starts with: the class made from the register description."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from spec.isa import SetReg
from spec.regs import NO_TOKEN, SEQ_FIELDS, SeqReg, StartState, emit_start, source
from spec.regs.source import Field, Register, Start, Window

STATE = StartState.of_registers(lambda offset: offset << 8)
"""Every register has another value, and none that it has after a reset."""


def test_registers_give_back_what_was_written() -> None:
    """Every member reaches a register of its own and comes back from it."""
    held = dict(STATE.writes())
    assert len(held) == len(STATE.writes())
    assert StartState.of_registers(held.__getitem__) == STATE
    for member in fields(STATE):
        other = replace(STATE, **{member.name: getattr(StartState(), member.name)})
        assert dict(other.writes()) != held, member.name


def test_a_host_writes_the_registers_in_a_fixed_order() -> None:
    """The program and its stream come first, the bases one after the other."""
    order = [SeqReg(register).name for register, _ in STATE.writes()]
    assert order[:4] == ["UCODE_BASE", "UCODE_LEN", "DDR_BASE_WGT", "STREAM_LEN"]
    first = order.index("DDR_BASE_ACT")
    bases = ["DDR_BASE_ACT", "DDR_BASE_OUT", *(f"BASE{index}" for index in range(2, 8))]
    assert order[first : first + 8] == bases


def test_without_arguments_it_is_the_state_after_a_reset() -> None:
    """No token ends, the cache lies in memory, all else is 0."""
    after = {SeqReg(register).name: value for register, value in StartState().writes() if value}
    assert after == {"EOS": NO_TOKEN, "KV_CTRL": 1}


def test_registers_hold_no_more_than_their_fields() -> None:
    """Bits that a register does not have are not read back."""
    state = StartState.of_registers(lambda offset: 0xFFFF_FFFF)
    assert (state.ucode_base, state.stream_len, state.kv_in_memory) == (0xFFFFFFF0, 0xFFFFFFC0, 1)
    assert state.kv_base == SEQ_FIELDS["DDR_BASE_KV"].mask


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"kv_in_memory": 2}, r"StartState.kv_in_memory: given 0x2, allowed 0 or 1"),
        ({"kv_head": 0x80}, r"StartState.kv_head: given 0x80, allowed multiples of 256 < 2\^32"),
        ({"bases": (0,) * 9}, r"StartState.bases: given 9 values, allowed 8"),
    ],
)
def test_what_a_register_cannot_hold_is_refused(
    members: dict[str, int | tuple[int, ...]], message: str
) -> None:
    """The message names member, value and what is allowed."""
    with pytest.raises(ValueError, match=message):
        StartState(**members)  # type: ignore[arg-type]


def test_the_package_takes_every_register() -> None:
    """A register is assigned or has a place in the memory of start values, never both."""
    windows = source.load_all()
    text = emit_start.systemverilog(windows, "here")
    in_memory = {register.name for register, _ in emit_start.in_memory(windows)}
    for place in StartState.REGISTERS:
        register = SeqReg(place.register)
        assert (f"regs.{register.name}." in text) != (register.name in in_memory)
        assert (f"8'h{register:02X}: return" in text) == (register.name in in_memory)
    assert "start_state_of.image.stream_len = {regs.STREAM_LEN.VALUE.value, 6'b0};" in text
    assert "start_state_of.machine.kv_in_memory = regs.KV_CTRL.IN_MEMORY.value;" in text
    assert "start_state_of.machine.outcnt = '0;" in text
    assert "logic kv_in_memory;" in text


def test_what_set_changes_lies_in_the_memory() -> None:
    """The register of each machine register that SET names, and those that only software uses."""
    in_memory = {register.name: at for register, at in emit_start.in_memory(source.load_all())}
    sets = {name for name in SetReg.__members__ if name not in {"STREAM", "OUTCNT"}}
    assert {at[len("5'(npu_isa_pkg::Set") : -1].upper() for at in in_memory.values()} > sets
    first = [in_memory[f"DDR_BASE_{name}"] for name in ("ACT", "OUT", "KV")]
    assert first == [f"5'(npu_isa_pkg::Set{name})" for name in ("Base0", "Base1", "Kvbase")]
    for name in sets - {"BASE0", "BASE1", "KVBASE"}:
        assert in_memory[name] == f"5'(npu_isa_pkg::Set{name.capitalize()})"
    noted = ["MODEL_HIDDEN", "MODEL_HEADS", "MODEL_HEAD_DIM", "SEQ_LEN", "TOKEN_IDX"]
    assert [in_memory[name] for name in noted] == [f"5'd{place}" for place in range(24, 29)]
    assert len(in_memory) == len(sets) + len(noted)
    assert max(SetReg) < emit_start.FIRST_NOTED


def _window(*registers: tuple[str, Start, int]) -> Window:
    """Return a map of registers with a mark and so many fields."""
    made = tuple(
        Register(name, 4 * i, "", (Field("VALUE", 0, 32, "read, write", 0, "", "", ()),) * n, start)
        for i, (name, start, n) in enumerate(registers)
    )
    return Window("seq", "npu_seq_regs", 0x100, "", "", made)


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ([("A", Start("machin", "a", 0), 1)], "npu_seq_regs.A: given start machin.a, allowed im"),
        ([("A", Start("image", "a", 0), 2)], "npu_seq_regs.A: given 2 fields, allowed one in"),
        (
            [("A", Start("image", "a", 3), 1), ("B", Start("image", "b", 3), 1)],
            "npu_seq_regs.B: given start_order 3, which A has",
        ),
    ],
)
def test_a_wrong_mark_is_refused(registers: list[tuple[str, Start, int]], message: str) -> None:
    """The message names the register and what is allowed."""
    with pytest.raises(ValueError, match=message):
        emit_start.members([_window(*registers)])


@pytest.mark.parametrize(
    ("member", "register"),
    [
        *(("ucode_base", "UCODE_BASE"), ("ucode_len", "UCODE_LEN")),
        *(("stream_base", "DDR_BASE_WGT"), ("stream_len", "STREAM_LEN")),
        *(("pos", "POS"), ("token", "TOKEN"), ("window", "WINDOW"), ("eos", "EOS")),
        *(("loop_left", "LOOPLEFT"), ("kv_base", "DDR_BASE_KV"), ("kv_layer", "KVLAYER")),
        *(("kv_head", "KVHEAD"), ("kv_voff", "KVVOFF"), ("kv_cap", "KVCAP")),
        *(("kv_in_memory", "KV_CTRL"), ("bases[0]", "DDR_BASE_ACT"), ("bases[1]", "DDR_BASE_OUT")),
        *((f"bases[{index}]", f"BASE{index}") for index in range(2, 8)),
    ],
)
def test_a_member_lies_in_the_register_of_the_reference(member: str, register: str) -> None:
    """Marks that are exchanged would exchange them for driver, golden and RTL alike."""
    (place,) = (place for place in StartState.REGISTERS if place.name == member)
    assert SeqReg(place.register).name == register
