# SPDX-License-Identifier: Apache-2.0
"""The test plan, its check, and docs/test-plan.md: `python -m dev.test_plan [--check]`."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path

from dev import formal, functional, marked_page
from dev.plan_standing import Standing
from dev.regression.task import Outcome
from spec.paths import DOCS, REPORTS, ROOT
from tb.run import registry, units

PLAN = Path(__file__).parent / "test_plan.toml"
PAGE = DOCS / "test-plan.md"
REPORT = REPORTS / "test_plan.json"
STAGES = ("block", "engine", "chip", "model", "system", "suite")
"""What a feature is shown on, from the smallest on."""


class PlanError(ValueError):
    """A plan that names what is not there, or leaves a test out; the text says which."""


@dataclass(frozen=True)
class Feature:
    """An entry of the plan.

    Attributes:
        name: of the feature.
        stage: of `STAGES`.
        text: what is shown, a sentence.
        tests: tests, modules, benches of blocks as `unit/NAME`, and files of pytest.
        points: groups of functional coverage.
        proofs: proofs of `make formal`, or their checkers.
    """

    name: str
    stage: str
    text: str
    tests: Sequence[str]
    points: Sequence[str] = ()
    proofs: Sequence[str] = ()


def registered() -> dict[str, set[str]]:
    """Return all tests by name, each with the names that a plan may call it by."""
    found = {test.name: {test.name, test.group} for test in registry.discover()}
    for test in units.tests_of():
        found[test.name] = {test.name, f"unit/{units.block_of(test)}"}
    for folder in ("tests/soc", "tests/suites"):
        for path in (ROOT / folder).glob("test_*.py"):
            name = str(path.relative_to(ROOT))
            found[name] = {name}
    return found


def load(path: Path = PLAN, tests: Mapping[str, set[str]] | None = None) -> list[Feature]:
    """Read the plan and hold it against what there is.

    Args:
        path: of the plan.
        tests: as `registered` returns them, which is the default.

    Raises:
        PlanError: an entry is none, a name is not there, or a test has no entry.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("feature", [])
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path.name}: no TOML: {error}") from None
    allowed = {each.name for each in fields(Feature)}
    needed = {each.name for each in fields(Feature) if each.default is MISSING}
    for entry in entries:
        if not needed <= {*entry} <= allowed or entry["stage"] not in STAGES:
            raise PlanError(
                f"{path.name}: given {entry}, needed {', '.join(sorted(needed))}, "
                f"stage one of {', '.join(STAGES)}, allowed {', '.join(sorted(allowed))}"
            )
    plan = [Feature(**entry) for entry in entries]
    known = registered() if tests is None else tests
    names = {name for each in known.values() for name in each}
    proofs = {name for proof in formal.all_proofs() for name in (proof.name, proof.block)}
    points = {group.name for group in functional.GROUPS}
    for one in plan:
        for what, given, there in (
            ("test", one.tests, names),
            ("point", one.points, points),
            ("proof", one.proofs, proofs),
        ):
            for name in given:
                if name not in there:
                    hint = registry.near(name, sorted(there))
                    raise PlanError(f"{path.name}: {one.name}: no {what} is called {name!r}{hint}")
    planned = {name for one in plan for name in one.tests}
    left = sorted(test for test, called in known.items() if not called & planned)
    if left:
        raise PlanError(f"{path.name}: no entry has {', '.join(left)}; put each into a feature")
    return plan


def page() -> str:
    """Return the page of the plan."""
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        "<!-- Written by `python -m dev.test_plan` from dev/test_plan.toml; do not edit. -->",
        "# Test plan",
        "",
        "What is shown of each feature: the tests, the groups of",
        "[functional coverage](regression.md#functional-coverage) that they must meet, and the",
        "[proofs](formal.md). `make coverage` says how the last regression stands to it.",
    ]
    plan = load()
    for stage in STAGES:
        lines += ["", f"## On the stage: {stage}", "", "| feature | tests | points | proofs |"]
        lines.append("|---|---|---|---|")
        for one in plan:
            if one.stage == stage:
                cells = [", ".join(f"`{name}`" for name in names) for names in _named(one)]
                lines.append(f"| **{one.name}**: {one.text} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _named(one: Feature) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return tests, points and proofs as the page names them."""
    tests = [f"npu unit {name.removeprefix('unit/')}" if "unit/" in name else name
             for name in one.tests]  # fmt: skip
    return tests, one.points, one.proofs


def annotated(
    plan: Sequence[Feature],
    outcomes: Sequence[Outcome],
    found: Sequence[functional.Found],
    run: int,
) -> list[Standing]:
    """Return how a regression stands to the plan.

    Args:
        plan: its entries.
        outcomes: of the regression.
        found: of all points.
        run: number of the regression.
    """
    called = registered()
    rows = []
    for one in plan:
        mine = {test for test, names in called.items() if names & {*one.tests}}
        ended = [outcome for outcome in outcomes if outcome.task.name in mine]
        bins = [item for item in found if item.name.rpartition(".")[0] in one.points]
        rows.append(
            Standing(
                one.name,
                one.stage,
                run,
                sum(outcome.passed for outcome in ended),
                sum(outcome.failed for outcome in ended),
                sorted(mine - {outcome.task.name for outcome in ended}),
                sum(item.bins for item in bins),
                sum(item.covered for item in bins),
            )
        )
    return rows


def write_report(rows: Sequence[Standing], path: Path = REPORT) -> None:
    """Write how a regression stands to the plan."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([*map(asdict, rows)], indent=1) + "\n", encoding="utf-8")


def text(rows: Sequence[Standing]) -> str:
    """Return it as a table."""
    lines = [f"{'feature':24}{'stage':>8}{'passed':>8}{'failed':>8}{'not run':>9}{'bins met':>16}"]
    for row in rows:
        met = f"{row.met} of {row.bins}"
        lines.append(
            f"{row.feature:24}{row.stage:>8}{row.passed:>8}{row.failed:>8}"
            f"{len(row.not_run):>9}{met:>16}"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Write the page; with --check only compare it."""
    try:
        return marked_page.run(argv, "dev.test_plan", __doc__, PAGE, lambda _: page())
    except PlanError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
