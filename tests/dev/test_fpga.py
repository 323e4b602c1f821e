# SPDX-License-Identifier: Apache-2.0
"""Boards, logs of the placer, and the page of `make fpga`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dev import marked_page, yosys
from dev.ecp5 import MappedModule
from dev.fpga import boards, flow, fpga_report
from dev.fpga.self_test import BlockRun, MicroGpt

LOG = """
Info:         TRELLIS_COMB:   73517/  83640    87%
Info: Max frequency for clock '$glbnet$clk': 31.25 MHz (PASS at 12.00 MHz)
Info: Max frequency for clock '$glbnet$clk': 40.50 MHz (FAIL at 48.00 MHz)
"""
REPORT = fpga_report.FpgaReport(
    board=boards.USUAL,
    block=BlockRun(0x1234, 0x1234, 1000, 5000),
    microgpts=(MicroGpt(16, 1200, 1000, 1100),),
    modules=(
        MappedModule("npu_board", 60_000, 80_000, 20_000, 68, 137),
        MappedModule("npu_top", 59_000, 79_000, 19_500, 68, 73),
        MappedModule("npu_memory", 4_000, 4_000, 2_000, 0, 99),
    ),
    placed=flow.Placed(73_517, 40.0, routed=True, seconds=10.0),
    path=("  1.00 ns  clk-to-q  a.Q",),
    bitstream=1_000_000,
)


def test_boards_are_of_chips_that_are_there() -> None:
    """By name; clock and serial port go together; another name is refused."""
    for name, board in boards.BOARDS.items():
        assert boards.named(name) is board
        assert abs(board.divisor * board.baud / (board.megahertz * 1e6) - 1) < 0.02
    with pytest.raises(boards.BoardError, match="given 'a16', allowed a4, a8: chips for a board"):
        boards.named("a16")


@pytest.mark.parametrize(
    ("used", "text"),
    [
        (boards.Device(83_641, 1, 1), "a4 does not fit: 83,641 LUT4, the device has 83,640"),
        (boards.Device(1, 157, 1), "a4 does not fit: 157 multipliers, the device has 156"),
        (boards.Device(1, 1, 209), "a4 does not fit: 209 block RAMs, the device has 208"),
    ],
)
def test_what_does_not_fit_is_refused(used: boards.Device, text: str) -> None:
    """With the first of what there is too little of."""
    with pytest.raises(boards.BoardError) as refused:
        boards.check_fits(boards.USUAL, used)
    assert str(refused.value) == text
    boards.check_fits(boards.USUAL, boards.DEVICE)


def test_figures_are_the_last_of_the_log() -> None:
    """The placer's estimate comes before the router's; a log without any is none."""
    assert flow.figures(LOG) == (73_517, 40.5)
    with pytest.raises(yosys.SynthesisError, match="has not come to its end"):
        flow.figures(LOG.split("Max")[0])


def test_a_failed_self_test_says_so() -> None:
    """And what was expected."""
    assert str(REPORT.block).startswith("self test passed: ")
    failed = replace(REPORT.block, checksum=0xABCD)
    assert str(failed).startswith("self test FAILED, expected 00001234: ")


def test_the_page_has_what_was_found() -> None:
    """Cells by module, clock, path, tokens a second; a chip that is not routed is called so."""
    text = fpga_report.page(fpga_report.PAGE.read_text(encoding="utf-8"), REPORT)
    assert "| npu_board | 60,000 | 20,000 | 68 | 137 |" in text
    assert "| memory, bridge and UART | 1,000 | 500 | 0 | 64 |" in text
    assert "| npu_memory | 4,000 | 2,000 | 0 | 99 |" in text
    assert "array 4 is routed: 40.0 MHz, 73,517 of 83,640 LUTs" in text
    assert "  1.00 ns  clk-to-q  a.Q\n" in text
    assert "| 1,000 | 33,300 | 40,000 | 36,400 |" in text
    assert "| 53,000 |" in text
    assert "The bitstream has 1,000,000 bytes." in text
    assert fpga_report.NO_BITSTREAM not in text
    assert "Its PLL makes 32 MHz, 8.00 MHz less than the" in text
    slow = replace(REPORT, placed=replace(REPORT.placed, megahertz=31.96))
    assert "Its PLL makes 32 MHz, 0.04 MHz more than the" in fpga_report.page(text, slow)
    placed = replace(REPORT, placed=replace(REPORT.placed, routed=False), path=(), bitstream=0)
    text = fpga_report.page(text, placed)
    assert "estimated and not yet routed: 40.0 MHz" in text
    assert "bitstream has" not in text
    assert fpga_report.NO_BITSTREAM in text
    with pytest.raises(ValueError, match="given parts"):
        fpga_report.page("", placed)
    assert marked_page.fill("", fpga_report.PAGE, {}) == ""


def test_the_device_of_the_pins_is_that_of_the_placer() -> None:
    """Every port of the top has a pin."""
    pins = boards.PINS.read_text(encoding="utf-8")
    for port in ("clk_12_i", "rst_ni", "uart_rx_i", "uart_tx_o", "led_no[0]", "led_no[1]"):
        assert pins.count(f'LOCATE COMP "{port}"') == 1
    assert f"{boards.CRYSTAL} MHZ" in pins
