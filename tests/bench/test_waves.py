# SPDX-License-Identifier: Apache-2.0
"""The save file of the waveform viewer: every signal it names exists in the recorded waveform."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import pywellen

from npu import optional
from tb.bench import failure
from tb.bench.failure import UNKNOWN, Failure
from tb.run import build, failure_waves, registry, runner, waves
from tests.needs import needs


def _record(folder: Path, window: tuple[int, int] | None = None) -> Path:
    """Record a short test, or a window of it, with the debug build."""
    needs(*optional.WAVES)
    configuration = build.Configuration(kind="debug")
    build.build(configuration)
    (test,) = registry.select(["test_program_end_only"], registry.discover())
    fst = folder / "short.fst"
    result = runner.run(runner.Job(test, configuration, 1, fst, folder / "run", window=window))
    assert result.passed, result.message
    return fst


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a short test with the debug build."""
    return _record(tmp_path_factory.mktemp("waves"))


def _changes(fst: Path, signal: str) -> dict[int, int]:
    """Return time in nanoseconds and value of each change of a signal."""
    found: dict[int, int] = {}

    def keep(time: int, _: object, value: int) -> None:
        found[time] = value

    pywellen.Waveform(str(fst)).stream_changes(keep, [signal])
    return found


def test_a_window_of_a_run_holds_its_cycles_and_no_others(recorded: Path, tmp_path: Path) -> None:
    """From the middle of its first cycle to that of its last, as the whole waveform has them."""
    fst = _record(tmp_path, window=(30, 70))
    whole, part = (_changes(each, "tb_top.cycle") for each in (recorded, fst))
    assert list(part.values()) == list(range(30, 71))
    assert min(part) == 300
    assert list(part.items())[1:] == [(time, whole[time]) for time in whole if 300 < time <= 700]
    clock = _changes(fst, "tb_top.clk")
    assert (min(clock), max(clock)) == (300, 700)


def test_every_named_signal_exists(recorded: Path) -> None:
    """The save file names signals of the waveform only, and every one of the view."""
    named = waves.named_signals(waves.write_save_file(recorded))
    widths = waves.signals_in(recorded)
    assert set(named) <= {waves.gtkwave_name(*signal) for signal in widths.items()}
    shown = [name for _, names in waves.load_view().groups for name in names]
    assert named == [waves.gtkwave_name(name, widths[name]) for name in shown]


def test_mnemonics_and_groups(recorded: Path) -> None:
    """Opcode bytes are shown through the translation that the ISA file generates."""
    text = waves.write_save_file(recorded).read_text(encoding="utf-8")
    files = Counter(waves.load_view().mnemonics.values())
    assert {file.name: number for file, number in files.items()} == {
        "npu_mnemonics.txt": 7,
        "npu_cop_mnemonics.txt": 2,
    }
    for number, (file, signals) in enumerate(files.items(), start=1):
        assert text.count(f"^{number} {file}") == signals
    shown = "".join(file.read_text(encoding="utf-8") for file in files)
    for name in ("03 GEMM", "01 VMAC", "FF -"):
        assert f"{name}\n" in shown
    headings = ("Host port", "Sequencer", "Engines", "Memory reads", "Descriptor ring")
    for heading in (*headings, "Coprocessor"):
        assert text.count(f"-{heading}\n") == 2


def _told(engine: str, cycle: int) -> Failure:
    """Return where a test has failed: at the write of an instruction, or for any reason without."""
    return Failure("test_x", 0, cycle, 3 if engine else UNKNOWN, engine, "wrong")


def _words(save_file: Path, first: str) -> list[str]:
    """Return the words of the line that begins so."""
    (line,) = (
        line
        for line in save_file.read_text(encoding="utf-8").splitlines()
        if line.startswith(first)
    )
    return line.removeprefix(first).split()


def test_it_opens_at_the_beginning(recorded: Path) -> None:
    """A run that has not failed has no marker."""
    save_file = waves.write_save_file(recorded)
    assert _words(save_file, "[timestart] ") == ["0"]
    assert set(_words(save_file, "*")[1:]) == {"-1"}
    assert "[markername]" not in save_file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("cycle", "start"), [(200, 1360), (9, 0)])
def test_it_opens_at_a_mismatch(recorded: Path, cycle: int, start: int) -> None:
    """The primary marker and a named one stand in the middle of its cycle, near the left."""
    save_file = waves.write_save_file(recorded, told=_told("VEC", cycle))
    assert _words(save_file, "[timestart] ") == [str(start)]
    _, primary, first, *others = map(float, _words(save_file, "*"))
    assert primary == first == 10 * cycle
    assert set(others) == {-1}
    assert _words(save_file, "[markername] A") == ["First", "mismatch"]


def test_a_recorded_run_that_has_failed_opens_there(recorded: Path, tmp_path: Path) -> None:
    """As `make waves` records it: the folder of the run says where."""
    test = registry.BenchTest("tb.tests.test_x", "test_x", "")
    job = runner.Job(test, build.Configuration(kind="debug"), place=tmp_path)
    assert _words(failure_waves.write_save_file(job, recorded), "[timestart] ") == ["0"]
    failure.save(tmp_path, _told("VEC", 200))
    assert _words(failure_waves.write_save_file(job, recorded), "[timestart] ") == ["1360"]


def test_an_end_that_nobody_knows_has_no_marker(recorded: Path) -> None:
    """As if it had not failed."""
    save_file = waves.write_save_file(recorded, told=_told("", UNKNOWN))
    assert _words(save_file, "[timestart] ") == ["0"]


def test_the_wrong_write_stands_on_top(recorded: Path) -> None:
    """What the engine executes, and the port through which it writes; without an engine nothing."""
    usual = waves.named_signals(waves.write_save_file(recorded))
    named = waves.named_signals(waves.write_save_file(recorded, told=_told("VEC", 200)))
    assert named == [
        "tb_top.cycle[63:0]",
        "tb_top.u_probe.vec[7:0]",
        "tb_top.u_probe.sram_wr_fire[5:0]",
        "tb_top.u_probe.sram_wr_addr.sram_wr_addr[4][15:0]",
        "tb_top.u_probe.sram_wr_instr.sram_wr_instr[4][31:0]",
        "tb_top.u_probe.sram_wr_data.sram_wr_data[4][127:0]",
        *usual,
    ]
    assert waves.named_signals(waves.write_save_file(recorded, told=_told("", 200))) == usual


def test_a_group_of_what_is_not_built_is_left_out(recorded: Path) -> None:
    """A chip without command port has no signals of it."""
    view = waves.load_view()
    absent = dict.fromkeys(view.needs, "tb_top.no_such_scope.")
    text = waves.write_save_file(recorded, replace(view, needs=absent)).read_text(encoding="utf-8")
    assert "-Descriptor ring" not in text
    assert "-Engines" in text


def test_a_signal_that_is_not_there_is_named(recorded: Path) -> None:
    """A view that the RTL has outgrown is an error, not an empty line."""
    view = replace(waves.load_view(), groups=(("Broken", ("tb_top.no_such_signal",)),))
    with pytest.raises(waves.WaveError, match=r"no signal tb_top\.no_such_signal"):
        waves.write_save_file(recorded, view)


def test_the_view_of_a_block() -> None:
    """The ports of every instance in its bench, structs by their fields, and nothing inside."""
    names = ["clk", "u_vec.clk_i", "u_vec.op_i.rows", "u_vec.state_q", "u_vec.u_walk.start_i"]
    view = waves.block_view(["unit_vec." + name for name in [*names, "u_control.rst_no"]])
    assert view.groups == (
        ("u_control", ("unit_vec.u_control.rst_no",)),
        ("u_vec", ("unit_vec.u_vec.clk_i", "unit_vec.u_vec.op_i.rows")),
    )
    assert view.fields
