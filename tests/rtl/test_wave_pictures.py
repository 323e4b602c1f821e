# SPDX-License-Identifier: Apache-2.0
"""What the pages tell readers to open is seen in GTKWave: names, waves, instructions as mnemonics.

Each example of the pages is recorded by the command itself and opened. The picture is compared with
that of a small waveform which is written here: the names are those of `tb/hdl/waves.toml`, and the
values follow from the bench's log of the same test, not from the recorded waveform.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npu import optional
from spec.isa import OPCODES, Engine, Opcode
from spec.paths import HDL, ROOT
from tb.bench import logs
from tb.bench.failure import Failure
from tb.run import build, registry, runner, units, waves
from tests.bench.process import npu
from tests.needs import needs
from tests.rtl import gtkwave_screen
from tests.rtl.gtkwave_screen import Geometry, Picture, ViewerRow

EXAMPLE = re.compile(r"make waves\s+TESTCASE=(\w+)(?:\s+SEED=(\d+))?")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted(
    {
        (found[1], int(found[2] or 1))
        for page in PAGES
        for found in EXAMPLE.finditer(page.read_text(encoding="utf-8"))
    }
)
SST = ["[sst_expanded] 0"]
SEEN_NS = 20_000
"""More than a screen shows."""

Values = tuple[tuple[int, int], ...]


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """Start a screen."""
    needs("gtkwave", "xvfb", *optional.WAVES)
    with gtkwave_screen.screen() as name:
        yield name


def _edge(cycle: int) -> int:
    """Return when a cycle begins: the clock rises after half of the first one."""
    return max(0, cycle * 10 - 5)


def _leaf(name: str) -> str:
    """Return what the viewer shows of a name: an element of an array with its array."""
    *_, parent, last = name.split(".")
    return parent + last if last.startswith("[") else last


CLOCK: Values = tuple((time, time // 5 % 2) for time in range(0, SEEN_NS, 5))
CYCLE: Values = tuple((_edge(cycle), cycle) for cycle in range(SEEN_NS // 10))


def _log_of(
    test: registry.BenchTest, seed: int, folder: Path, fst: Path | None = None
) -> logs.Records:
    """Run a test and return what was dispatched and what was done; record it on request."""
    model = build.Configuration(kind="debug")
    build.build(model)
    result = runner.run(runner.Job(test, model, seed, fst, folder / "run"))
    assert result.passed, result.message
    return logs.Log(folder / "run" / "events.bin", logs.EVENT).take()


def _known(events: logs.Records) -> dict[str, Values]:
    """Return the values of the signals that follow from the log: the opcodes of the instructions.

    An engine is busy with the oldest instruction that was dispatched to it and is not done.
    """
    fired: list[tuple[int, int]] = []
    dispatched = [(0, int(Opcode.NOP))]
    queues: dict[Engine, list[int]] = {engine: [] for engine in list(Engine)[:6]}
    shown: dict[Engine, dict[int, int]] = {engine: {0: int(Opcode.NOP)} for engine in queues}
    busy = {0: 0}
    for event in events[events["cycle"] < SEEN_NS // 10]:
        cycle = int(event["cycle"])
        after = _edge(cycle + 1)
        if event["kind"] == logs.DISPATCH:
            opcode = Opcode(int(event["word"][0]))
            fired += [(_edge(cycle), 1), (after, 0)]
            dispatched.append((after, int(opcode)))
            engine = Engine(OPCODES[opcode].engine)
            if engine in queues:
                queues[engine].append(int(opcode))
        else:
            engine = Engine(int(event["engine"]))
            queues[engine].pop(0)
        for each, queue in queues.items():
            shown[each][after] = queue[0] if queue else int(Opcode.NOP)
        busy[after] = sum(1 << each for each, queue in queues.items() if queue)
    probe = "tb_top.u_probe"
    return {
        "tb_top.clk": CLOCK,
        "tb_top.cycle": CYCLE,
        f"{probe}.dispatch_fire": ((0, 0), *sorted(dict(fired).items())),
        f"{probe}.dispatched": tuple(dict(dispatched).items()),
        "tb_top.engine_busy": tuple(busy.items()),
        **{f"{probe}.{each.name.lower()}": tuple(shown[each].items()) for each in queues},
    }


def _words(folder: Path) -> Path:
    """Write the names of the opcodes for the viewer."""
    path = folder / "words.txt"
    lines = [f"{opcode:02X} {opcode.name}\n" for opcode in Opcode]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _group(heading: str, rows: list[ViewerRow]) -> list[ViewerRow]:
    return [ViewerRow(heading), *rows, ViewerRow(heading, ends=True)]


def chip_rows(widths: dict[str, int], known: dict[str, Values], words: Path) -> list[ViewerRow]:
    """Return what is to be seen of a test on the chip, its values from the first instruction on."""
    first = known["tb_top.u_probe.dispatched"][1][0]
    view = tomllib.loads((HDL / "waves.toml").read_text(encoding="utf-8"))
    mnemonics = set(view["mnemonics"]["npu_mnemonics.txt"])
    return list(
        chain.from_iterable(
            _group(
                group["name"],
                [
                    ViewerRow(
                        _leaf(name),
                        widths[name],
                        values=known.get(name, ()),
                        since=first - 10,
                        decimal=name in view["decimals"],
                        filter=words if name in mnemonics else None,
                    )
                    for name in group["signals"]
                ],
            )
            for group in view["group"]
        )
    )


def block_rows(widths: dict[str, int]) -> list[ViewerRow]:
    """Return what is to be seen of the bench of a block: every port of its instances, by fields."""
    rows: dict[str, list[ViewerRow]] = {}
    for name, width in widths.items():
        _, instance, *port = name.split(".")
        if port and re.search(r"_n?[io]$", port[0]):
            text = "/".join(port)
            values = CLOCK if text == "clk_i" else ()
            rows.setdefault(instance, []).append(ViewerRow(text, width, values=values))
    return list(chain.from_iterable(_group(name, rows[name]) for name in sorted(rows)))


def _compare(
    display: str, save_files: tuple[Path, Path], rows: list[ViewerRow], geometry: Geometry
) -> list[Picture]:
    """Compare what is seen of a save file with what is to be seen; both stay beside the latter."""
    home = save_files[1].parent
    pictures = [gtkwave_screen.shot(display, file, home) for file in save_files]
    paths = [home / "seen.png", home / "expected.png"]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture).save(path)
    found = gtkwave_screen.differences(pictures[0], pictures[1], rows, geometry)
    assert not found, "\n".join([*found, *map(str, paths)])
    return pictures


def test_the_pages_have_examples() -> None:
    """One of the chip and one of a block at least; a new one is tested as well."""
    names = {test.name for test in units.tests_of()}
    assert {name in names for name, _ in EXAMPLES} == {True, False}


@pytest.mark.parametrize(("name", "seed"), EXAMPLES)
def test_an_example_of_the_pages_is_seen(
    name: str, seed: int, display: str, tmp_path: Path
) -> None:
    """The command records it, the viewer opens it, and the picture is what it should be."""
    recorded = npu("waves", "--seed", str(seed), name)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    told = re.search(r"^waves: gtkwave (\S+)$", recorded.stdout, re.MULTILINE)
    assert told is not None, recorded.stdout
    save_file = ROOT / told[1]
    widths = waves.signals_in(save_file.with_suffix(".fst"))
    tests = {test.name: test for test in registry.discover()}
    if name in tests:
        known = _known(_log_of(tests[name], seed, tmp_path))
        assert len(known["tb_top.u_probe.dispatched"]) > 2, "nothing happens on the first screen"
        rows = chip_rows(widths, known, _words(tmp_path))
    else:
        rows = block_rows(widths)
    header = gtkwave_screen.header_of(save_file)
    geometry = gtkwave_screen.measured(display, tmp_path / "measured", header)
    assert len(geometry.bands) > 30
    reference = gtkwave_screen.write_waveform(tmp_path / "reference", rows, SEEN_NS, header)
    _compare(display, (save_file, reference), rows, geometry)


def test_a_failure_is_seen_at_its_marker(display: str, tmp_path: Path) -> None:
    """The marker has its name, and beside the names stands what the engine executes there."""
    (test,) = registry.select(["test_program_queues"], registry.discover())
    fst = tmp_path / "failed.fst"
    known = _known(_log_of(test, 1, tmp_path, fst))
    executed = known["tb_top.u_probe.vec"]
    time = next(at for at, opcode in executed if opcode == Opcode.VEC) + 25
    told = Failure(test.name, 0, time // 10, 3, "VEC", "wrong")
    save_file = waves.write_save_file(fst, told=told)
    header = [
        "[size] 1600 1000",
        "[signals_width] 400",
        f"[timestart] {time - 640}",
        f"*-7.5 {time} {time}{' -1' * 25}",
        "[markername] AFirst mismatch",
        "[sst_expanded] 0",
    ]
    rows = [
        ViewerRow("First mismatch"),
        ViewerRow("cycle", 64, values=CYCLE, decimal=True),
        ViewerRow("vec", 8, values=executed, filter=_words(tmp_path)),
    ]
    # What stands below is not compared; its longest name is as wide as the column.
    below = [ViewerRow("sram_wr_data[4]", 128), ViewerRow("First mismatch", ends=True)]
    geometry = gtkwave_screen.measured(display, tmp_path / "measured", header)
    reference = gtkwave_screen.write_waveform(
        tmp_path / "reference", [*rows, *below], SEEN_NS, header
    )
    seen, expected = _compare(display, (save_file, reference), rows, geometry)
    assert np.array_equal(geometry.times(seen), geometry.times(expected))


def test_a_wrong_picture_is_noticed(display: str, tmp_path: Path) -> None:
    """Another name, another mnemonic, a signal that is missing, no picture at all."""
    words = _words(tmp_path)
    values = ((0, int(Opcode.NOP)), (1000, int(Opcode.GEMM)))
    begin, gemm, irq, end = rows = [
        ViewerRow("Engines"),
        ViewerRow("gemm", 8, values=values, filter=words),
        ViewerRow("irq", 1),
        ViewerRow("Engines", ends=True),
    ]
    word = replace(gemm, values=(values[0], (1000, int(Opcode.VEC))))
    late = replace(gemm, values=(values[0], (1040, int(Opcode.GEMM))))
    shown = {
        "right": rows,
        "name": [begin, gemm, ViewerRow("inq", 1), end],
        "word": [begin, word, irq, end],
        "late": [begin, late, irq, end],
        "missing": [begin, gemm, end],
    }
    header = ["[size] 1600 1000", "[signals_width] 400", "[timestart] 0", "*-9.5 -1", *SST]
    geometry = gtkwave_screen.measured(display, tmp_path / "measured", header)
    pictures = {
        name: gtkwave_screen.shot(
            display, gtkwave_screen.write_waveform(tmp_path / name, each, SEEN_NS, header), tmp_path
        )
        for name, each in shown.items()
    }
    right = pictures["right"]
    found = {
        name: gtkwave_screen.differences(picture, right, rows, geometry)
        for name, picture in pictures.items()
    }
    other_values = "row 1: the wave of gemm shows other values"
    assert found["right"] == []
    assert found["name"] == ["row 2: the name is not 'irq'"]
    assert found["word"] == found["late"] == [other_values]
    assert "row 2: irq has no wave" in found["missing"]
    blank = gtkwave_screen.differences(np.zeros_like(right), right, rows, geometry)
    assert len(blank) == len(rows) + 2
    white = (right == 255).all(axis=2, keepdims=True)
    pale = np.where(white, 0, right).astype(np.uint8)  # without the words
    assert other_values in gtkwave_screen.differences(pale, right, rows, geometry)
