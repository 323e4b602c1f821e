# SPDX-License-Identifier: Apache-2.0
"""`npu regress` with what it cannot do: one line, status 2, nothing built, no run begun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dev.regression import results, session
from dev.regression.results import Results
from npu.cli import command_line
from spec.paths import ROOT
from tb.run import build, registry
from tests.bad_input.nothing import nothing_there
from tests.needs import needs

TEST = "test_program_end_only"
DISCOVER = cache(registry.discover)


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make every attempt to build or run an error, and write no results of the project."""

    def fail(*arguments: object, **_: object) -> None:
        raise AssertionError(f"went on with {arguments}")

    nothing_there(monkeypatch)
    monkeypatch.setattr(registry, "discover", DISCOVER)
    monkeypatch.setattr(session, "run", fail)
    monkeypatch.setattr(results, "FILE", tmp_path / "results.sqlite")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["smok"], "npu: TIER=smok: given 'smok', allowed smoke, full, nightly"),
        ([""], "npu: TIER=: given '', allowed smoke, full, nightly"),
        (["smoke", "full"], "npu: unrecognized arguments: full"),
        (
            ["smoke", "--list", "--filter", "gem"],
            "npu: FILTER: given 'gem', no test, module, file,",
        ),
        (["smoke", "--filter", "unit"], "npu: FILTER: given 'unit', no test, module, file, block,"),
        (["--filter", "test_gemm_randon"], "npu: FILTER: given 'test_gemm_randon', no test"),
        (["--filter", "gemm,!gemm"], "npu: FILTER: given 'gemm,!gemm', which leaves no test"),
        (["--filter", ","], "npu: given ',', allowed names separated by commas or blanks"),
        (["--filter", "a\x1bb"], r"npu: FILTER: given 'a\x1bb', no test"),
        (["--filter"], "npu regress: argument --filter: expected one argument"),
        (["--shard", "5/4"], "npu: SHARD: given '5/4', allowed such as 1/4, the first of four"),
        (["--shard", "all"], "npu: SHARD: given 'all', allowed such as 1/4, the first of four"),
        (["--shard", "9/9", "--filter", TEST], "npu: SHARD=9/9: leaves no test of 1"),
        (["--seeds", "0"], "npu regress: argument --seeds: given '0', allowed whole numbers 1 to"),
        (["--seeds", "9" * 30], "npu regress: argument --seeds: given '999"),
        (["--seed", "9" * 30], "npu: SEED: given 999999999999999999999999999999, allowed whole"),
        (["--hostile", "-1"], "npu regress: argument --hostile: given '-1', allowed whole"),
        (["--hostile", "9" * 30], "npu regress: argument --hostile: given '9999"),
        (
            ["--memory", "ddr5"],
            "npu regress: argument --memory: invalid choice: 'ddr5' (choose from",
        ),
        (["--config", "a5"], "npu regress: argument --config: given 'a5', allowed a16, a4"),
        (["-j", "0"], "npu regress: argument -j/--jobs: given '0', allowed whole"),
        (["--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
        (["--changed", "main"], "npu: CHANGED=main: no run in "),
        (["--resume"], "npu: RESUME=1: no run was interrupted; leave it out"),
        (["--nonsense"], "npu: unrecognized arguments: --nonsense"),
    ],
)
def test_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    """Every option that can be wrong; no run is written down."""
    status: object
    try:
        status = command_line.main(["regress", *arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, ""), (status, printed)
    assert printed.err.startswith(line), printed.err
    assert printed.err.count("\n") == 1, printed.err
    if results.FILE.exists():
        assert Results(results.FILE).runs() == []


# The real command, with the file of results that RESULTS names


def regress(file: Path | str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "npu.cli", "regress", *words],
        cwd=ROOT,
        env={**os.environ, "RESULTS": str(file)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_list(tmp_path: Path) -> None:
    """It is printed, and nothing is written."""
    run = regress(tmp_path / "none" / "r.sqlite", "smoke", "--list", "--filter", "test_dma_random")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "rtl/fast-a16/test_dma_random/1/short\n1 tests\n"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/dev/null/r.sqlite", "npu: /dev/null"),
        ("/proc/r.sqlite", "npu: /proc/r.sqlite.lock: No such file or directory"),
        ("/", "npu: /: given a folder, allowed a file of results"),
        (".", "npu: .: given a folder, allowed a file of results"),
        ("FOLDER", "npu: FOLDER: given a folder, allowed a file of results"),
        ("FILE", "npu: FILE: file is not a database; move it away, or name another"),
    ],
)
def test_results_that_cannot_be_written(tmp_path: Path, file: str, line: str) -> None:
    """One line that says which file, and what to do."""
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "FILE").write_text("mine", encoding="utf-8")
    there = str(tmp_path / file) if file in ("FOLDER", "FILE") else file
    run = regress(there, "smoke", "--filter", TEST)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(line.replace(file, there)), run.stderr
    assert run.stderr.count("\n") == 1, run.stderr


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "tls://127.0.0.1:1"])
def test_no_scheduler(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
) -> None:
    """One line with the address, after little patience; no run has begun."""
    needs("cluster")
    monkeypatch.undo()
    from dev.regression import cluster

    monkeypatch.setattr(results, "FILE", tmp_path / "results.sqlite")
    monkeypatch.setattr(build, "generate", lambda: None)
    monkeypatch.setattr(cluster.connect, "__defaults__", (0.5,))
    status = command_line.main(["regress", "smoke", "--filter", TEST, "--scheduler", address])
    printed = capsys.readouterr()
    assert status == 2
    assert re.fullmatch(
        rf"npu: SCHEDULER={re.escape(address)}: no scheduler answers \(.*\); start one with "
        r"`dask scheduler`, or name its address\n",
        printed.err,
    ), printed.err
    store = Results(tmp_path / "results.sqlite")
    assert store.runs() == []


def test_a_file_that_another_regression_writes(tmp_path: Path) -> None:
    """One line that says which process does."""
    file = tmp_path / "results.sqlite"
    with session.lock(file):
        run = regress(file, "smoke", "--filter", TEST)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"npu: {file}: the regression of process {os.getpid()} writes it; wait for its end, or "
        "name another file by RESULTS=\n"
    )
