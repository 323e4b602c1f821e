# SPDX-License-Identifier: Apache-2.0
"""A compiled model on the instruction-level model, with memory and SRAM that outlive a program."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import decoder
from golden.machine import ChipConfig, Machine, RunResult, StartState
from npu.asm import assemble
from npu.compiler import CompiledModel, CompiledProgram, TensorRef, collect
from spec.isa import Instruction
from spec.isa.instruction import encode_image
from spec.isa.operands import up
from weights.model import QuantizedModel

UCODE, IDS, TOKENS_OUT, LOGITS_OUT = 0x0, 0x100000, 0x102000, 0x110000
FREE = 0x180000


@dataclass
class ModelChip:
    """A chip with a compiled model in its memory; `run` executes one program after the other.

    A cache in memory is there for each of a number of sequences, one behind the other.
    """

    model: CompiledModel
    sequences: int = 1
    memory: npt.NDArray[np.uint8] = field(init=False)
    sram: npt.NDArray[np.uint8] = field(init=False)
    kv_base: int = field(init=False)
    stream_base: int = field(init=False)
    bases: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Place image, tables and cache in memory; all the rest is random."""
        at, places = FREE, {}
        parts = {"stream": self.model.stream, **self.model.sections}
        for name, data in parts.items():
            places[name] = at
            at += up(len(data), 256)
        self.kv_base = at
        caches = self.sequences * self.model.cache.bytes
        size = at + (caches if self.model.cache.in_memory else 0)
        rng = np.random.default_rng(9)
        self.memory = rng.integers(0, 256, up(size, 256), np.uint8)
        self.sram = rng.integers(0, 256, self.model.limits.sram_bytes, np.uint8)
        for name, data in parts.items():
            self.put(places[name], data)
        self.stream_base = places["stream"]
        tables = [places.get(name, 0) for name in ("tokens", "positions", "rope")]
        self.bases = (IDS, TOKENS_OUT, *tables, LOGITS_OUT, places.get("sink", 0), 0)

    def put(self, address: int, data: bytes) -> None:
        """Write memory."""
        self.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def run(
        self,
        program: CompiledProgram,
        ids: Sequence[int] = (),
        *,
        pos: int = 0,
        token: int = 0,
        loop_left: int = 0,
        eos: int = 0xFFFF_FFFF,
        sequence: int = 0,
    ) -> RunResult:
        """Run a program to its end; no race and no error is allowed."""
        words, settings = program.program.instructions, {"pos": pos, "token": token, "eos": eos}
        result = self.execute(words, ids, **settings, loop_left=loop_left, sequence=sequence)
        assert result.error is None, result.error
        assert [str(race) for race in result.races] == []
        return result

    def execute(
        self,
        words: Sequence[Instruction],
        ids: Sequence[int] = (),
        *,
        pos: int = 0,
        token: int = 0,
        loop_left: int = 0,
        eos: int = 0xFFFF_FFFF,
        sequence: int = 0,
    ) -> RunResult:
        """Run any words."""
        image = encode_image(list(words))
        assert len(image) <= IDS
        self.put(UCODE, image)
        self.put(IDS, np.asarray(ids, "<u4").tobytes())
        limits = self.model.limits
        config = ChipConfig(limits.array_dim, limits.sram_bytes, limits.acc_rows, limits.norm_max)
        registers: dict[str, Any] = self.model.registers(
            self.kv_base + sequence * self.model.cache.bytes
        )
        start = StartState(
            UCODE,
            len(words),
            self.stream_base,
            len(self.model.stream),
            bases=self.bases,
            pos=pos,
            token=token,
            loop_left=loop_left,
            eos=eos,
            **registers | {"kv_in_memory": bool(registers["kv_in_memory"])},
        )
        return Machine(config, self.memory, self.sram).run(start)

    def tokens(self, count: int) -> list[int]:
        """Return the ids that the last program wrote."""
        ids: list[int] = self.memory[TOKENS_OUT : TOKENS_OUT + 4 * count].view("<u4").tolist()
        return ids

    def logits(self) -> npt.NDArray[np.int16]:
        """Return the logits that the last program wrote."""
        end = LOGITS_OUT + 2 * self.model.shape.vocab
        return self.memory[LOGITS_OUT:end].view("<i2").astype(np.int16)

    def cached(
        self, layer: int, v: bool, positions: int, sequence: int = 0
    ) -> npt.NDArray[np.int8]:
        """Return (positions, kv_heads * head_dim) of a cache, by the formula of isa.md."""
        shape, cache = self.model.shape, self.model.cache
        edge = self.model.limits.edge
        blocks = up(shape.head_dim, edge) // edge
        p = np.arange(positions)[:, None, None]
        h = np.arange(shape.kv_heads)[None, :, None]
        c = np.arange(shape.head_dim)[None, None, :]
        place = layer * cache.layer + int(v) * cache.v_offset + h * cache.head
        place = place + (p // edge * blocks + c // edge) * edge * edge
        place = place + p % edge * edge + c % edge
        where = self.memory if cache.in_memory else self.sram
        base = self.kv_base + sequence * cache.bytes if cache.in_memory else cache.base
        return where[base + place].view(np.int8).reshape(positions, -1)


def check_cache(chip: ModelChip, trace: decoder.ModelTrace, positions: int) -> None:
    """Compare K and V of all layers with the network's."""
    for layer, block in enumerate(trace.blocks):
        for v, want in ((False, block.keys), (True, block.v)):
            have = chip.cached(layer, v, positions)
            np.testing.assert_array_equal(have, want[:positions], err_msg=f"layer {layer} v={v}")


def _looked_at(window: int, tensor: npt.NDArray[Any], rows: slice) -> npt.NDArray[Any]:
    """Return (rows, positions) with what no row looks at as zero: it need not be computed."""
    own = np.arange(rows.start, rows.stop)[:, None]
    key = np.arange(tensor.shape[1])
    seen = key <= own
    if window:
        seen &= key > own - window
    return np.where(seen, tensor, 0).astype(tensor.dtype)


def check_tensors(
    model: QuantizedModel,
    refs: Sequence[TensorRef],
    result: RunResult,
    trace: decoder.ModelTrace,
    rows: slice,
    sram_bytes: int,
) -> set[str]:
    """Compare all tensors that a program notes with rows of the network's; return their names."""
    names = set()
    for (layer, name), have in collect(refs, result.sram_writes, sram_bytes).items():
        base, head, index = name.partition("_h")
        names.add(base)
        if layer == model.shape.layers:
            want = trace.logits[rows.stop - 1 : rows.stop]
        else:
            want = getattr(trace.blocks[layer], base)
            want = want[int(index)][rows] if head else want[rows]
        if base in ("scores", "numer"):
            window = model.shape.window_of(layer)
            want = _looked_at(window, want[:, : have.shape[1]], rows)
            have = _looked_at(window, have, rows)
        assert (have.dtype, have.shape) == (want.dtype, want.shape), (layer, name)
        np.testing.assert_array_equal(have, want, err_msg=f"layer {layer} {name}")
    return names


def ids_of(model: QuantizedModel) -> list[int]:
    """Return ids for every position, the same for equal shapes."""
    ids: list[int] = (
        np.random.default_rng(4).integers(0, model.shape.vocab, model.shape.context).tolist()
    )
    return ids


def check_steps(
    model: QuantizedModel,
    compiled: CompiledModel,
    chunks: Sequence[int],
    *,
    chunk: int | None = None,
    decode: int | None = None,
) -> ModelChip:
    """Prefill prompts one behind the other, then decode; compare everything at every step."""
    ids = ids_of(model)
    trace = decoder.forward_trace(model, ids)
    chip = ModelChip(compiled)
    sram = compiled.limits.sram_bytes
    names: set[str] = set()
    done = 0
    for rows in chunks:
        program = compiled.prefill(rows, done, logits=True, chunk=chunk)
        assert assemble(program.text).image() == program.program.image()
        end = done + rows
        result = chip.run(program, ids[done:end])
        names |= check_tensors(model, program.tensors, result, trace, slice(done, end), sram)
        check_end(chip, trace, end, result.token)
        done = end
    program = compiled.decode(logits=True)
    assert assemble(program.text).image() == program.program.image()
    last = model.shape.context if decode is None else done + decode
    for pos in range(done, last):
        result = chip.run(program, pos=pos, token=ids[pos])
        refs = program.tensors_at(pos)
        names |= check_tensors(model, refs, result, trace, slice(pos, pos + 1), sram)
        check_end(chip, trace, pos + 1, result.token)
    wanted = {"norm1", "q", "k", "v", "scores", "numer", "sums", "ctx", "resid1", "norm2", "act"}
    wanted |= {"resid2", "logits"}
    wanted |= {"q_rope", "k_rope"} if model.rope is not None else set()
    wanted |= {"silu"} if model.blocks[0].gate is not None else set()
    wanted |= {"gate", "near", "ratio", "up"} if model.shape.wide else set()
    wanted |= {"q_norm", "k_norm"} if model.shape.head_norms else set()
    wanted |= {"proj", "o_norm", "down", "down_norm"} if model.shape.part_norms else set()
    wanted |= {"stream"} if any(block.stream_shift for block in model.blocks) else set()
    assert names == wanted
    return chip


def check_end(chip: ModelChip, trace: decoder.ModelTrace, positions: int, token: int) -> None:
    """Compare the logits, the token and the cache after a program."""
    want = trace.logits[positions - 1]
    np.testing.assert_array_equal(chip.logits(), want)
    assert token == chip.tokens(1)[0] == int(want.argmax())
    check_cache(chip, trace, positions)
