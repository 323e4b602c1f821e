# SPDX-License-Identifier: Apache-2.0
"""From a network of another framework to a plan: import, passes, compilation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from npu.compiler.errors import CompileError
from npu.compiler.network import MisfitError, compile_network
from npu.compiler.stream import refused_format
from npu.graph.form import Graph, GraphError
from npu.graph.importers import named, opened, read, usual_samples, usual_wide
from npu.graph.inputs import Samples
from npu.graph.passes.quantising.calibrate import METHODS
from npu.graph.passes.quantising.samples import by_input
from npu.graph.passes.quantising.wide import is_wide, wide_tensors
from npu.graph.prepare import PASSES, Io, origin_of, prepare
from npu.graph.states import with_states
from npu.graph.text import outline, write
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Action, Origin, Plan
from spec.isa.operands import Limits
from spec.isa.weight_formats import GROUPED
from weights.checkpoint import Checkpoint, digest
from weights.formats.recipe import (
    INT8_NETWORK,
    NetworkRecipe,
    RecipeError,
    parse_network_recipe,
)

SCHEDULE = "schedule"
Passes: TypeAlias = Mapping[str, Graph]
Tried: TypeAlias = Callable[[Sequence[str]], Passes]
Choose: TypeAlias = Callable[[Tried, Samples | str | None], Sequence[str]]
"""Chooses what is to have 16 bits, from what tells the passes that names lead to, and samples."""


@dataclass(frozen=True)
class Built:
    """A plan and how it came about.

    Attributes:
        plan: what runs.
        passes: the graph behind each pass, in their order.
        wide: names of what has 16 bits because somebody wanted it so.
        samples: that calibrated it.
    """

    plan: Plan
    passes: Passes
    wide: tuple[str, ...] = ()
    samples: Samples | str | None = None

    def texts(self, *, whole: bool = False) -> Iterator[tuple[str, str]]:
        """Yield file name and text of each pass, the schedule, and the programs.

        Args:
            whole: with all constants, so that the texts of graphs parse.
        """
        for number, (name, graph) in enumerate(self.passes.items(), 1):
            yield f"{number}-{name}.txt", write(graph) if whole else outline(graph)
        number = len(self.passes) + 1
        yield f"{number}-{SCHEDULE}.txt", schedule(self.plan)
        for index, segment in enumerate(self.plan.segments):
            yield f"{number + 1}-segment{index}.npu", segment.text


@dataclass(frozen=True, kw_only=True, eq=False)
class CompileOptions:
    """What somebody wants of a network, but for its source.

    Attributes:
        calibrate: samples of a network in float, one array per input whose first axis counts them,
            by name or in their order, or that of the only input; or "random:N"; None for a network
            that is quantised already, and for a checkpoint, which has texts.
        calibration: how scales are found in samples: percentile, entropy or max.
        shapes: of inputs with free dimensions, by name.
        host: names of operations, or kinds, that are to run there.
        npu: names of operations, or kinds, that are to run in programs of the chip.
        port: names of operations, or kinds, that are to run on its command port.
        split: names of operations of the chip behind which a segment ends.
        io: "int8" for inputs and outputs in the chip's integers, with their scales in the graph.
        limits: of the chip, the standard one if None.
        wide: names of inputs, operations, or kinds, whose values are to have 16 bits on the chip;
            or what chooses them.
        state: outputs that the next run finds as inputs, by the names of these.
        weights: formats of the real constant weights of products, as a recipe or its text: a word
            of docs/formats.md for all ("int4g32"), and behind it NAME=word for single operations.
    """

    calibrate: Samples | Sequence[Any] | str | None = None
    calibration: str = METHODS[0]
    shapes: Mapping[str, tuple[int, ...]] | None = None
    host: Sequence[str] = ()
    npu: Sequence[str] = ()
    port: Sequence[str] = ()
    split: Sequence[str] = ()
    io: Io = "float"
    limits: Limits | None = None
    wide: Sequence[str] | Choose = ()
    state: Mapping[str, str] | None = None
    weights: str | NetworkRecipe = INT8_NETWORK


DEFAULTS = CompileOptions()


def build_plan(source: Any, options: CompileOptions = DEFAULTS) -> Built:  # noqa: ANN401
    """Import, quantise, place and compile a network.

    An operation that fits the chip in no way runs on the host, with the reason.

    Args:
        source: a graph, or what `npu.graph.importers.read` takes.
        options: what is wanted of it.

    Raises:
        GraphError: the file or an argument is wrong; naming file, operation and tensor.
        CompileError: an operation fits the chip in no way.
    """
    if not isinstance(options.shapes or {}, Mapping):
        given = type(options.shapes).__name__
        raise GraphError(f"shapes: given {given}, allowed a shape by the name of its input")
    for name, sizes in (options.shapes or {}).items():
        if not isinstance(sizes, list | tuple) or not all(isinstance(one, int) for one in sizes):
            raise GraphError(
                f"shape of {name!r}: given {sizes!r}, allowed a tuple of whole numbers"
            )
    source = opened(source)
    file = "" if isinstance(source, Graph) else named(source)
    graph = source if isinstance(source, Graph) else read(source, shapes=options.shapes)
    if options.shapes and isinstance(source, Graph):
        raise GraphError("shapes: given for a graph, allowed for files")
    try:
        graph = with_states(graph, options.state or {})
        samples = by_input(graph, options.calibrate)
    except GraphError as error:
        raise GraphError(f"{file}: {error}" if file else str(error)) from None
    if samples is None:
        samples = usual_samples(source, graph)
    refused: dict[str, str] = {}
    recipe = _recipe(options.weights, options.limits or Limits())

    def tried(names: Sequence[str]) -> Passes:
        found: dict[str, Graph] = {}
        prepare(
            graph,
            samples=samples,
            calibration=options.calibration,
            host=options.host,
            npu=options.npu,
            port=options.port,
            io=options.io,
            refused=refused,
            keep=lambda name, result: found.update({name: result}),
            file=file,
            wide=names,
            weights=recipe,
        )
        return found

    asked = tuple(options.wide(tried, samples) if callable(options.wide) else options.wide)
    usual = () if isinstance(source, Graph) or callable(options.wide) else usual_wide(source)
    chosen = tuple(dict.fromkeys((*usual, *asked)))
    passes = tried(chosen)
    _refuse_narrow(passes, asked, file)
    network = None
    while network is None:
        try:
            network = compile_network(passes[PASSES[-1]], options.limits, split=options.split)
        except MisfitError as error:
            name = origin_of(error.operation, passes["canonical"])
            if not name or name in refused:
                raise _named(file, error) from None
            refused[name] = str(error).removeprefix(f"{error.operation}: ")
            passes = tried(chosen)
        except CompileError as error:
            raise _named(file, error) from None
    compiler = f"tessera-npu {version('tessera-npu')}"
    calibration = _calibration(samples, options.calibration)
    origin = Origin(Path(file).name, _content(source), calibration, compiler)
    return Built(plan_of(network, origin), {name: passes[name] for name in PASSES}, chosen, samples)


def has_wide(passes: Passes, name: str) -> bool:
    """Say whether something of an input, operation or kind has 16 bits on the chip."""
    tensors = wide_tensors(passes["place"], [name])
    return any(is_wide(passes["quantise"], one) for one in tensors)


def _refuse_narrow(passes: Passes, names: Sequence[str], file: str) -> None:
    """Raise GraphError for a name of which nothing has 16 bits on the chip."""
    for name in names:
        if not has_wide(passes, name):
            raise GraphError(
                f"{file}: " * bool(file) + f"--wide {name}: on the chip it has 8 bits or none, "
                "allowed inputs and results of products, sums, norms and of moves of these"
            )


def _recipe(given: str | NetworkRecipe, limits: Limits) -> NetworkRecipe:
    """Return formats of weights. Raises GraphError for those that there are not on a chip."""
    try:
        recipe = parse_network_recipe(given) if isinstance(given, str) else given
    except RecipeError as error:
        raise GraphError(f"--{error}") from None
    for one in recipe.encodings:
        group = str(one.group) if one.format in GROUPED else ""
        if why := refused_format(one.format.asm if one.format else "", group, limits):
            raise GraphError(f"--weights {one}: {why}")
    return recipe


def _named(file: str, error: CompileError) -> CompileError:
    return CompileError(f"{file}: {error}" if file else str(error))


def _content(source: Any) -> str:  # noqa: ANN401
    """Return the SHA-256 of a file or checkpoint, "" for what is neither."""
    if isinstance(source, Checkpoint):
        return digest(source)
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()
    return hashlib.sha256(source).hexdigest() if isinstance(source, bytes) else ""


def _calibration(samples: Samples | str | None, method: str) -> str:
    if samples is None:
        return "given"
    way = "" if method == METHODS[0] else f", {method}"
    if isinstance(samples, str):
        return samples + way
    whole = hashlib.sha256()
    for name in sorted(samples):
        whole.update(name.encode() + np.ascontiguousarray(samples[name]).tobytes())
    count = max((len(one) for one in samples.values() if np.ndim(one)), default=1)
    return f"{count} samples, SHA-256 {whole.hexdigest()}{way}"


def schedule(plan: Plan) -> str:
    """Return the order of the steps and where tensors lie, as text."""
    lines = [
        f"arena {plan.arena} bytes, stream {len(plan.stream)}, constants {len(plan.constants)}"
    ]
    for tensor in plan.tensors:
        kind = f"{tensor.type.element.value}{list(tensor.type.shape)}"
        times = f"operations {tensor.first} to {tensor.last}"
        lines.append(f"tensor {tensor.name}: {kind} at {tensor.offset}, {times}")
    for step in plan.steps:
        if step.action in (Action.PACK, Action.UNPACK):
            lines.append(f"{step.action.value} {step.of}")
            continue
        if step.action is not Action.LAUNCH:
            one = plan.operation(str(step.of))
            call = f"{one.kind}({', '.join(one.used)}) -> {list(one.outputs)}"
            lines.append(f"{step.action.value} {step.of}: {call}")
            continue
        segment = plan.segments[step.segment]
        words = len(segment.program)
        lines.append(f"segment {step.of}: {words} words, SRAM {segment.sram_bytes} bytes")
        lines.append(f"  reads {', '.join(segment.reads)}; writes {', '.join(segment.writes)}")
        for name in segment.operations:
            at = segment.first_word.get(name)
            where = "no instructions" if at is None else f"word {at}"
            lines.append(f"  {name}: {plan.operation(name).kind}, {where}")
    return "\n".join(lines) + "\n"
