# SPDX-License-Identifier: Apache-2.0
"""A compiled model in the memory of a bench, beside the integer network that it must equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from golden.decoder import KeyValues
from golden.session import GoldenSession
from npu.compiler import CompiledModel, CompiledProgram, compile_model, ideal
from npu.compiler.model import Place
from npu.driver.generate import PromptPlan
from npu.planner.placement import Placement
from spec.isa.operands import up
from spec.regs import StartState
from tb.bench.environment import Bench, Execution
from tb.bench.host import RtlChip
from tb.bench.scoreboard import MismatchError
from tb.models.block_tensors import compare_trace, locator
from tb.models.generate import SLACK, START
from weights.model import QuantizedModel

BASE = 0x10_0000
"""Where the model begins in memory."""
ROWS = 16
"""A prompt through the model once takes less than so many steps take."""


def check_logits(what: str, expected: npt.NDArray[np.int16], actual: npt.NDArray[np.int16]) -> None:
    """Compare logits (V,) with the network's.

    Raises:
        MismatchError: naming the first logit that differs.
    """
    if not np.array_equal(expected, actual):
        wrong = np.flatnonzero(expected != actual)
        raise MismatchError(
            f"{what}: logit {wrong[0]}: expected {expected[wrong[0]]} (plain integer network), "
            f"actual {actual[wrong[0]]}; {wrong.size} of {expected.size} differ"
        )


@dataclass
class Resident:
    """A model that lies in memory and runs on the bench's chip.

    Attributes:
        bench: the chip and its memory.
        model: the network.
        compiled: for this chip.
        placement: where everything lies.
    """

    bench: Bench
    model: QuantizedModel
    compiled: CompiledModel
    placement: Placement
    _staged: int = field(default=0, init=False, repr=False)

    @classmethod
    def place(cls, bench: Bench, model: QuantizedModel, cache: Place = "auto") -> Resident:
        """Compile a model for the bench's chip and put it into memory."""
        compiled = compile_model(model, bench.limits, cache=cache)
        resident = cls(bench, model, compiled, Placement(compiled, BASE))
        resident._stage()
        return resident

    def _stage(self) -> None:
        """Put what has been placed since the last call into memory."""
        for address, data in self.placement.pieces[self._staged :]:
            self.bench.memory.stage(address, data)
        self._staged = len(self.placement.pieces)

    @property
    def chip(self) -> RtlChip:
        """The chip, which may take as long as the whole context needs."""
        self.bench.bus.limit = self.limit(self.model.shape.context)
        return self.bench.chip

    def limit(self, tokens: int) -> int:
        """Return the cycles within which a program on so many tokens must have ended."""
        shape, in_memory = self.compiled.shape, self.compiled.cache.in_memory
        last = shape.context - 1
        layouts = self.compiled.layouts
        step = ideal.forward(shape, 1, last, in_memory=in_memory, logits=True, layouts=layouts)
        return SLACK * tokens * step.ideal_cycles * self.bench.slower + START

    def plan(self, prompt: Sequence[int], *, logits: bool = False) -> PromptPlan:
        """Put a prompt and its programs into memory."""
        plan = self.placement.plan(prompt, logits=logits)
        self._stage()
        return plan

    def launch(self, program: CompiledProgram, ids: Sequence[int] = ()) -> StartState:
        """Put a program and the ids of its prompt into memory; return how it starts."""
        launch = self.placement.launch(program)
        self._stage()
        self.bench.memory.stage(launch.bases[0], np.array(ids, "<u4"))
        return launch

    async def logits(self, launch: StartState) -> npt.NDArray[np.int16]:
        """Run a program that writes logits; return them, (V,) int16.

        Raises:
            MismatchError: the chip ended with an error.
        """
        finish = await self.bench.chip.run(launch, self.limit(ROWS))
        if finish.error is not None:
            raise MismatchError(f"expected no error, actual {finish.error}")
        data = self.bench.memory.read(launch.bases[5], 2 * self.model.shape.vocab)
        return np.frombuffer(data, "<i2").astype(np.int16)

    async def prompt_in_detail(
        self, ids: Sequence[int], session: GoldenSession, chunk: int | None = None
    ) -> Execution:
        """Append a prompt to chip and session; compare every write, tensor and logit."""
        done = session.length
        program = self.compiled.prefill(len(ids), done, logits=True, chunk=chunk)
        return await self._in_detail(program, self.launch(program, ids), ids, session)

    async def step_in_detail(self, token: int, session: GoldenSession) -> Execution:
        """Append one token to chip and session; compare every write, tensor and logit."""
        program = self.compiled.decode(logits=True)
        launch = replace(self.launch(program), pos=session.length, token=token)
        return await self._in_detail(program, launch, [token], session)

    async def _in_detail(
        self,
        program: CompiledProgram,
        launch: StartState,
        ids: Sequence[int],
        session: GoldenSession,
    ) -> Execution:
        refs = program.tensors if program.rows else program.tensors_at(session.length)
        words, start = program.program.instructions, launch
        limit = self.limit(len(ids) + 1)
        execution = await self.bench.run(words, start, locate=locator(refs), limit=limit)
        if execution.finish.error is not None:
            raise MismatchError(f"expected no error, actual {execution.finish.error}")
        what = f"positions {session.length} to {session.length + len(ids) - 1}"
        trace = session.extend(ids)
        sram_bytes = self.bench.config.sram_bytes
        found = compare_trace(self.model, refs, execution.writes, trace, words, sram_bytes)
        missing = {
            (layer, name) for layer in range(self.model.shape.layers) for name in self._tensors()
        }
        missing = (missing | {(self.model.shape.layers, "logits")}) - found
        if missing:
            raise MismatchError(f"{what}: not compared: {sorted(missing)}")
        logits = self.bench.memory.array(launch.bases[5], (self.model.shape.vocab,), np.int16)
        check_logits(what, trace.logits[-1], logits)
        expected = int(trace.logits[-1].argmax())
        if execution.finish.last.token != expected:
            raise MismatchError(
                f"{what}: expected token {expected}, actual {execution.finish.last.token}"
            )
        await self.check_cache(session)
        return execution

    def _tensors(self) -> list[str]:
        """Return the tensors that each layer of a program writes; others are fused away."""
        names = ["norm1", "q", "k", "v", "scores", "numer", "sums", "ctx", "resid1", "norm2"]
        names += ["q_rope", "k_rope"] if self.model.rope is not None else []
        names += ["silu"] if self.model.blocks[0].gate is not None else []
        names += ["gate", "near", "ratio", "up"] if self.model.shape.wide else []
        names += ["q_norm", "k_norm"] if self.model.shape.head_norms else []
        names += ["proj", "o_norm", "down", "down_norm"] if self.model.shape.part_norms else []
        return [*names, "act", "resid2"]

    def _places(self, positions: int) -> Iterator[tuple[int, str, npt.NDArray[np.int64]]]:
        """Yield (layer, "k" or "v", (positions, kv_heads * head_dim) offsets in the cache)."""
        shape, cache, edge = self.compiled.shape, self.compiled.cache, self.compiled.limits.edge
        p, h, c = np.ogrid[:positions, : shape.kv_heads, : shape.head_dim]
        tile = p // edge * (up(shape.head_dim, edge) // edge) + c // edge
        place = h * cache.head + tile * edge * edge + p % edge * edge + c % edge
        flat = place.reshape(positions, -1).astype(np.int64)
        for layer in range(shape.layers):
            for name, offset in (("k", 0), ("v", cache.v_offset)):
                yield layer, name, flat + layer * cache.layer + offset

    async def check_cache(self, session: GoldenSession) -> None:
        """Compare all keys and values in the cache with the session's.

        Raises:
            MismatchError: naming the first that differs.
        """
        cache = self.compiled.cache
        if cache.in_memory:
            image = self.bench.memory.view(self.placement.cache, cache.bytes)
        else:
            image = (await self.bench.sync())[cache.base :]
        for layer, name, places in self._places(session.length):
            expected = getattr(session.cache[layer], name)
            actual = image[places].view(np.int8)
            if not np.array_equal(expected, actual):
                wrong = np.argwhere(expected != actual)
                at = tuple(wrong[0])
                raise MismatchError(
                    f"cache: layer {layer} {name}[{at[0]}, {at[1]}]: expected {expected[at]}, "
                    f"actual {actual[at]}; {len(wrong)} of {expected.size} differ"
                )

    def stage_cache(self, past: Sequence[KeyValues]) -> None:
        """Put keys and values of all layers into a cache in memory."""
        image = self.bench.memory.view(self.placement.cache, self.compiled.cache.bytes)
        for layer, name, places in self._places(past[0].k.shape[0]):
            image[places] = getattr(past[layer], name).view(np.uint8)
