# SPDX-License-Identifier: Apache-2.0
"""Calls with arguments that make no sense: a ValueError that says what was given and what may be.

The entry points that a user of the packages calls: the compiler, its builder and its layouts, the
integer network, the instruction-level model, the float network and the calibration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.machine import ChipConfig, Machine, StartState
from npu.compiler import (
    CompileError,
    MissingTensorError,
    ProgramBuilder,
    StreamShare,
    StreamWriter,
    TensorRef,
    collect,
    compile_block,
)
from npu.compiler.stream import table_share
from spec.isa import Instruction, Opcode
from spec.isa.operands import Limits
from tests.python.golden.golden_support import random_model
from weights.calibrate import calibrate
from weights.limits import ModelError
from weights.model import Linear
from weights.reference import activation, forward
from weights.synthetic import random_checkpoint, shape_of

Wrong = Any
"""A value of the wrong type, which the types of the packages would refuse before it runs."""
MODEL = random_model(3, hidden=64, heads=4, ffn=64, layers=2)
X = decoder.embed(MODEL, [1, 2, 3])
CHIP = Limits()
FLOATS = random_checkpoint(
    shape_of("gpt2", hidden=8, layers=1, heads=2, ffn=16, vocab=20, context=4), 1
)


def refused(call: Callable[[], object], message: str) -> None:
    """Check the message of a ValueError, and that the next correct calls give what they did."""
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "layer", "rows", "message"),
    [
        (MODEL, -1, 4, r"layer -1: allowed are 0 to 1"),
        (MODEL, 2, 4, r"layer 2: allowed are 0 to 1"),
        (MODEL, "0", 4, r"layer: given '0', allowed int"),
        (MODEL, 0.0, 4, r"layer: given 0.0, allowed int"),
        (MODEL, True, 4, r"layer: given True, allowed int"),
        (MODEL, 0, 0, r"0 rows: allowed are 1 to 128"),
        (MODEL, 0, -5, r"-5 rows: allowed are 1 to 128"),
        (MODEL, 0, 129, r"129 rows: allowed are 1 to 128"),
        (MODEL, 0, 10**9, r"1000000000 rows: allowed are 1 to 128"),
        (MODEL, 0, 4.0, r"rows: given 4.0, allowed int"),
        (MODEL, 0, None, r"rows: given None, allowed int"),
        (MODEL, 0, X, r"rows: given array.*, allowed int"),
        ("gpt2", 0, 4, r"model: given str, allowed a QuantizedModel"),
        (FLOATS, 0, 4, r"model: given Checkpoint, allowed a QuantizedModel"),
        (None, 0, 4, r"model: given NoneType, allowed a QuantizedModel"),
    ],
)
def test_compile_block(model: Wrong, layer: Wrong, rows: Wrong, message: str) -> None:
    """Layers and rows that are not there, and things of another kind."""
    before = compile_block(MODEL, 0, 3)
    for fused in (True, False):
        with pytest.raises(CompileError, match=message.replace("array.*", "(?s:array.*)")):
            compile_block(model, layer, rows, fused=fused)
    assert compile_block(MODEL, 0, 3) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"array_dim": 5}, r"limits: array_dim: given 5, allowed \(4, 8, 16, 32\)"),
        ({"array_dim": 0}, r"limits: array_dim: given 0, allowed \(4, 8, 16, 32\)"),
        ({"array_dim": 64}, r"limits: array_dim: given 64, allowed \(4, 8, 16, 32\)"),
        ({"acc_rows": 0}, r"limits: acc_rows: given 0, allowed 2 and more"),
        ({"acc_rows": 1}, r"limits: acc_rows: given 1, allowed 2 and more"),
        ({"sram_bytes": 0}, r"limits: sram_bytes: given 0, allowed 16 and more"),
        ({"sram_bytes": -16}, r"limits: sram_bytes: given -16, allowed 16 and more"),
        ({"norm_max": 0}, r"limits: norm_max: given 0, allowed 1 and more"),
    ],
)
def test_chips_that_do_not_exist(changes: dict[str, Any], message: str) -> None:
    """Sizes that no chip has."""
    with pytest.raises(CompileError, match=message):
        compile_block(MODEL, 0, 1, limits=replace(CHIP, **changes))
    assert compile_block(MODEL, 0, 1, limits=replace(CHIP, acc_rows=2)).output_bytes == 128


@pytest.mark.parametrize(
    ("mnemonic", "switches", "operands", "message"),
    [
        ("NOPE", (), {}, r"NOPE: unknown instruction NOPE: allowed are NOP"),
        ("GELU", (), {"dst": 0}, r"GELU dst=0x0: GELU needs the operand src0"),
        ("GELU", ("fast",), {}, r"unknown operand fast: GELU allows dst="),
        ("GELU", (), {"dst": 0, "src0": 0, "M": 0, "N": 1}, r"M: 0: allowed are 1 to 61439"),
        ("GELU", (), {"dst": 8, "src0": 0, "M": 1, "N": 1}, r"dst: 0x8: allowed are multiples of"),
        ("GELU", (), {"dst": 0, "src0": 0, "M": 1.5, "N": 1}, r"M: allowed are integers"),
        ("GELU", (), {"dst": 1 << 20, "src0": 0, "M": 1, "N": 1}, r"0x100000: allowed are multip"),
        (
            "GELU",
            (),
            {"dst": 0x3FFF0, "src0": 0, "M": 2, "N": 9},
            r"SRAM_RANGE: dst covers 0x3FFF0",
        ),
        (
            "KV_APPEND",
            ("stage",),
            {"dst": 0, "src0": 0, "layer": 0, "N": 16, "K": 1, "heads": "0..0"},
            r"the staging tiles must be given",
        ),
        ("GELU", ("stream",), {"dst": 0, "src0": 0, "M": 1, "N": 1}, r"takes 256 bytes .* given 0"),
        (
            "GELU",
            (),
            {"dst": 0, "src0": 0, "M": 1, "N": 1, "share": StreamShare("t", 7, 0, 64)},
            r"takes 0 byt",
        ),
    ],
)
def test_builder(
    mnemonic: str, switches: tuple[str, ...], operands: dict[str, Any], message: str
) -> None:
    """What the chip refuses is refused when it is emitted, and leaves nothing in the program."""
    builder = ProgramBuilder(CHIP)
    builder.emit("NOP")
    with pytest.raises(CompileError, match=message):
        builder.emit(mnemonic, *switches, **operands)
    builder.emit("END")
    program, text = builder.program()
    assert program.instructions == [Instruction(Opcode.NOP), Instruction(Opcode.END)]
    assert (text, builder.shares) == ("NOP\nEND\n", [])


@pytest.mark.parametrize("data", [b"", b"x", bytes(63), bytes(65), bytes(100)])
def test_stream_pieces(data: bytes) -> None:
    """A share is one or more pieces of 64 bytes; a wrong one leaves the stream as it was."""
    stream = StreamWriter()
    stream.append("first", 7, bytes(64))
    refused(lambda: stream.append("t", 7, data), rf"share t: given {len(data)} bytes, allowed mult")
    assert (len(stream.image()), len(stream.shares)) == (64, 1)


@pytest.mark.parametrize(
    "table", [np.zeros(255, np.int8), np.zeros((256, 1), np.int8), np.zeros(256, np.uint8)]
)
def test_tables(table: npt.NDArray[Any]) -> None:
    """A table has an int8 entry per bit pattern."""
    refused(lambda: table_share(table), r"table: given .*, allowed \(256,\) int8")


def test_tensors_that_nobody_wrote() -> None:
    """A log without the writes of an instruction is named, not filled with zeros."""
    ref = TensorRef("q", 3, 7, 0x40, (2, 16), "int8", 16)
    with pytest.raises(MissingTensorError, match=r"layer 3 q: instruction 7 did not write .*0x40"):
        collect([ref], [], 1024)


@pytest.mark.parametrize(
    ("layer", "x", "message"),
    [
        (-1, X, r"block: layer: given -1, allowed 0..1"),
        (2, X, r"block: layer: given 2, allowed 0..1"),
        ("0", X, r"block: layer: given '0', allowed 0..1"),
        (True, X, r"block: layer: given True, allowed 0..1"),
        (0, X.astype(np.int32), r"block: x: given \(3, 64\) int32, allowed \(1..128, 64\) int16"),
        (0, X.astype(np.float32), r"block: x: given \(3, 64\) float32, allowed"),
        (0, X[:, :63], r"block: x: given \(3, 63\) int16, allowed \(1..128, 64\) int16"),
        (0, X[0], r"block: x: given \(64,\) int16, allowed"),
        (0, X[None], r"block: x: given \(1, 3, 64\) int16, allowed"),
        (0, X[:0], r"block: x: given 0 rows, allowed \(1..128, 64\) int16"),
        (0, np.zeros((129, 64), np.int16), r"block: x: given 129 rows, allowed \(1..128, 64\)"),
        (0, X.tolist(), r"block: x: given None list, allowed"),
        (0, None, r"block: x: given None NoneType, allowed"),
    ],
)
def test_golden_block(layer: Wrong, x: Wrong, message: str) -> None:
    """Layers that are not there; residual streams of another type or shape."""
    refused(lambda: decoder.block(MODEL, layer, x), message)
    assert decoder.block(MODEL, 1, X).resid2.shape == X.shape


@pytest.mark.parametrize(
    ("ids", "pos", "message"),
    [
        ([], 0, r"embed: given ids of shape \(0,\) at position 0, allowed 1 or more ids"),
        ([256], 0, r"embed: given ids 256..256, allowed 0..255"),
        ([3, -1], 0, r"embed: given ids -1..3, allowed 0..255"),
        ([1.0], 0, r"embed: given ids of dtype float64, allowed integers"),
        ([1.7], 0, r"embed: given ids of dtype float64, allowed integers"),
        (["a"], 0, r"embed: given ids of dtype <U1, allowed integers"),
        ("text", 0, r"embed: given ids of shape \(\) at position 0"),
        ([True], 0, r"embed: given ids of dtype bool, allowed integers"),
        ([10**30], 0, r"embed: given ids of dtype object, allowed integers"),
        ([[1, 2]], 0, r"embed: given ids of shape \(1, 2\) at position 0"),
        ([[1], [1, 2]], 0, r"embed: given ids of shape \(0, 0\) at position 0"),
        (
            [1, 2],
            127,
            r"embed: context full: given 2 ids at position 127, allowed at most 1 of 128",
        ),
        ([1], -1, r"embed: given ids of shape \(1,\) at position -1"),
        ([1], 1.0, r"embed: given ids of shape \(1,\) at position 1.0"),
        ([1], 128, r"embed: given ids of shape \(1,\) at position 128, .* positions 0..127"),
        (range(129), 0, r"embed: context full: given 129 ids at position 0, .* most 128 of 128"),
    ],
)
def test_golden_tokens(ids: Wrong, pos: Wrong, message: str) -> None:
    """Ids that are no tokens of the model, and positions outside its context."""
    refused(lambda: decoder.embed(MODEL, ids, pos), message)
    if pos == 0:
        refused(lambda: decoder.forward(MODEL, ids), message)
    assert decoder.embed(MODEL, [0]).shape == (1, 64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ucode_base": 8}, r"StartState.ucode_base: given 0x8, allowed multiples of 16 < 2\^32"),
        ({"ucode_base": 1 << 32}, r"StartState.ucode_base: given 0x100000000, allowed multiples"),
        ({"stream_base": 32}, r"StartState.stream_base: given 0x20, allowed multiples of 64"),
        ({"stream_len": 100}, r"StartState.stream_len: given 0x64, allowed multiples of 64"),
        ({"stream_len": -64}, r"StartState.stream_len: given -0x40, allowed multiples of 64"),
        ({"ucode_len": -1}, r"StartState.ucode_len: given -0x1, allowed 0 to 2\^32-1"),
        ({"pos": -1}, r"StartState.pos: given -0x1, allowed 0 to 2\^32-1"),
        ({"pos": 1 << 32}, r"StartState.pos: given 0x100000000, allowed 0 to 2\^32-1"),
        ({"bases": (0,)}, r"StartState.bases: given 1 values, allowed 8"),
        ({"bases": (0,) * 7 + (1 << 32,)}, r"StartState.bases\[7\]: given 0x100000000, allowed 0"),
        ({"bases": (-16,) + (0,) * 7}, r"StartState.bases\[0\]: given -0x10, allowed 0 to"),
    ],
)
def test_start_states(changes: dict[str, Any], message: str) -> None:
    """What the host's registers cannot hold."""
    refused(lambda: StartState(**{"ucode_base": 0, "ucode_len": 1, **changes}), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"array_dim": 5}, r"ChipConfig.array_dim: given 5, allowed \(4, 8, 16, 32\)"),
        ({"sram_bytes": 0}, r"ChipConfig.sram_bytes: given 0, allowed multiples of 16 above 0"),
        ({"sram_bytes": 100}, r"ChipConfig.sram_bytes: given 100, allowed multiples of 16"),
        ({"acc_rows": 0}, r"ChipConfig.acc_rows: given 0, allowed multiples of 2 above 0"),
        ({"acc_rows": 7}, r"ChipConfig.acc_rows: given 7, allowed multiples of 2"),
        ({"norm_max": -1}, r"ChipConfig.norm_max: given -1, allowed multiples of 1 above 0"),
    ],
)
def test_chip_configurations(changes: dict[str, Any], message: str) -> None:
    """Sizes that no chip has."""
    refused(lambda: ChipConfig(**changes), message)


def test_machine_arrays() -> None:
    """Memory and SRAM are contiguous bytes, whole words, the SRAM of the configured size."""
    config, good = ChipConfig(sram_bytes=1024), np.zeros(1024, np.uint8)

    def machine(memory: Wrong, sram: Wrong) -> Machine:
        return Machine(config, memory, sram)

    for bad in (
        np.zeros(1023, np.uint8),
        np.zeros(1024, np.int8),
        np.zeros((2, 512), np.uint8),
        np.zeros(2048, np.uint8)[::2],
    ):
        refused(partial(machine, bad, good), r"Machine.memory: given .*, allowed contiguous uint8")
        refused(partial(machine, good, bad), r"Machine.sram: given .*, allowed .* 1024 bytes")
    refused(partial(machine, good, np.zeros(2048, np.uint8)), r"Machine.sram: .* 1024 bytes")
    assert machine(good, good.copy()).config is config


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.zeros((1, 5), np.int64), r"tokens: given 5 positions, allowed 1..4"),
        (np.zeros((1, 0), np.int64), r"tokens: given shape \(1, 0\), allowed \(B, T\), not empty"),
        (np.zeros((0, 4), np.int64), r"tokens: given shape \(0, 4\), allowed \(B, T\), not empty"),
        (np.zeros(4, np.int64), r"tokens: given shape \(4,\), allowed \(B, T\)"),
        (np.zeros((1, 4), np.float32), r"tokens: given float32, allowed an array of integers"),
        (np.zeros((1, 4), np.bool_), r"tokens: given bool, allowed an array of integers"),
        ([[1, 2]], r"tokens: given list, allowed an array of integers"),
        (np.full((1, 4), 20), r"tokens: given ids 20..20, allowed 0..19"),
        (np.full((1, 4), -1), r"tokens: given ids -1..-1, allowed 0..19"),
    ],
)
def test_float_network(tokens: Wrong, message: str) -> None:
    """Rows of tokens that the model does not take, for the forward pass and the calibration."""
    refused(lambda: forward(FLOATS, tokens), rf"forward: {message}")
    refused(lambda: calibrate(FLOATS, tokens), rf"calibrate: {message}")


def test_checkpoints_made_in_memory() -> None:
    """A float model with tensors of another type, or of impossible dimensions, cannot be made."""
    wide: Wrong = {name: tensor.astype(np.float64) for name, tensor in FLOATS.tensors.items()}
    refused(lambda: replace(FLOATS, tensors=wide), r"'embed': given dtype float64, allowed float32")
    fewer: Wrong = dict(list(FLOATS.tensors.items())[1:])
    refused(lambda: replace(FLOATS, tensors=fewer), r"'embed' is missing \(1 of \d+ are\)")
    refused(lambda: shape_of("llama", heads=3, kv_heads=2), r"heads: given 3, allowed a multiple")
    refused(lambda: shape_of("llama", head_dim=5), r"head_dim: given 5, allowed an even number")


def test_activations() -> None:
    """An activation has the name of a config."""
    refused(lambda: activation("mish", np.zeros(1)), r"activation: given 'mish', allowed \['gelu'")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weight", [[1]], r"Linear.weight: given list, allowed numpy.ndarray"),
        ("weight", np.zeros((2, 3), np.int16), r"Linear.weight: given dtype int16, allowed int8"),
        (
            "weight",
            np.full((2, 3), -128, np.int8),
            r"given -128 at index \(0, 0\), allowed -127..1",
        ),
        ("bias", np.zeros(4, np.int32), r"Linear.bias: given shape \(4,\), allowed \(3\)"),
        (
            "mult",
            np.zeros(3, np.uint16),
            r"Linear.mult: given 0 at index \(0,\), allowed 16384..32",
        ),
        (
            "shift",
            np.full(3, 64, np.uint8),
            r"Linear.shift: given 64 at index \(0,\), allowed 0..63",
        ),
        ("bias", np.full(3, -(1 << 31), np.int32), r"accumulator bound .* is 2147483648, allowed"),
    ],
)
def test_integer_layers(name: str, value: Wrong, message: str) -> None:
    """Parts of an integer model of another type, shape or range."""
    good: dict[str, Any] = {
        "weight": np.zeros((2, 3), np.int8),
        "bias": np.zeros(3, np.int32),
        "mult": np.full(3, 1 << 14, np.uint16),
        "shift": np.zeros(3, np.uint8),
    }
    with pytest.raises(ModelError, match=message):
        Linear(**{**good, name: value})
    assert Linear(**good).outputs == 3
