# SPDX-License-Identifier: Apache-2.0
"""Texts of a program's start state: SystemVerilog package, Python class, list in C."""

from collections.abc import Iterable
from dataclasses import dataclass

from spec.regs.source import Register, Start, Window

MODULE = "npu_seq_regs"
"""The map whose registers a program starts with."""
GROUPS = {
    "image": "Where a program and its parameter stream lie",
    "machine": "Machine registers of a program: loaded at its start, changed by its instructions",
}
FIRST_NOTED = 24
"""Place in the memory of what only software uses; those before it are numbers of SET."""


@dataclass(frozen=True)
class StartMember:
    """A member of the start state and the registers that hold it: more than one for an array."""

    start: Start
    registers: tuple[Register, ...]

    @property
    def bits(self) -> int:
        """Width of an element."""
        return self.registers[0].mask.bit_length()

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return len(self.registers) > 1

    @property
    def is_written(self) -> bool:
        """Whether software gives the start value."""
        return "write" in self.registers[0].fields[0].access

    @property
    def is_sent(self) -> bool:
        """Whether it is sent to the machine behind a start, and not given at once."""
        return self.start.set_name != ""


def members(windows: Iterable[Window]) -> list[StartMember]:
    """Return the members of the start state in their order.

    Raises:
        ValueError: a register is marked that cannot hold a member, or a place is used twice.
    """
    marked = [
        (register.start, register)
        for window in windows
        if window.module == MODULE
        for register in window.registers
        if register.start is not None
    ]
    found: dict[tuple[str, str], list[Register]] = {}
    orders: dict[int, str] = {}
    for start, register in sorted(marked, key=lambda one: one[0].order):
        if start.group not in GROUPS or not start.member:
            raise ValueError(
                f"{MODULE}.{register.name}: given start {start.group}.{start.member}, allowed "
                f"{' or '.join(f'{group}.NAME' for group in GROUPS)}"
            )
        if len(register.fields) != 1:
            raise ValueError(
                f"{MODULE}.{register.name}: given {len(register.fields)} fields, allowed one in a "
                "register that a program starts with"
            )
        if start.order in orders:
            raise ValueError(
                f"{MODULE}.{register.name}: given start_order {start.order}, which "
                f"{orders[start.order]} has"
            )
        orders[start.order] = register.name
        found.setdefault((start.group, start.member), []).append(register)
    return [
        StartMember(registers[0].start, tuple(registers))
        for registers in found.values()
        if registers[0].start is not None
    ]


def _bits(member: StartMember) -> str:
    size = f"[{len(member.registers) - 1}:0]" if member.is_array else ""
    return f"logic {size}{f'[{member.bits - 1}:0]' if member.bits > 1 else ''}".strip()


def _value(register: Register) -> str:
    (field,) = register.fields
    value = f"regs.{register.name}.{field.name}.value"
    return f"{{{value}, {field.lsb}'b0}}" if field.lsb else value


def _assignments(member: StartMember) -> list[str]:
    target = f"start_state_of.{member.start.group}.{member.start.member}"
    if not member.is_written or member.is_sent:
        return [f"    {target} = '0;"]
    if not member.is_array:
        return [f"    {target} = {_value(member.registers[0])};"]
    return [f"    {target}[{i}] = {_value(r)};" for i, r in enumerate(member.registers)]


def in_memory(windows: Iterable[Window]) -> list[tuple[Register, str]]:
    """Return the registers that lie in a memory, and their places in SystemVerilog."""
    (window,) = (window for window in windows if window.module == MODULE)
    sent = [
        (register, f"5'(npu_isa_pkg::Set{register.start.set_name.capitalize()})")
        for register in window.registers
        if register.start is not None and register.start.set_name
    ]
    noted = [register for register in window.registers if register.noted]
    return sent + [(register, f"5'd{FIRST_NOTED + i}") for i, register in enumerate(noted)]


def choice(name: str, result: str, argument: str, cases: list[tuple[str, str]], other: str) -> str:
    """Return a function of SystemVerilog that takes a value for each case."""
    lines = [f"  function automatic {result} {name}({argument});"]
    lines += [f"    unique case ({argument.split()[-1]})"]
    lines += [f"      {case}: return {value};" for case, value in cases]
    lines += [f"      default: return {other};", "    endcase", "  endfunction"]
    return "\n".join(lines)


def _memory(windows: tuple[Window, ...]) -> list[str]:
    """Return the lines about the registers that lie in a memory."""
    places = in_memory(windows)
    offsets = [(f"8'h{r.offset:02X}", f"'{{known: 1'b1, number: {at}}}") for r, at in places]
    masks = [(at, f"32'h{r.mask:08X}") for r, at in places if r.mask != 2**32 - 1]
    resets = [(at, f"32'h{f.reset << f.lsb:08X}") for r, at in places for f in r.fields if f.reset]
    return [
        "",
        "  // Where a register lies in the memory of start values: as SET counts, or behind those",
        "  typedef struct packed {",
        "    logic       known;   // it does",
        "    logic [4:0] number;  // its place, with known",
        "  } start_place_t;",
        f"  localparam logic [4:0] FirstNoted = 5'd{FIRST_NOTED};  // only software's from here on",
        "",
        "  // A start value on its way to the machine",
        "  typedef struct packed {",
        "    logic        valid;   // pulse, from the cycle behind a start on",
        "    logic        last;    // no more follow, with valid",
        "    logic [4:0]  number;  // of a machine register as SET counts, or of none",
        "    logic [31:0] value;   // with valid",
        "  } start_value_t;",
        "",
        "  // Place of the register at an offset of the window, its bits, its value after a reset",
        choice("start_place", "start_place_t", "logic [7:0] offset", offsets, "'0"),
        "",
        choice("start_mask", "logic [31:0]", "logic [4:0] number", masks, "'1"),
        "",
        choice("start_reset", "logic [31:0]", "logic [4:0] number", resets, "'0"),
    ]


def systemverilog(windows: tuple[Window, ...], origin: str) -> str:
    """Return the text of build/gen/regs/npu_start_pkg.sv."""
    found = members(windows)
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        f"// {origin}",
        "",
        "package npu_start_pkg;",
    ]
    for group, text in GROUPS.items():
        lines += ["", f"  // {text}", "  typedef struct packed {"]
        inside = [m for m in found if m.start.group == group and not (m.is_sent and m.is_array)]
        lines += [f"    {_bits(m)} {m.start.member};" for m in inside]
        lines += [f"  }} {group}_t;"]
    lines += [
        "",
        "  // What the host has written before a start; what is sent behind it is 0 here",
        "  typedef struct packed {",
    ]
    lines += [f"    {group}_t {group};" for group in GROUPS]
    lines += ["  } start_state_t;", "", "  // What the sequencer's registers hold"]
    lines += [
        f"  function automatic start_state_t start_state_of({MODULE}_pkg::{MODULE}__out_t regs);"
    ]
    given = [member for member in found if not (member.is_sent and member.is_array)]
    lines += [line for member in given for line in _assignments(member)]
    return "\n".join([*lines, "  endfunction", *_memory(windows), "", "endpackage", ""])


def _default(member: StartMember) -> tuple[str, str]:
    """Return type and default of a member in Python: what its registers hold after a reset."""
    values = [(r.fields[0].reset or 0) << r.fields[0].lsb for r in member.registers]
    if member.is_array:
        return "tuple[int, ...]", repr(tuple(values))
    return "int", f"0x{values[0]:X}" if values[0] > 1 else f"{values[0]}"


def _text(member: StartMember) -> str:
    names = [register.name for register in member.registers]
    if member.is_array:
        return f"{', '.join(names)}, in this order."
    return f"{names[0]}. {member.registers[0].text}"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > width - len(indent) and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [lines[0], *(indent + line for line in lines[1:])]


def c(windows: tuple[Window, ...]) -> list[str]:
    """Return the lines of firmware/include/npu_regs.h that name the machine's start values."""
    found = [m for m in members(windows) if m.is_written and not m.is_array]
    names = [(m.registers[0].name, m.start.member) for m in found if m.start.group == "machine"]
    return [
        "/* What a plan says of a start: register, and member of struct npu_plan_registers. */",
        "#define NPU_START_VALUES(X) \\",
        " \\\n".join(f"  X({register}, {member})" for register, member in names),
    ]


def python(windows: tuple[Window, ...]) -> list[str]:
    """Return the lines of spec/regs/generated.py that are the class StartState."""
    found = [member for member in members(windows) if member.is_written]
    of_group = {group: [m for m in found if m.start.group == group] for group in GROUPS}
    lines = ["", "", "class MachineStart(TypedDict, total=False):"]
    lines += [
        '    """The members of StartState that are loaded into the machine\'s registers."""',
        "",
    ]
    lines += [f"    {m.start.member}: {_default(m)[0]}" for m in of_group["machine"]]
    lines += ["", "", "@dataclass(frozen=True, slots=True)", "class StartState(StartMembers):"]
    lines += [
        '    """What the host has written before a start; without arguments as after a reset.'
    ]
    lines += ["", "    Attributes:"]
    for member in found:
        text = _wrapped(f"        {member.start.member}: {_text(member)}", 100, " " * 12)
        lines += ["        " + text[0], *text[1:]]
    lines += ['    """', ""]
    for group, inside in of_group.items():
        lines += ["    _: KW_ONLY"] if group == "machine" else []
        lines += [f"    {m.start.member}: {' = '.join(_default(m))}" for m in inside]
    lines += ["", "    REGISTERS: ClassVar[tuple[StartRegister, ...]] = ("]
    for member in found:
        for index, register in enumerate(member.registers):
            place = index if member.is_array else None
            lines.append(
                f'        StartRegister("{member.start.member}", {place}, SeqReg.{register.name}, '
                f"0x{register.mask:08X}),"
            )
    return [*lines, "    )"]
