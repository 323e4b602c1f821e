# SPDX-License-Identifier: Apache-2.0
"""A network that runs: loaded from a file, a folder of `npu compile`, or a function of jax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, overload

from npu import optional
from npu.graph.form import Array, GraphError
from npu.graph.importers.stablehlo import from_jax as lowered
from npu.graph.inputs import Samples, check_inputs
from npu.graph.states import States
from npu.planner.build_plan import Choose, CompileOptions, build_plan
from npu.runtime.network_account import report_of
from npu.runtime.plan import Plan
from npu.runtime.plan_files import CHECKPOINT, holds_plan, read_plan
from npu.runtime.report import NetworkReport
from tessera.accuracy import held
from tessera.golden_chip import run_on_golden
from tessera.wide_search import AUTO, wide_until

On = Literal["golden", "rtl"]
"""The chip: the instruction model, which has every bit, or the simulated RTL, which has cycles."""


class Session:
    """A compiled network and a chip.

    Attributes:
        plan: of the network.
        on: the chip.
    """

    def __init__(self, plan: Plan, on: On = "golden") -> None:
        """Take a plan. Raises GraphError for a chip that there is not."""
        if on not in get_args(On):
            raise GraphError(f"on: given {on!r}, allowed {', '.join(get_args(On))}")
        self.plan = plan
        self.on: On = on
        self._states = States(plan.graph)
        self._report = report_of(plan)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs; what a run leaves to the next is none."""
        return self.plan.graph.arguments

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.plan.graph.results

    def reset(self) -> None:
        """Let states hold again what the first run finds in them."""
        self._states.reset()

    @overload
    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, Array]) -> list[Array]: ...

    @overload
    def run(self, outputs: Mapping[str, Array]) -> dict[str, Array]: ...

    def run(
        self,
        outputs: Sequence[str] | Mapping[str, Array] | None,
        inputs: Mapping[str, Array] | None = None,
    ) -> list[Array] | dict[str, Array]:
        """Run the network once; states are as the run before has left them.

        Args:
            outputs: names of the outputs to return, in this order, None for all; or, as the only
                argument, the inputs.
            inputs: an array per input by name, in its shape and of its kind.

        Returns:
            The outputs as a list, or by name if the inputs are the only argument.

        Raises:
            GraphError: a name, shape, type or value is wrong, or an operation of the host fails.
            tessera.rtl_chip.ChipMismatchError: the RTL differs from the instruction model.
        """
        if isinstance(outputs, Mapping):
            if inputs is not None:
                raise GraphError("run: given inputs twice, allowed run(outputs, inputs)")
            return self._run(outputs)
        if not isinstance(inputs, Mapping | None) or hasattr(outputs, "shape"):
            raise GraphError("run: given an array without a name, allowed inputs by name")
        names = self.outputs if outputs is None else tuple(outputs)
        unknown = [name for name in names if name not in self.outputs]
        if unknown:
            raise GraphError(f"output {unknown[0]!r}: allowed {', '.join(self.outputs)}")
        if inputs is None:
            raise GraphError("run: given no inputs, allowed run(outputs, inputs) or run(inputs)")
        found = self._run(inputs)
        return [found[name] for name in names]

    def _run(self, inputs: Samples) -> dict[str, Array]:
        given = check_inputs(self.plan.graph, inputs)
        if self.on == "golden":
            run = run_on_golden(self.plan, given, states=self._states)
            self._report = report_of(self.plan, products=run.products)
            return dict(run.outputs)
        # The simulator is needed here only, and is not installed everywhere.
        try:
            from tessera.rtl_chip import run_on_rtl
        except ModuleNotFoundError as error:
            lacks = optional.missing(optional.group_of(str(error.name)))
            if lacks is None:
                raise
            raise GraphError(f"on='rtl': {error.name}: {lacks}") from error

        done = run_on_rtl(self.plan, given, states=self._states)
        self._report = report_of(self.plan, done.run.counters, done.cycles, done.run.products)
        return dict(done.run.outputs)

    def report(self) -> NetworkReport:
        """Return costs, places and reasons, with cycles once the network has run on the RTL."""
        return self._report


def load(
    source: Any,  # noqa: ANN401
    *,
    on: On = "golden",
    max_error: float | None = None,
    **options: Any,  # noqa: ANN401
) -> Session:
    """Load a network.

    Args:
        source: a file of ONNX, StableHLO or TFLite, the folder or GGUF file of a checkpoint, a live
            object of these, or a folder that `npu compile` has written, which takes none of the
            other arguments but `on`.
        on: the chip.
        max_error: how far outputs may be off the real ones of the samples, as a share of the
            largest value (0.01).
        options: those of `npu.planner.build_plan.CompileOptions`: calibrate, calibration, shapes,
            host, npu, port, split, io, limits, wide, state, weights. `wide` may be "auto" too: what
            loses most, until `max_error` is met.

    Raises:
        GraphError: file, samples or another argument are wrong.
        PlanFileError: the folder holds no plan, or a damaged one.
        CompileError: an operation fits the chip in no way.
        AccuracyError: an output is further off than `max_error`.
    """
    if isinstance(source, str | Path) and "\n" not in str(source) and _is_plan(Path(source)):
        if options or max_error is not None:
            raise GraphError(f"{source}: given arguments of compilation, allowed only on=")
        return Session(read_plan(Path(source)), on)
    return _compiled(source, options, on, max_error)


def _is_plan(path: Path) -> bool:
    """Whether a source is to be read as a plan: a folder that has one, or no checkpoint."""
    if not path.is_dir() or holds_plan(path):
        return path.is_dir()
    return not (path / CHECKPOINT).is_file() and not any(path.glob("*.gguf"))


def from_jax(
    function: Callable[..., Any],
    example_args: Sequence[Any],
    *,
    constants: Sequence[int] = (),
    on: On = "golden",
    max_error: float | None = None,
    **options: Any,  # noqa: ANN401
) -> Session:
    """Compile a function of jax.

    Args:
        function: of arrays or trees of arrays.
        example_args: its arguments, of which shapes and types count, and the values of those in
            `constants`.
        constants: places of arguments that are parameters. What the function closes over is too.
        on: the chip.
        max_error: as `load`.
        options: as `load`.

    Raises:
        GraphError: jax is missing or cannot lower the function, or as `load`.
        CompileError: as `load`.
        AccuracyError: as `load`.
    """
    graph = lowered(function, example_args, constants=constants)
    return _compiled(graph, options, on, max_error)


def _compiled(source: Any, given: Mapping[str, Any], on: On, most: float | None) -> Session:  # noqa: ANN401
    options = CompileOptions(**given)
    if most is not None and not (isinstance(most, int | float) and 0 < most <= 1):
        raise GraphError(f"max_error: given {most!r}, allowed a number above 0 to 1")
    built = build_plan(source, replace(options, wide=_choice(options.wide, most)))
    if most is not None:
        held(built, most)
    return Session(built.plan, on)


def _choice(wide: Sequence[str] | Choose, most: float | None) -> Sequence[str] | Choose:
    if not isinstance(wide, str):
        return wide
    if wide != AUTO or most is None:
        raise GraphError(
            f"wide: given {wide!r}, allowed a list of names, or {AUTO!r} with max_error"
        )
    return wide_until(most)
