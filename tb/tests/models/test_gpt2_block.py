# SPDX-License-Identifier: Apache-2.0
"""The main job: every block of a Hugging Face GPT-2 on the chip, bit for bit.

The checkpoint is quantised, each block compiled, packed with its parameter stream, and run on
that layer's true residual input at several sequence lengths. Every tensor, fused away or
overwritten ones included, is compared with the plain integer network, and every SRAM write and the
whole memory and SRAM with the instruction-level model. Tolerance is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from golden import decoder
from golden.contribution import check_block
from npu.compiler import CompiledBlock, compile_block, unpack
from spec.isa.instruction import decode_image
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, Bench, Execution
from tb.bench.host import memory_words
from tb.bench.scoreboard import Count, MismatchError, RunMismatchError, count_bytes
from tb.models import model_report
from tb.models.block_tensors import compare_tensor, gather, locator
from tb.models.sample_model import CHECKPOINT, TEXT
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint

TAGS = ("models",)

LENGTHS = (1, 5, 16, 128)
CYCLES_PER_ROW = 4_000
"""Generous bound on the cycles of a block, per row, on an array of 16."""


def _expected(trace: decoder.BlockTrace) -> dict[str, npt.NDArray[Any]]:
    """Return the network's tensors under the names of the tensor map (heads apart)."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, value in trace.tensors().items():
        if name in ("scores", "numer", "sums"):
            tensors.update({f"{name}_h{head}": part for head, part in enumerate(value)})
        else:
            tensors[name] = value
    return tensors


async def _run_block(
    bench: Bench, block: CompiledBlock, x: npt.NDArray[np.int16], rows: int
) -> Execution:
    file = unpack(block.packed(), edge=bench.limits.edge)
    program = decode_image(file.sections["program"])
    bench.memory.stage(INPUT + block.input_offset, x)
    start = bench.load(program, file.stream)
    return await bench.run(
        program,
        start,
        locate=locator(block.tensors),
        limit=CYCLES_PER_ROW * (rows + 16) * bench.slower,
    )


@dataclass
class _Differences:
    """What differs, over all programs: the test goes on and fails at its end."""

    first: MismatchError | None = None

    def add(self, error: MismatchError) -> None:
        """Keep the first difference."""
        self.first = self.first or error


def _compare(
    bench: Bench,
    block: CompiledBlock,
    execution: Execution,
    layer: int,
    expected: dict[str, npt.NDArray[Any]],
    differences: _Differences,
) -> tuple[Count, set[str]]:
    """Compare all tensors of one run with the network; return the bytes and their names."""
    program = block.program.instructions
    writers = {ref.name: ref.instr for ref in block.tensors} | {"output": len(program) - 2}
    actual = gather(block.tensors, execution.writes, bench.config.sram_bytes)
    names = set(actual)
    out = expected["resid2"]
    actual["output"] = bench.memory.array(INPUT + block.output_offset, out.shape, out.dtype)
    count = Count()
    for name, tensor in actual.items():
        wanted = out if name == "output" else expected[name]
        if name.startswith("scores"):  # of what a row looks at
            wanted, tensor = np.tril(wanted), np.tril(tensor)
        count += count_bytes(wanted, tensor)
        try:
            compare_tensor(name, layer, wanted, tensor, writers[name], program)
        except MismatchError as error:
            differences.add(error)
    return count, names


async def _one(
    bench: Bench,
    model: QuantizedModel,
    layer: int,
    x: npt.NDArray[np.int16],
    fused: bool,
    differences: _Differences,
) -> tuple[model_report.Line, set[str]]:
    """Run one block in one form on one input and compare everything."""
    rows = x.shape[0]
    block = compile_block(model, layer, rows, fused=fused, limits=bench.limits)
    try:
        execution = await _run_block(bench, block, x, rows)
    except RunMismatchError as error:
        differences.add(error)
        assert isinstance(error.execution, Execution)
        execution = error.execution
    assert execution.finish.error is None, str(differences.first or execution.finish.error)
    woken = execution.finish.waited.entries
    assert woken <= 2, f"Python woke {woken} times while the chip ran"
    expected = _expected(decoder.block(model, layer, x))
    tensors, names = _compare(bench, block, execution, layer, expected, differences)
    assert not np.array_equal(expected["resid2"], x), f"layer {layer} changes nothing"
    line = model_report.Line.of(
        f"S={rows} {'fused' if fused else 'unfused'}",
        len(block.program.instructions),
        execution.compared,
        tensors,
        execution.finish.counters,
        (len(block.stream) + block.input_bytes, block.output_bytes),
        execution.finish.waited.seconds,
    )
    return line, names


@cocotb.test
async def test_gpt2_block(dut: Dut) -> None:
    """Every layer of gpt2-tiny at sequence lengths 1, 5, 16 and 128, fused and unfused."""
    model = quantize_checkpoint(str(CHECKPOINT))
    bench = await Bench.start(dut)
    lines: list[model_report.Line] = []
    differences = _Differences()
    for rows in LENGTHS:
        whole = decoder.forward_trace(model, list(TEXT.encode()[:rows]))
        inputs, every = whole.residuals, set(whole.blocks[0].tensors())
        seen: set[str] = set()
        for fused in (True, False):
            group: list[model_report.Line] = []
            for layer in range(model.shape.layers):
                findings = check_block(model, layer, inputs[layer]) if fused else []
                assert not findings, f"layer {layer}, {rows} rows: {'; '.join(map(str, findings))}"
                line, names = await _one(bench, model, layer, inputs[layer], fused, differences)
                group.append(line)
                seen |= {name.split("_h")[0] for name in names}
            lines.append(model_report.total(group[0].name, group))
        assert seen == every, f"{rows} rows: not compared: {sorted(every - seen)}"
    lines.append(model_report.total("all", lines))
    shape = model.shape
    title = (
        f"GPT-2 block: hidden {shape.hidden}, {shape.layers} layers, {shape.heads} heads of "
        f"{shape.head_dim}, FFN {shape.ffn}; {memory_words()}"
    )
    model_report.save(bench.run_dir, model_report.render(title, lines, bench.config.array_dim**2))
    if differences.first is not None:
        raise differences.first


@cocotb.test
async def test_gpt2_block_token(dut: Dut) -> None:
    """The first layer of gpt2-tiny on one token, fused: the shortest of its kind."""
    model = quantize_checkpoint(str(CHECKPOINT))
    bench = await Bench.start(dut)
    inputs = decoder.forward_trace(model, list(TEXT.encode()[:1])).residuals
    differences = _Differences()
    await _one(bench, model, 0, inputs[0], True, differences)
    if differences.first is not None:
        raise differences.first
