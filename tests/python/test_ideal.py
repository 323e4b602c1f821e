# SPDX-License-Identifier: Apache-2.0
"""The least times that benchmarks are compared with, against sums done by hand."""

import pytest

from npu.compiler import pieces
from tb.benchmarks import cases, ideal
from tb.benchmarks.ideal import Work


@pytest.mark.parametrize(
    ("work", "cycles", "bound"),
    [
        (Work(256, 0, 0), 1, "mac"),
        (Work(257, 0, 0), 2, "mac"),
        (Work(0, 17, 0), 2, "bus"),
        (Work(0, 160, 176), 11, "bus"),  # the directions run side by side
        (Work(2560, 160, 160), 10, "mac"),
        (Work(2560, 161, 0), 11, "bus"),
    ],
)
def test_larger_of_array_and_bus(work: Work, cycles: int, bound: str) -> None:
    """Both are rounded up; the busier direction of the bus counts."""
    assert (work.ideal_cycles, work.bound) == (cycles, bound)


@pytest.mark.parametrize(
    ("name", "cycles", "bound"),
    [
        ("gemm_sram_128", 8_192, "mac"),
        ("gemm_stream_m1_l40", 148_992, "bus"),
        ("gemm_stream_m1_l200", 148_992, "bus"),
        ("gemm_stream_m16", 37_248, "bus"),
        ("gemm_stream_m128", 294_912, "mac"),
        ("gemm_catch_up", 112, "mac"),
        ("block_s1", 3_400 + 16, "bus"),  # 16 cycles for the activation table
        ("block_s16", 3_520 + 16, "bus"),
        ("dma_4k", 64 * 256, "bus"),
        ("dma_256", 60 * 16, "bus"),
    ],
)
def test_benchmarks(name: str, cycles: int, bound: str) -> None:
    """The benchmarks' ideal times."""
    work = cases.CASES[name].work
    assert (work.ideal_cycles, work.bound) == (cycles, bound)


def test_block_agrees_with_its_stream() -> None:
    """What the shape says must be read is what the compiled stream says is necessary, and input."""
    rows = 5
    block = cases.compiled(rows)
    necessary = sum(part.necessary for part in pieces(block))
    work = ideal.block(rows, 64, 4, 256)
    assert work.read_bytes == necessary + block.input_bytes
    assert work.write_bytes == block.output_bytes


def test_wide_operands_count_twice() -> None:
    """A 16-bit operand takes two 8-bit multiplications per product."""
    assert ideal.multiply(3, 5, 7).macs == 105
    assert ideal.multiply(3, 5, 7, wide=True).macs == 210
