# SPDX-License-Identifier: Apache-2.0
"""A second opinion on the buses: the wrapper of `make ip` between the models of cocotbext-axi."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.needs import needs

needs("ip")

from dev.ip import contents, top_ports
from spec.configurations import USUAL
from spec.paths import BUILD
from tb.run import build, registry, runner, sources
from tests.suites import second_bench


@dataclass(frozen=True)
class WrapperModel(build.Configuration):
    """The wrapper with the coprocessor's port as the top, all of its ports open to Python.

    Attributes:
        place: folder of the wrapper, another one for another text.
    """

    place: Path = BUILD

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
        """None: the usual chip's are the defaults."""
        return []

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads."""
        own = [self.place / name for name in ("ports.vlt", "tessera.v")]
        return [own[0], *sources.waivers(), *sources.rtl_sources(), own[1]]


@pytest.fixture(scope="module")
def model() -> WrapperModel:
    """Chip and wrapper, built."""
    build.generate()
    parameters = [f"-G{name}={value}" for name, value in USUAL.parameters.items()]
    ports = top_ports.of_top(sources.rtl_sources(), parameters)
    release = contents.Release(USUAL, "0.0.1", "0" * 40)
    text = contents.verilog(release, ports, top_ports.of_wrapper(ports, coprocessor=True))
    place = BUILD / "second" / hashlib.sha256(text.encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    (place / "tessera.v").write_text(text, encoding="utf-8")
    waiver = '`verilator_config\npublic_flat_rw -module "tessera" -var "*"\n'
    (place / "ports.vlt").write_text(waiver, encoding="utf-8")
    found = WrapperModel(place=place)
    build.build(found)
    return found


@pytest.mark.parametrize(
    "name",
    ["test_block", "test_decode", "test_ring", "test_coprocessor", "test_a_difference_is_seen"],
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
