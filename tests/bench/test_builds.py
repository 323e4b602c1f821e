# SPDX-License-Identifier: Apache-2.0
"""The builds are the same chip, every event in the same cycle, and cheap to make."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from npu import optional
from spec.paths import GENERATED, ROOT, RTL
from tb.bench import logs
from tb.run import build, registry, runner
from tests.needs import needs

NAMES = (
    "test_program_barriers",  # all engines
    "test_program_queues",  # all of them at once, full queues
    "test_stream_tickets",  # three consumers of the stream
    "test_dma_boundaries",  # bursts of every length, both directions
    "test_gemm_single_rows",  # both weight sets wait
)


@pytest.mark.parametrize("name", NAMES)
def test_builds_agree_cycle_by_cycle(name: str, tmp_path: Path) -> None:
    """Every start, dispatch, completion and interrupt of a test, with its cycle, in both builds.

    The one that sees everything can record waves, or it would be a third build.
    """
    needs(*optional.WAVES)
    (test,) = registry.select([name], registry.discover())
    found: list[list[logs.Records]] = []
    kinds: tuple[build.Kind, ...] = ("fast", "debug")
    for kind in kinds:
        configuration = build.Configuration(kind=kind)
        build.build(configuration)
        result = runner.run(runner.Job(test, configuration, 7, place=tmp_path / kind))
        assert result.passed, result.message
        files = ("events.bin", "trace.bin")
        found.append([np.fromfile(tmp_path / kind / file, logs.EVENT) for file in files])
    assert found[0][0].size > 20
    for fast, debug in zip(*found, strict=True):
        assert np.array_equal(fast, debug)


@pytest.mark.parametrize("cached", [False, True])
def test_nothing_is_made_again_when_nothing_changed(
    monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    """Neither Verilator's front end nor the compiler works a second time, whatever was touched.

    Nor when a compiler's cache has come or gone.
    """
    configuration = build.Configuration()
    build.build(configuration)
    made = sorted(configuration.folder.iterdir())
    times = {path: path.stat().st_mtime_ns for path in made if path.suffix in {".cpp", ".mk", ".o"}}
    assert len(times) > 20
    (RTL / "npu_top.sv").touch()
    monkeypatch.setattr(optional, "has", lambda _: cached)
    build.generate()
    build.build(configuration)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_sources_are_generated_again_after_a_change_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a generated file or of what it is generated from; a missing one is a change."""
    build.generate()
    home, asked = tmp_path / "gen", list[str]()
    shutil.copytree(GENERATED, home)
    monkeypatch.setattr(build, "GENERATED", home)
    monkeypatch.setattr(build, "called", lambda _, what, __: asked.append(what))

    def generators() -> int:
        asked.clear()
        build.generate()
        return len(asked)

    assert [generators() for _ in range(3)] == [2, 0, 0], "another folder, then nothing new"
    (home / "npu_mnemonics.txt").write_text("00 NOTHING\n", encoding="utf-8")
    assert [generators() for _ in range(2)] == [2, 0]
    (home / "regs" / "npu_chip_regs.sv").unlink()
    assert [generators() for _ in range(2)] == [2, 0]
    for name in (
        "isa/isa.toml",
        "isa/reference.md.tmpl",
        "isa/emit_sv.py",
        "regs/npu_cmd_regs.rdl",
    ):
        root = _copy(tmp_path / name.replace("/", "-"))
        monkeypatch.setattr(build, "ROOT", root)
        assert [generators() for _ in range(2)] == [2, 0], "another tree, then nothing new"
        with (root / "spec" / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        assert [generators() for _ in range(2)] == [2, 0], name


def _copy(root: Path) -> Path:
    """Return a copy of all that is generated from."""
    for folder in ("spec/isa", "spec/regs", "firmware/include"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "constraints.txt", root)
    return root


def test_every_clone_makes_the_same_cpp() -> None:
    """What Verilator writes does not name the clone's folder, so a compiler cache serves all."""
    configuration = build.Configuration()
    build.build(configuration)
    sources = [*configuration.folder.glob("Vtop*.cpp"), *configuration.folder.glob("Vtop*.h")]
    assert len(sources) > 10
    assert [path.name for path in sources if str(ROOT) in path.read_text(encoding="utf-8")] == []


def test_register_structs_are_packed() -> None:
    """An unpacked struct becomes a C++ class: three times the compiler's work for the chip."""
    build.generate()
    texts = [path.read_text(encoding="utf-8") for path in (GENERATED / "regs").glob("*.sv")]
    assert sum(text.count("struct packed {") for text in texts) > 100
    assert not any("struct {" in text for text in texts)
