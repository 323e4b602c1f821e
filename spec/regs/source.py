# SPDX-License-Identifier: Apache-2.0
"""Compiles the SystemRDL files and flattens them for the generators."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from peakrdl_regblock.udps import ALL_UDPS
from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, RegfileNode, RegNode

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Member:
    """A named value of a field."""

    name: str
    value: int
    text: str


@dataclass(frozen=True)
class Field:
    """Some bits of a register; `access` in words, `text` its description.

    `kept` says while what writes are ignored: "busy", or the field whose bit it is; "" for never.
    `encode` is the name of the enumeration of its values, in SystemRDL's spelling, and `members`
    its members; "" and none for a number.
    """

    name: str
    lsb: int
    width: int
    access: str
    reset: int | None
    text: str
    encode: str
    members: tuple[Member, ...]
    kept: str = ""


@dataclass(frozen=True)
class Start:
    """A member of what a program starts with: `group` is "image" or "machine".

    `set_name` is the register of SET that begins with it, "" for one that SET does not change.
    """

    group: str
    member: str
    order: int
    set_name: str = ""


@dataclass(frozen=True)
class Register:
    """A register at a byte offset of its window; `start` tells what a program takes from it.

    `noted` is whether only software uses it, `counter` its place in the memory of npu_perf.
    """

    name: str
    offset: int
    text: str
    fields: tuple[Field, ...]
    start: Start | None = None
    noted: bool = False
    counter: int | None = None

    @property
    def in_memory(self) -> bool:
        """Whether it lies in a memory of npu_start_values or npu_perf, not in flip-flops."""
        return self.noted or self.counter is not None or bool(self.start and self.start.set_name)

    @property
    def mask(self) -> int:
        """The bits that its fields have."""
        return sum(((1 << f.width) - 1) << f.lsb for f in self.fields)


@dataclass(frozen=True)
class Window:
    """One address map: `key` is its short name, `base` its place in the host's address space."""

    key: str
    module: str
    base: int
    title: str
    text: str
    registers: tuple[Register, ...]

    @property
    def enumerations(self) -> dict[str, tuple[Member, ...]]:
        """Members of the fields' enumerations, by name."""
        fields = (field for register in self.registers for field in register.fields)
        return {field.encode: field.members for field in fields if field.encode}


WINDOWS = (
    ("cmd", "npu_cmd_regs", 0x000),
    ("seq", "npu_seq_regs", 0x100),
    ("cop", "npu_cop_regs", 0x200),
    ("chip", "npu_chip_regs", 0x300),
)
WINDOW_BYTES = 0x100


def compile_map(module: str) -> AddrmapNode:
    """Return the elaborated address map of `<module>.rdl`."""
    compiler = RDLCompiler()
    for udp in ALL_UDPS:
        compiler.register_udp(udp, soft=False)
    compiler.compile_file(str(HERE / f"{module}.rdl"))
    return compiler.elaborate(top_def_name=module).top


def _access(node: FieldNode) -> str:
    if node.get_property("woclr"):
        return "read, write 1 to clear"
    if node.get_property("woset"):
        return "read, write 1 to set"
    if node.get_property("singlepulse") and not node.is_sw_readable:
        return "write 1, reads 0"
    if node.is_sw_readable and node.is_sw_writable:
        return "read, write"
    return "read" if node.is_sw_readable else "write"


def _kept(node: FieldNode) -> str:
    """Return what keeps a field from being written; a signal of the hardware is that it is busy."""
    lock = node.get_property("swwel")
    if isinstance(lock, FieldNode):
        return f"{lock.parent.inst_name}.{lock.inst_name}"
    return "busy" if lock else ""


def _field(node: FieldNode) -> Field:
    reset = node.get_property("reset")
    encode = node.get_property("encode")
    return Field(
        name=node.inst_name,
        lsb=node.low,
        width=node.width,
        access=_access(node),
        reset=reset if isinstance(reset, int) else None,
        text=node.get_property("desc") or "",
        encode=encode.type_name or "" if encode is not None else "",
        members=tuple(Member(m.name, m.value, m.rdl_desc or "") for m in encode or ()),
        kept=_kept(node),
    )


def _start(node: RegNode) -> Start | None:
    place = node.get_property("start", default=None)
    if place is None:
        return None
    group, _, member = place.partition(".")
    set_name = node.get_property("start_set", default="")
    return Start(group, member, node.get_property("start_order"), set_name)


def _register(node: RegNode, name: str, offset: int) -> Register:
    fields = tuple(_field(field) for field in node.fields())
    noted = all(f.is_sw_writable and not f.is_hw_readable for f in node.fields())
    counter = node.get_property("counter_place", default=None)
    if counter is not None and node.current_idx is not None:
        counter += node.current_idx[0]
    text = node.get_property("desc") or ""
    return Register(name, offset, text, fields, _start(node), noted, counter)


def without_memories(top: AddrmapNode, window: Window) -> AddrmapNode:
    """Return the map without the registers that lie in a memory; it is changed itself."""
    offsets = {register.offset for register in window.registers if register.in_memory}
    top.inst.children = [
        node.inst
        for node in top.children()
        if not (isinstance(node, RegNode) and node.raw_absolute_address in offsets)
    ]
    return top


def load(key: str, module: str, base: int) -> Window:
    """One window with arrays of registers written out. Raises ValueError if it is too large."""
    top = compile_map(module)
    registers = []
    for node in top.descendants(unroll=True):
        if not isinstance(node, RegNode):
            continue
        # A register of a file is named after both.
        group = f"{node.parent.inst_name}_" if isinstance(node.parent, RegfileNode) else ""
        index = "" if node.current_idx is None else str(node.current_idx[0])
        offset = node.absolute_address
        if offset + 4 > WINDOW_BYTES:
            raise ValueError(f"{module}.{node.inst_name} at 0x{offset:X} is outside its window")
        registers.append(_register(node, group + node.inst_name + index, offset))
    return Window(
        key=key,
        module=module,
        base=base,
        title=top.get_property("name") or module,
        text=top.get_property("desc") or "",
        registers=tuple(sorted(registers, key=lambda r: r.offset)),
    )


@cache
def load_all() -> tuple[Window, ...]:
    """All windows in address order."""
    return tuple(load(*window) for window in WINDOWS)
