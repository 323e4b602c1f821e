# SPDX-License-Identifier: Apache-2.0
"""Generates from register maps and descriptors: `python -m spec.regs.generate [--check]`.

Committed: spec/regs/generated.py, firmware/include/npu_regs.h and npu_descriptors.h,
docs/reference/registers.md, the tables of docs/reference/command-port.md.
Not committed: build/gen/regs/<map>_pkg.sv and build/gen/regs/<map>.sv, written by PeakRDL-regblock,
npu_start_pkg.sv, what a program starts with, npu_counters_pkg.sv, where counters lie, and
npu_desc_pkg.sv, what lies in memory. A block lacks the registers that npu_start_values or npu_perf
holds in a memory.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from peakrdl_regblock import RegblockExporter
from peakrdl_regblock.cpuif.passthrough import PassthroughCpuif

from spec.regs import descriptors, emit, emit_counters, emit_descriptors, emit_start, source

ROOT = Path(__file__).resolve().parents[2]
WINDOW_ADDRESS_BITS = 8
RETIMED = {"npu_cmd_regs"}
"""Register blocks that answer a read a cycle later: the choice of a register is too deep there."""


def committed() -> dict[Path, str]:
    """Return the committed files and their texts."""
    windows, found = source.load_all(), descriptors.load()
    page = ROOT / "docs/reference/command-port.md"
    return {
        ROOT / "spec/regs/generated.py": emit.python(windows, found),
        ROOT / "firmware/include/npu_descriptors.h": emit_descriptors.c_header(found),
        page: emit_descriptors.filled(page.read_text(encoding="utf-8"), found),
        ROOT / "firmware/include/npu_regs.h": emit.c_header(windows),
        ROOT / "docs/reference/registers.md": emit.markdown(windows),
    }


def register_blocks(folder: Path) -> None:
    """Write the SystemVerilog register blocks into `folder`; unchanged files stay untouched."""
    windows = source.load_all()
    for window in windows:
        module = window.module
        with tempfile.TemporaryDirectory() as scratch:
            RegblockExporter().export(
                source.without_memories(source.compile_map(module), window),
                scratch,
                cpuif_cls=PassthroughCpuif,
                address_width=WINDOW_ADDRESS_BITS,
                reuse_hwif_typedefs=False,
                default_reset_activelow=True,
                retime_read_fanin=module in RETIMED,
            )
            for path in sorted(Path(scratch).glob("*.sv")):
                text = enabled(packed(path.read_text(encoding="utf-8")))
                write_if_changed(folder / path.name, text)
    texts = {
        "npu_counters_pkg": emit_counters.systemverilog(windows, emit.ORIGIN),
        "npu_start_pkg": emit_start.systemverilog(windows, emit.ORIGIN),
        "npu_desc_pkg": emit_descriptors.systemverilog(descriptors.load(), windows[0]),
    }
    for name, text in texts.items():
        write_if_changed(folder / f"{name}.sv", text)


def packed(text: str) -> str:
    """Return generated SystemVerilog with every struct packed and every member array packed.

    PeakRDL-regblock leaves them unpacked, which Verilator turns into a C++ class for each struct;
    of packed ones it makes plain numbers, in a third of the compiler's time. The shift register of
    a read that comes a cycle later is one bit, which linters do not like to see shifted.
    """
    text = text.replace("(cpuif_req_stall_sr >> 'd1)", "'0")
    text = re.sub(r"\bstruct \{", "struct packed {", text)
    return re.sub(r"^( +\w+) (\w+)\[(\d+)\];$", _packed_array, text, flags=re.MULTILINE)


def enabled(text: str) -> str:
    """Return generated SystemVerilog in which bits that are not written keep their value.

    PeakRDL-regblock gives them their old value by a mask, a gate beside every flip-flop; as it is
    written here the mask becomes the flip-flops' enable. `next_c` has the old value before.
    """
    return re.sub(
        r"next_c = \([\w.\[\]]+ & ~decoded_wr_biten\[(\d+):(\d+)\]\)"
        r" \| \(decoded_wr_data\[\1:\2\] & decoded_wr_biten\[\1:\2\]\);",
        _enabled_bits,
        text,
    )


def _enabled_bits(write: re.Match[str]) -> str:
    high, low = map(int, write.groups())
    return (
        f"for (int unsigned i = {low}; i <= {high}; i++)\n"
        f"                if (decoded_wr_biten[i]) next_c[i-{low}] = decoded_wr_data[i];"
    )


def _packed_array(member: re.Match[str]) -> str:
    kind, name, size = member.groups()
    return f"{kind} [{int(size) - 1}:0] {name};"


def write_if_changed(path: Path, text: str) -> None:
    """Write `text` unless the file already holds it, so that builds see no new time stamp."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Write the files; with --check only compares the committed ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a committed file is stale")
    args = parser.parse_args(argv)
    files = committed()
    if args.check:
        old = [p for p, t in files.items() if not p.exists() or p.read_text("utf-8") != t]
        for path in old:
            print(
                f"{path.relative_to(ROOT)} is stale: run python -m spec.regs.generate",
                file=sys.stderr,
            )
        return 1 if old else 0
    for path, text in files.items():
        write_if_changed(path, text)
    register_blocks(ROOT / "build/gen/regs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
