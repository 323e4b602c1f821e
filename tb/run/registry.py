# SPDX-License-Identifier: Apache-2.0
"""Finds the tests on the RTL by reading their sources: no simulator, no import of cocotb.

A test is an `async def` decorated with `@cocotb.test`, in a file `test_*.py` of a room of tb/tests.
Its name is the function's name; a module's name, without room, stands for all tests of that module.
A module whose tests need more
memory behind the chip than usual says so by a line `MEMORY_MIB = <number>`; one whose tests need a
certain command port by a line `SCRATCH_BYTES = (<number>, ...)`, 0 meaning a chip without one; a
certain coprocessor by a line `COP_SOURCES = (<number>, ...)`, the operands of its port, in the same
way. One for a chip without narrow formats of weights says so by a line `NARROW_FORMATS = 0`. One
whose tests run from several power-up states says by a line `POWER_UPS = <number>` from how many
random ones, beside all zeros and all ones; a quarter of them in short form. What its tests are
about stands in a line `TAGS = ("<tag>", ...)`, see `TAGS` here, and `TIMED = ("<test>", ...)` names
those of them that measure cycles as well, or try how long the chip waits; one whose tests want the
simulator for themselves has a line `ALONE = 1`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from npu.commands.arguments import UsageError
from spec.configurations import ChipParameters
from spec.paths import TESTS

MEMORY_MIB = 16
"""Memory behind the chip unless a module asks for more, in MiB; its file is sparse."""


ENGINES = ("ld", "st", "gemm", "smx", "nrm", "vec", "seq", "stream", "cmd", "cop")
"""Tags of the parts of the chip: the engines, sequencer, parameter stream, and the two ports."""
TAGS = (
    *ENGINES,
    "faults",
    "formats",
    "hostile",
    "long",
    "models",
    "networks",
    "plans",
    "random",
    "registers",
    "timing",
)
"""What a test may be about. `long`: tens of seconds in its long form; `timing`: it measures cycles,
or how long the chip waits, so that a memory of another kind changes its result."""


class BadTestError(UsageError):
    """A file of tests that nobody can run, or two tests of one name."""


class UnknownTestError(ValueError):
    """A name that no test has."""


@dataclass(frozen=True, order=True)
class BenchTest:
    """One cocotb test.

    Attributes:
        module: dotted name of the module, e.g. `tb.tests.engines.test_gemm`.
        name: name of the function, unique in the tree.
        summary: first line of its docstring.
        memory_bytes: size of the memory behind the chip.
        scratch_bytes: sizes of the command port's scratchpad that the test is for; all if empty.
        cop_sources: operands of the coprocessor's port that the test is for; all if empty.
        power_ups: random power-up states that it runs from, with all zeros and all ones before
            them; 0: from one random state only.
        narrow_formats: whether the chip that the test is for has narrow formats of weights.
        tags: what it is about, of `TAGS`.
        alone: whether it wants the simulator for itself.
    """

    module: str
    name: str
    summary: str
    memory_bytes: int = MEMORY_MIB << 20
    scratch_bytes: tuple[int, ...] = ()
    power_ups: int = 0
    cop_sources: tuple[int, ...] = ()
    narrow_formats: bool = True
    tags: tuple[str, ...] = ()
    alone: bool = False

    def fits(self, chip: ChipParameters) -> bool:
        """Whether the test is for a chip."""
        if chip.narrow_formats != self.narrow_formats:
            return False
        has_port = not self.scratch_bytes or chip.scratch_bytes in self.scratch_bytes
        return has_port and (not self.cop_sources or chip.cop_sources in self.cop_sources)

    @property
    def group(self) -> str:
        """The module's own name, e.g. `test_gemm`."""
        return self.module.rsplit(".", 1)[-1]


def _is_cocotb_test(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (
        isinstance(target, ast.Attribute)
        and target.attr == "test"
        and isinstance(target.value, ast.Name)
        and target.value.id == "cocotb"
    )


def _number(body: Iterable[ast.stmt], name: str, default: int) -> int:
    """Return the number that a module gives a name, or the default."""
    for node in body:
        match node:
            case ast.Assign([ast.Name(target)], ast.Constant(int(value))) if target == name:
                return value
    return default


def _tuple(body: Iterable[ast.stmt], name: str) -> tuple[Any, ...]:
    """Return the tuple of literals that a module gives a name, an empty one by default."""
    for node in body:
        match node:
            case ast.Assign([ast.Name(target)], ast.Tuple() as values) if target == name:
                return tuple(ast.literal_eval(values))
    return ()


def _tags(path: Path, body: Iterable[ast.stmt]) -> tuple[str, ...]:
    tags = _tuple(body, "TAGS")
    for tag in tags:
        if tag not in TAGS:
            raise BadTestError(f"{path}: given the tag {tag!r}, allowed {', '.join(TAGS)}")
    return tags


@cache
def _tests_in(path: Path, package: str, _changed_ns: int) -> tuple[BenchTest, ...]:
    """Return the tests of a file as it was when it was last changed."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body
    except SyntaxError as error:
        raise BadTestError(f"{path}, line {error.lineno}: {error.msg}") from None
    return tuple(_tests_of(path, package, body))


def _tests_of(path: Path, package: str, body: Sequence[ast.stmt]) -> Iterable[BenchTest]:
    memory_bytes = _number(body, "MEMORY_MIB", MEMORY_MIB) << 20
    power_ups = _number(body, "POWER_UPS", 0)
    fitting = (
        _tuple(body, "SCRATCH_BYTES"),
        power_ups,
        _tuple(body, "COP_SOURCES"),
        bool(_number(body, "NARROW_FORMATS", 1)),
        _tags(path, body),
        power_ups > 0 or bool(_number(body, "ALONE", 0)),
    )
    timed = _tuple(body, "TIMED")
    for node in body:
        if isinstance(node, ast.AsyncFunctionDef) and any(
            _is_cocotb_test(decorator) for decorator in node.decorator_list
        ):
            summary = (ast.get_docstring(node) or "").split("\n")[0]
            module = f"{package}.{path.stem}"
            test = BenchTest(module, node.name, summary, memory_bytes, *fitting)
            yield replace(test, tags=(*test.tags, "timing")) if test.name in timed else test


def discover(folder: Path = TESTS, package: str = "tb.tests") -> list[BenchTest]:
    """Return all tests in `folder`, the home of `package`, by module and place.

    Raises:
        BadTestError: two tests have the same name, a tag is not known, or a file is no Python.
    """
    tests = [
        test
        for path in sorted(folder.rglob("test_*.py"), key=lambda found: found.name)
        for room in [".".join((package, *path.relative_to(folder).parts[:-1]))]
        for test in _tests_in(path, room, path.stat().st_mtime_ns)
    ]
    seen: dict[str, BenchTest] = {}
    for test in tests:
        if test.name in seen:
            raise BadTestError(
                f"two tests are called {test.name}: in {seen[test.name].module} and {test.module}"
            )
        seen[test.name] = test
    return tests


def near(name: str, known: Sequence[str]) -> str:
    """Return what a message about an unknown name adds: the known ones near to it, if any."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    close = close or [other for other in known if name.removeprefix("test_") in other][:5]
    return f"; near: {', '.join(close)}" if close else ""


def select(
    names: Sequence[str], tests: Sequence[BenchTest], listing: str = "python -m npu.cli test --list"
) -> list[BenchTest]:
    """Return the tests that `names` (exact names of tests or modules) choose, each once.

    Args:
        names: of tests or of modules.
        tests: what there is.
        listing: the command that shows all names.

    Raises:
        UnknownTestError: a name is not there; the message lists near ones.
    """
    chosen: dict[str, BenchTest] = {}
    known = sorted({test.name for test in tests} | {test.group for test in tests})
    for name in names:
        hits = [test for test in tests if name in (test.name, test.group)]
        if not hits:
            raise UnknownTestError(
                f"no test is called {name!r}{near(name, known)} (all names: {listing})"
            )
        chosen.update((test.name, test) for test in hits)
    return list(chosen.values())
