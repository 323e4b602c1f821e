# SPDX-License-Identifier: Apache-2.0
"""Generates everything that comes from isa.toml: `python -m npu.isa.generate [--check]`.

Committed: npu/isa/generated.py, docs/reference/isa.md. Not committed: build/gen/npu_isa_pkg.sv and
build/gen/npu_mnemonics.txt, a waveform viewer's translation of opcode bytes to mnemonics.
"""

import argparse
import sys
from pathlib import Path

from npu.isa import emit_docs, emit_python, emit_sv, source

ROOT = Path(__file__).resolve().parents[2]


def outputs() -> tuple[dict[Path, str], dict[Path, str]]:
    """Return (committed, built) files and their texts."""
    isa = source.load()
    committed = {
        ROOT / "npu/isa/generated.py": emit_python.emit(isa),
        ROOT / "docs/reference/isa.md": emit_docs.emit(isa),
    }
    mnemonics = "".join(f"{op.number:02X} {op.name}\n" for op in isa.opcodes)
    built = {
        ROOT / "build/gen/npu_isa_pkg.sv": emit_sv.emit(isa),
        ROOT / "build/gen/npu_mnemonics.txt": mnemonics,
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
                f"{path.relative_to(ROOT)} is stale: run python -m npu.isa.generate",
                file=sys.stderr,
            )
        return 1 if old else 0
    for path, text in (committed | built).items():
        write_if_changed(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
