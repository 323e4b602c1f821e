# SPDX-License-Identifier: Apache-2.0
"""A second opinion on the buses: the wrapper of `make ip` between the models of cocotbext-axi."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.needs import needs

needs("ip")

from dev.ip import archive, contents
from spec.configurations import USUAL
from spec.paths import BUILD, GENERATED
from tb.run import build, registry, runner, sources
from tests.suites import second_bench

FOLDER = BUILD / "second"


@dataclass(frozen=True)
class WrapperModel(build.Configuration):
    """The wrapper of a release as the top, all of its ports open to Python."""

    @property
    def top(self) -> str:
        """The wrapper."""
        return "tessera"

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        return BUILD / "sim" / f"second-{self.chip.name}"

    @property
    def parameters(self) -> list[str]:
        """None: they are the defaults in the release."""
        return []

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads."""
        wrapper = FOLDER / "tessera.v"
        ports = FOLDER / "ports.vlt"
        return [ports, *sources.waivers(), *sources.rtl_sources(), wrapper]


@pytest.fixture(scope="module")
def model() -> WrapperModel:
    """Chip and wrapper, built."""
    build.generate()
    made = contents.contents(contents.Release(USUAL, "0.0.1", archive.commit()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "tessera.v").write_text(made["rtl/tessera.v"], encoding="utf-8")
    waiver = '`verilator_config\npublic_flat_rw -module "tessera" -var "*"\n'
    (FOLDER / "ports.vlt").write_text(waiver, encoding="utf-8")
    assert GENERATED.exists()
    found = WrapperModel()
    build.build(found)
    return found


@pytest.mark.parametrize(
    "name", ["test_block", "test_decode", "test_ring", "test_a_difference_is_seen"]
)
def test_the_same_bytes(name: str, model: WrapperModel, tmp_path: Path) -> None:
    """On the chip and on the reference, of all memory."""
    test = registry.BenchTest(second_bench.__name__, name, "second bench", 1 << 16)
    job = runner.Job(test, model, place=tmp_path)
    runner.prepare(job)
    result = runner.run(job)
    assert result.passed, result.message
    cases = ElementTree.parse(tmp_path / "results.xml").findall(".//testcase")
    assert [case.get("name") for case in cases] == [name]
