# SPDX-License-Identifier: Apache-2.0
"""The register maps."""

from pathlib import Path

import pytest

from spec.isa import ISA_VERSION
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    SeqReg,
    emit_counters,
    generate,
    source,
)
from spec.regs.generated import CHIP_ID_VALUE


def test_committed_files_are_current() -> None:
    """Committed generated files match their source."""
    assert generate.main(["--check"]) == 0


def test_check_notices_a_stale_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A committed file that differs makes --check fail."""
    stale = {path: text + "x" for path, text in generate.committed().items()}
    monkeypatch.setattr(generate, "committed", lambda: stale)
    assert generate.main(["--check"]) == 1


def test_places() -> None:
    """Offsets of the register maps."""
    assert (SEQ_BASE, CHIP_BASE) == (0x100, 0x300)
    assert (SeqReg.CTRL, SeqReg.STATUS, SeqReg.STREAM_LEN, SeqReg.BASE7) == (0, 4, 0x48, 0x6C)
    assert (ChipReg.IRQ_STATUS, ChipReg.CYCLES_LO, ChipReg.BUSY0) == (0x14, 0x20, 0x40)
    assert int(ChipReg.STALL5) == 0x6C


def test_identification_reads_as_letters() -> None:
    """ID holds TSRA in memory order."""
    assert CHIP_ID_VALUE.to_bytes(4, "little") == b"TSRA"
    assert 0 < ISA_VERSION < 256


def test_fields() -> None:
    """Fields are taken from and put into register values."""
    code = SEQ_FIELDS["STATUS_ERROR_CODE"]
    assert code.mask == 0xF00
    assert code.get(0x3502) == 5
    assert code.put(5) == 0x500
    assert CHIP_FIELDS["CONFIG0_SRAM_KIB"].get(256 << 16 | 16) == 256


def test_register_blocks(tmp_path: Path) -> None:
    """All register blocks are written; a second run leaves the files untouched."""
    generate.register_blocks(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "npu_chip_regs.sv",
        "npu_chip_regs_pkg.sv",
        "npu_cmd_regs.sv",
        "npu_cmd_regs_pkg.sv",
        "npu_cop_regs.sv",
        "npu_cop_regs_pkg.sv",
        "npu_counters_pkg.sv",
        "npu_desc_pkg.sv",
        "npu_seq_regs.sv",
        "npu_seq_regs_pkg.sv",
        "npu_start_pkg.sv",
    ]
    block = (tmp_path / "npu_seq_regs.sv").read_text(encoding="utf-8")
    assert "input wire rst_n" in block
    assert "[7:0] s_cpuif_addr" in block
    assert "if (decoded_wr_biten[i]) next_c[i-4] = decoded_wr_data[i];" in block
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*_regs.sv")]
    assert not any("& ~decoded_wr_biten" in text for text in texts), "a mask beside flip-flops"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    generate.register_blocks(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_counters_lie_in_a_memory() -> None:
    """Every counter of 32 bits has a place of its own; two at one place are refused."""
    windows = source.load_all()
    text = emit_counters.systemverilog(windows, "here")
    engines = [ChipReg(ChipReg.BUSY0 + 4 * place) for place in range(12)]
    others = (ChipReg.INSTRS, ChipReg.READ_BEATS, ChipReg.WRITE_BEATS, ChipReg.STREAM_BEATS)
    for place, register in enumerate((*engines, *others)):
        assert f"8'h{register:02X}: return '{{known: 1'b1, number: 4'd{place}}};" in text
    assert "localparam logic [3:0] CounterStall = 4'd6;" in text
    with pytest.raises(ValueError, match="32 registers have a counter_place, allowed one each"):
        emit_counters.systemverilog(windows * 2, "here")
