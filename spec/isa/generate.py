# SPDX-License-Identifier: Apache-2.0
"""Generates what isa.toml and coprocessor.toml describe: `python -m spec.isa.generate [--check]`.

Committed: Python (generated.py, cop_generated.py), docs/reference/isa.md and coprocessor.md, the C
headers firmware/include/npu.h and npu_fp.h. Not committed, in build/gen: SystemVerilog and a
waveform viewer's translations of opcodes to mnemonics.
"""

import argparse
import sys
from pathlib import Path

from spec.isa import (
    cop_source,
    emit_cop,
    emit_cop_c,
    emit_cop_docs,
    emit_cop_tables,
    emit_docs,
    emit_python,
    emit_sv,
    source,
)

ROOT = Path(__file__).resolve().parents[2]


def outputs() -> tuple[dict[Path, str], dict[Path, str]]:
    """Return (committed, built) files and their texts."""
    isa, cop = source.load(), cop_source.load()
    committed = {
        ROOT / "spec/isa/generated.py": emit_python.emit(isa),
        ROOT / "spec/isa/cop_generated.py": emit_cop.python(cop),
        ROOT / "docs/reference/isa.md": emit_docs.emit(isa),
        ROOT / "docs/reference/coprocessor.md": emit_cop_docs.emit(cop),
        ROOT / "firmware/include/npu.h": emit_cop_c.header(cop, "INT"),
        ROOT / "firmware/include/npu_fp.h": emit_cop_c.header(cop, "FLOAT"),
    }
    mnemonics = "".join(f"{op.number:02X} {op.name}\n" for op in isa.opcodes)
    built = {
        ROOT / "build/gen/npu_isa_pkg.sv": emit_sv.emit(isa),
        ROOT / "build/gen/npu_mnemonics.txt": mnemonics,
        ROOT / "build/gen/npu_cop_isa_pkg.sv": emit_cop.systemverilog(cop),
        ROOT / "build/gen/npu_cop_tables_pkg.sv": emit_cop_tables.emit(),
        ROOT / "build/gen/npu_cop_tables.h": emit_cop_tables.emit_c(),
        ROOT / "build/gen/npu_cop_mnemonics.txt": emit_cop.mnemonics(cop),
    }
    return committed, built


def write_if_changed(path: Path, text: str) -> None:
    """Write `text` unless the file already holds it, so that builds see no new time stamp."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def stale(files: dict[Path, str]) -> list[Path]:
    """Return the files whose contents differ from what would be generated."""
    return [p for p, t in files.items() if not p.exists() or p.read_text(encoding="utf-8") != t]


def main(argv: list[str] | None = None) -> int:
    """Write the files; with --check only compares the committed ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a committed file is stale")
    args = parser.parse_args(argv)
    committed, built = outputs()
    if args.check:
        old = stale(committed)
        for path in old:
            print(
                f"{path.relative_to(ROOT)} is stale: run python -m spec.isa.generate",
                file=sys.stderr,
            )
        return 1 if old else 0
    for path, text in (committed | built).items():
        write_if_changed(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
