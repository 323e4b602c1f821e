# SPDX-License-Identifier: Apache-2.0
"""A second core drives the coprocessor's port: CVA6, known by its ports alone, with two sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu.firmware import compile as firmware
from npu.firmware.compile import EXAMPLES
from tb.soc import program_run
from tb.soc.program_run import MachineKnobs
from tests.needs import needs
from tests.python.driver.firmware_support import expected_text
from tests.soc import support

HASTE = MachineKnobs(latency=1, core_gap=20, seed=3)
"""Memory that answers the chip at once, and the core late: orders between them show."""


def _compiled(folder: Path, name: str, header: str) -> Path:
    """Compile a program as it is, a header in front."""
    return firmware.compile_sources(
        [folder / f"{name}.c"],
        name,
        flags=("-include", header),
        output=program_run.FOLDER / f"test-{name}-{Path(header).stem}-{os.getpid()}.elf",
    )


@pytest.mark.parametrize("mood", [MachineKnobs(), HASTE], ids=["plain", "haste"])
def test_vectors_on_cva6(mood: MachineKnobs) -> None:
    """Every vector instruction: the text is that on CV32E40X, and what golden says."""
    needs("emulator")
    ran = support.run(
        _compiled(EXAMPLES / "vectors", "vectors", "npu_cva6.h"), "cva6-vectors", mood, core="cva6"
    )
    other = support.run(firmware.compile_program("vectors"), "cv32e40x-vectors")
    assert (ran.output, ran.code) == (other.output, 0)
    assert ran.output.decode() == expected_text("vectors")


def test_fence_on_cva6() -> None:
    """The core commits with the issue, and loads early: each is executed once, no load is stale."""
    needs("emulator")
    program = _compiled(support.PROGRAMS, "fence", "npu_cva6.h")
    ran = support.run(program, "cva6-fence", core="cva6")
    total = sum(i * (i + 1) for i in range(16))
    assert (ran.output, ran.code) == (b"16 times, sum %d, stale 0\n" % total, 0)


def test_three_sources_are_refused() -> None:
    """Each instruction that reads three registers traps on CVA6; the next others are executed."""
    needs("emulator")
    ran = support.run(support.test_program("two_sources"), "cva6-refused", core="cva6")
    assert (ran.output, ran.code) == (b"12 refused\nMACC 12\n", 0)
