# SPDX-License-Identifier: Apache-2.0
"""Coverage of blocks that are built for it: what their benches execute is counted, and merged."""

from __future__ import annotations

from dev.coverage.points import Points, merge, parse
from spec.paths import ROOT, RTL
from tb.run import build, runner, units

FIFO = "rtl/cells/npu_flush_fifo.sv"


def _simulated(block: str) -> Points:
    configuration = units.UnitConfiguration(block=block, coverage=True)
    build.build(configuration)
    runs = []
    for test in units.tests_of(block):
        result = runner.run(runner.Job(test, configuration))
        assert result.passed, result.message
        runs.append(parse(result.job.folder / "coverage.dat"))
    return merge(runs)


def test_a_branch_that_a_block_cannot_reach_is_missed() -> None:
    """The queues of the multiplexer are never flushed, those of the bench of cells are."""
    build.generate()
    muxes, cells = _simulated("axi_mux"), _simulated("cells")
    source = (ROOT / FIFO).read_text(encoding="utf-8").splitlines()
    flush = 1 + source.index("    end else if (flush_i) begin")

    def missed(points: Points) -> list[tuple[str, int, str]]:
        everything = zip(points.table.points, points.hit.tolist(), strict=True)
        return [(point.file, point.line, point.arm) for point, hit in everything if not hit]

    assert missed(muxes) == [(FIFO, flush, "if")]
    assert missed(merge([muxes, cells])) == []
    assert {point.file.split("/")[0] for point in muxes.table.points} == {RTL.name}
