# SPDX-License-Identifier: Apache-2.0
"""The least times that benchmarks are compared with, against sums done by hand."""

from dataclasses import replace

import pytest

from npu.compiler import Traffic, compile_model, ideal, pieces, traffic
from npu.compiler.ideal import LeastWork
from tb.benchmarks import catalogue, measured_models, model_benchmarks


@pytest.mark.parametrize(
    ("work", "cycles", "bound"),
    [
        (LeastWork(256, 0, 0), 1, "mac"),
        (LeastWork(257, 0, 0), 2, "mac"),
        (LeastWork(0, 17, 0), 2, "bus"),
        (LeastWork(0, 160, 176), 11, "bus"),  # the directions run side by side
        (LeastWork(2560, 160, 160), 10, "mac"),
        (LeastWork(2560, 161, 0), 11, "bus"),
        (LeastWork(2560, 160, 0, array_dim=4), 160, "mac"),
    ],
)
def test_larger_of_array_and_bus(work: LeastWork, cycles: int, bound: str) -> None:
    """Both are rounded up; the busier direction of the bus counts."""
    assert (work.ideal_cycles, work.bound) == (cycles, bound)


def test_works_of_two_arrays_have_no_sum() -> None:
    """The cycles of neither would be those of the sum."""
    with pytest.raises(ValueError, match="arrays of 16 and 4"):
        LeastWork(256) + LeastWork(256, array_dim=4)


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
        ("tiny_decode_gpt2_p64", (4 * 54_528 + 256 + 18_432 + 256) // 16, "bus"),
        ("tiny_decode_llama_p64", (4 * 41_728 + 256 + 18_432 + 128 + 32) // 16, "bus"),
        (
            "small_decode_100",
            (12 * (7_139_584 + 153_600) + 3_072 + 38_999_432 + 3_072) // 16 + 1,
            "bus",
        ),
        (
            "batch_small_100",
            (12 * (7_139_584 + 16 * 153_600) + 3_072 + 38_999_432 + 16 * (3_072 + 4)) // 16 + 1,
            "bus",
        ),
        (
            "verify_small_8",
            (12 * (7_139_584 + 153_600) + 3_072 + 38_999_432 + 8 * (3_072 + 4)) // 16 + 1,
            "bus",
        ),
        ("small_prefill_128", (128 * 7_077_888 + 2 * 768 * 128 * 129 // 2) // 256, "mac"),
        ("prefill_512", (512 * 786_432 + 2 * 256 * 512 * 513 // 2) // 256, "mac"),
        ("block_s128", (128 * 49_152 + 2 * 64 * 128 * 129 // 2) // 256, "mac"),
    ],
)
def test_benchmarks(name: str, cycles: int, bound: str) -> None:
    """The benchmarks' ideal times."""
    work = catalogue.CASES[name].work
    assert (work.ideal_cycles, work.bound) == (cycles, bound)


def test_block_agrees_with_its_stream() -> None:
    """What the shape says must be read is what the compiled stream says is necessary, and input."""
    rows = 5
    block = catalogue.compiled(rows)
    necessary = sum(part.necessary for part in pieces(block))
    work = ideal.block(rows, 64, 4, 256)
    assert work.read_bytes == necessary + block.input_bytes
    assert work.write_bytes == block.output_bytes


@pytest.mark.parametrize("family", model_benchmarks.FAMILIES)
def test_models_agree_with_their_programs(family: str) -> None:
    """The bytes that follow from a shape are those that the compiler accounts for."""
    compiled, shape = (
        compile_model(measured_models.tiny(family)),
        measured_models.tiny_shape(family),
    )
    in_memory = compiled.cache.in_memory
    for pos in model_benchmarks.POSITIONS:
        work = ideal.forward(shape, 1, pos, in_memory=in_memory)
        assert Traffic(work.read_bytes, 4) == traffic(compiled, compiled.decode(), pos)
    work = ideal.forward(shape, measured_models.PROMPT, 0, in_memory=in_memory)
    assert Traffic(work.read_bytes, 4) == traffic(
        compiled, compiled.prefill(measured_models.PROMPT)
    )


def test_sizes_of_a_decode_step_in_memory() -> None:
    """A cache in memory is read up to the position, and written once."""
    shape = measured_models.small_shape()
    at, later = (ideal.forward(shape, 1, pos, in_memory=True) for pos in (100, 101))
    assert later.read_bytes - at.read_bytes == 12 * 2 * 768
    assert at.write_bytes == later.write_bytes == 12 * 2 * 768 + 4


def test_visible_keys() -> None:
    """A row sees itself and what is before it, as far as the window reaches."""
    assert ideal.visible_keys(4, 0) == 1 + 2 + 3 + 4
    assert ideal.visible_keys(2, 5) == 6 + 7
    assert ideal.visible_keys(4, 0, window=3) == 1 + 2 + 3 + 3
    assert ideal.visible_keys(1, 100, window=32) == 32
    shape = measured_models.tiny_shape("mistral")  # 64 wide, a window of 32
    assert ideal.attention(shape, 2, 30).macs == 2 * 64 * (31 + 32)


def test_counted_multiplications() -> None:
    """The chip counts 16-bit numerators twice and keys from a tile boundary on."""
    shape = measured_models.tiny_shape("mistral")  # a window of 32
    assert model_benchmarks.attention_macs(shape, 1, 64) == 4 * 3 * 64 * (65 - 32)
    assert model_benchmarks.counted(shape, 1, 64) == 4 * (36_864 + 3 * 64 * 33) + 64 * 256
    assert catalogue.CASES["block_s16"].counted == 16 * 49_152 + 3 * 64 * 16 * 16


def test_wide_operands_count_twice() -> None:
    """A 16-bit operand takes two 8-bit multiplications per product."""
    assert ideal.multiply(3, 5, 7).macs == 105
    assert ideal.multiply(3, 5, 7, wide=True).macs == 210


def test_a_batch_of_one_is_a_step() -> None:
    """But for its list of one token; of 16 the weights count once, and all else 16 times."""
    shape = measured_models.small_shape()
    step = ideal.forward(shape, 1, 100, in_memory=True, logits=True)
    one, sixteen = ideal.batch(shape, [100]), ideal.batch(shape, [100] * 16)
    assert one == replace(step, read_bytes=step.read_bytes + 4)
    assert sixteen.macs == 16 * one.macs
    assert sixteen.write_bytes == 16 * one.write_bytes
    cached = shape.layers * 2 * shape.hidden * 100
    own = 4 + ideal.looked_up(shape) + cached
    assert sixteen.read_bytes - one.read_bytes == 15 * own


def test_works_in_turn_do_not_overlap() -> None:
    """The array rests in one of them and the bus in the other."""
    works = [ideal.multiply(16, 16, 160), ideal.transfer(1600)]
    both = ideal.in_turn(works)
    assert (both.ideal_cycles, both.bound) == (260, "turns")
    assert sum(works, LeastWork()).ideal_cycles == 160
    assert LeastWork().bound == "mac"
