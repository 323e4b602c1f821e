# SPDX-License-Identifier: Apache-2.0
"""Command lines that are refused: one line that says what is allowed, status 2, nothing built."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from npu.cli import command_line
from spec.paths import ROOT
from tests.bad_input.nothing import nothing_there

TEST = "test_program_end_only"
TINY, NOWHERE = "weights/checkpoints/gpt2-tiny", "weights/checkpoints/none"


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build an error: a wrong command must not get that far."""
    nothing_there(monkeypatch)


def refused(run: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process and return the line that it refuses with."""
    try:
        status: object = run()
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, ""), (status, printed)
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1, printed.err
    return printed.err.strip()


REFUSED: list[tuple[list[str], str]] = [
    (["embed", TINY], "npu: embed: given neither sentences nor --file, allowed one of them"),
    (["test", "nonsense"], "npu: no test is called 'nonsense'"),
    (["test", "test_gemm_randon"], "npu: no test is called 'test_gemm_randon'; near: test_gemm"),
    (["test", "test_gemm_*"], "npu: no test is called 'test_gemm_*'; near: test_gemm"),
    (["test", "*"], "npu: no test is called '*'"),
    (["test", "TEST_GEMM"], "npu: no test is called 'TEST_GEMM'"),
    (["test", f"{TEST},nonsense"], "npu: no test is called 'nonsense'"),
    (["test", ",".join(["nonsense"] * 60)], "npu: no test is called 'nonsense'"),
    (["test", f"{TEST} nonsense"], "npu: no test is called 'nonsense'"),
    (["test", ","], "npu: given ',', allowed names separated by commas or blanks"),
    (
        ["test", TEST, "--memory", "ddr5"],
        "npu test: argument --memory: invalid choice: 'ddr5' (choose from",
    ),
    (
        ["test", TEST, "--keep", "p3"],
        "npu test: argument --keep: KEEP: given 'p3', allowed what a failing test prints: a scene,",
    ),
    (["test", TEST, "test_gemm"], "npu: unrecognized arguments: test_gemm"),
    (
        ["test", TEST, "--seed", "0"],
        "npu test: argument --seed: given '0', allowed whole",
    ),
    (
        ["test", TEST, "--seed", "-1"],
        "npu test: argument --seed: given '-1', allowed whole",
    ),
    (
        ["test", TEST, "--seed", "x"],
        "npu test: argument --seed: given 'x', allowed whole",
    ),
    (
        ["test", TEST, "--seed", "1.5"],
        "npu test: argument --seed: given '1.5', allowed whole",
    ),
    (
        ["test", TEST, "--seed", "0x10"],
        "npu test: argument --seed: given '0x10', allowed whole",
    ),
    (
        ["test", TEST, "--seed", "\u0663"],
        "npu test: argument --seed: given '\u0663', allowed whole",
    ),
    (
        ["test", TEST, "--seed", ""],
        "npu test: argument --seed: given '', allowed whole",
    ),
    (["test", TEST, "--seed"], "npu test: argument --seed: expected one argument"),
    (
        ["test", TEST, "--seeds", "0"],
        "npu test: argument --seeds: given '0', allowed whole",
    ),
    (
        ["test", TEST, "--seeds", "all"],
        "npu test: argument --seeds: given 'all', allowed whole",
    ),
    (
        ["test", TEST, "-j", "0"],
        "npu test: argument -j/--jobs: given '0', allowed whole",
    ),
    (
        ["test", TEST, "--config", "a5"],
        "npu test: argument --config: given 'a5', allowed a16, a4",
    ),
    (
        ["test", TEST, "--config", "64"],
        "npu test: argument --config: given '64', allowed a16, a4",
    ),
    (
        ["test", TEST, "--config", ""],
        "npu test: argument --config: given '', allowed a16, a4",
    ),
    (["test", TEST, "--sim", "icarus"], "npu: SIM=icarus: only SIM=verilator is supported"),
    (["test", TEST, "--sim", ""], "npu: SIM=: only SIM=verilator is supported"),
    (["test", TEST, "--nonsense"], "npu: unrecognized arguments: --nonsense"),
    (["waves"], "npu: make waves needs TESTCASE=name"),
    (["waves", "nonsense"], "npu: no test is called 'nonsense'"),
    (["waves", ","], "npu: given ',', allowed names separated by commas or blanks"),
    (["waves", TEST, "--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
    (
        ["regress", "--seeds", "0"],
        "npu regress: argument --seeds: given '0', allowed whole",
    ),
    (["regress", "--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
    (["pytest", "--config", "a7"], "npu pytest: argument --config: given 'a7', allowed a16, a4"),
    (["pytest", "--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
    (["faults", "nonsense"], "npu: no fault is called nonsense; see faults/"),
    (["faults", "01-rounding-truncates,nonsense"], "npu: no fault is called nonsense; see fau"),
    (["faults", "--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
    (
        ["coverage", "isa.shap"],
        "npu: POINTS: given 'isa.shap', no group or point is called so; near",
    ),
    (["mutation", "npu_fetsh"], "npu: MUTANTS: given 'npu_fetsh', no file of rtl/ is called npu_"),
    (["mutation", ","], "npu: given ',', allowed names separated by commas or blanks"),
    (["mutation", "--count", "0"], "npu mutation: argument --count: given '0', allowed whole"),
    (["mutation", "--changed", "nowhere"], "npu: given 'nowhere', git knows no such branch or co"),
    (["mutation", "--sim", "vcs"], "npu: SIM=vcs: only SIM=verilator is supported"),
    (["mutation", "--tests", "test_gem"], "npu: no test is called 'test_gem'; near: test_gemm"),
    (["mutation", "--common", "golden/fixd.py"], "npu: MUTANTS: given 'golden/fixd.py', no common"),
    (["build", "slow"], "npu build: argument kind: invalid choice: 'slow' (choose from"),
    (
        ["build", "--config", "A16"],
        "npu build: argument --config: given 'A16', allowed a16, a4",
    ),
    (["pytest", "tests/nowhere"], "npu: pytest: given 'tests/nowhere', allowed files and folders"),
    (["pytest", "--skipped", "tests"], "npu: pytest --skipped: given 'tests' as well, allowed"),
    (["unit", "nonsense"], "npu: no block is called 'nonsense'"),
    (["unit", "vec", "--tests", "nonsense"], "npu: no test is called 'nonsense'"),
    (["soc", "nonsense"], "npu: program: given 'nonsense', allowed an ELF file or "),
    (["firmware", "nonsense", "--compiler", "gcc"], "npu: program: given 'nonsense', allowed"),
    (["generate", NOWHERE, "--prompt", "x"], f"npu: load_checkpoint: given '{NOWHERE}', "),
    (["chat", NOWHERE, "x"], f"npu: load_checkpoint: given '{NOWHERE}', "),
    (["evaluate", NOWHERE, "--text", "x"], "npu: x: cannot be read: No such file or directory"),
    (["evaluate", NOWHERE, "--text", __file__], f"npu: load_checkpoint: given '{NOWHERE}', "),
    (["evaluate", TINY, "--text", __file__, "--row", "1"], "npu evaluate: argument --row: given"),
    (
        ["evaluate", TINY, "--text", __file__, "--row", "129"],
        "npu: --row: given 129 tokens, allowed 2 to 128, the context",
    ),
    (["profile", NOWHERE, "--prompt", "x"], f"npu: load_checkpoint: given '{NOWHERE}', "),
    (["profile", TINY, "--prompt", ""], "npu: prompt: given an empty text, allowed at least"),
    (["compile", "none.onnx", "-o", "out"], "npu: none.onnx: No such file or directory"),
    (["run", "none/", "--on", "rtl"], "npu: none: "),
    (["explain", "none/"], "npu: none: given a name without plan.json, allowed"),
    (["inspect", "none/"], "npu: load_checkpoint: given 'none/', which is no folder"),
    (["estimate", "none/"], "npu: load_checkpoint: given 'none/', which is no folder"),
    (
        ["estimate", f"{TINY}/model.safetensors"],
        f"npu: load_checkpoint: given '{TINY}/model.safetensors', which is a file; allowed is",
    ),
    (["estimate", TINY, "--context", "0"], "npu estimate: argument --context: given '0', allowed"),
    (
        ["estimate", TINY, "--context", "129"],
        f"npu: {TINY}: --context: given 129, allowed 1 to 128",
    ),
    *(
        (
            [*words, "--context", "129"],
            f"npu: {TINY}: --context: given 129, allowed 1 to 128",
        )
        for words in (
            ["inspect", TINY],
            ["compile", TINY, "-o", "out"],
            ["compile", TINY, "-o", "out", "--shape", "tokens=1,8"],
            ["generate", TINY, "--prompt", "x"],
            ["chat", TINY, "x"],
            ["profile", TINY, "--prompt", "x"],
        )
    ),
    (
        ["inspect", "README.md", "--context", "9"],
        "npu: --context: given with a file, allowed with a checkpoint",
    ),
    (
        ["compile", "none.onnx", "-o", "out", "--context", "9"],
        "npu: --context: given with the file of a network, allowed with a checkpoint",
    ),
    (
        ["estimate", TINY, "--clock", "nan"],
        "npu estimate: argument --clock: given 'nan', allowed a",
    ),
    (["estimate", TINY, "--clock", "0"], "npu estimate: argument --clock: given '0', allowed a"),
    (["estimate", TINY, "--weights", "int3"], "npu estimate: argument --weights: given the format"),
    (
        ["estimate", TINY, "--weights", "int4", "--config", "a16-int8"],
        "npu: weights: given weights in int4, allowed int8",
    ),
    (["operator", "nonsense", "--on", "rtl"], "npu: operator 'nonsense': there is none, "),
    (["asm", "none.npu"], "npu: none.npu: cannot be read: "),
    (["disasm", "none.bin"], "npu: none.bin: cannot be read: "),
    (["bench", "-j", "0"], "npu bench: argument -j/--jobs: given '0', allowed whole"),
    (
        ["bench", "block_s61"],
        "npu: bench: given 'block_s61', allowed smoke, full, nightly or names ",
    ),
    (["bench", "block_s16,x"], "npu: bench: given 'x', allowed smoke, full, nightly or names"),
    (["bench", ""], "npu: bench: given '', allowed smoke, full, nightly or names"),
    (["bench-docs", "--raise", ","], "npu: given ',', allowed names separated by commas"),
    (["report", "--run", "0"], "npu report: argument --run: given '0', allowed whole"),
    (["cop-sweep", "nonsense"], "npu: given 'nonsense', allowed "),
    (["formal", "axi_reed"], "npu: no proof is called 'axi_reed'; near: axi_read"),
    (["lockstep", "nonsense"], "npu: no test is called 'nonsense'"),
    (
        ["lockstep", "test_cop_cases"],
        "npu: test_cop_integer_cases: given CONFIG=a4, allowed a16, ",
    ),
    (["lockstep", "--seed", "0"], "npu lockstep: argument --seed: given '0', allowed whole"),
    (["synth", "nonsense"], "npu: given 'nonsense', allowed "),
    (["timing", "nonsense"], "npu: given 'nonsense', allowed "),
    (["power", "nonsense"], "npu: given 'nonsense', allowed 'rows', 'array', "),
    (["power", "--model", "gpt3"], "npu: --model: given 'gpt3', allowed gpt2-tiny, llama-tiny"),
    (["power", "--weights", "int8,int3"], "npu: --weights: given 'int3', allowed int8, "),
    (["power", "--config", "a8"], "npu: --config: given 'a8', allowed a16"),
    (
        ["power", "--config", "a64"],
        "npu power: argument --config: given 'a64', allowed a16, a4, a8, a32, a16-int8",
    ),
    (["power", "rows", "--page"], "npu: --page: given a part, allowed "),
    (["fpga", "--config", "a64"], "npu: given 'a64', allowed a4, a8: chips for a board"),
    (["fpga", "--config", "a16"], "npu: given 'a16', allowed a4, a8: chips for a board"),
    (
        ["fpga", "--port", "/dev/null"],
        "npu: port: given /dev/null, allowed a serial port",
    ),
    (
        ["fpga", "--port", "nowhere"],
        "npu: port: given nowhere, allowed a serial port: No such file or directory",
    ),
    (
        ["fpga", "--port", "/dev/null", "--page"],
        "npu: --page: given with --port, allowed for the simulated board only",
    ),
    (
        ["fpga", "--self-test", "--unrouted"],
        "npu: --unrouted: given with --self-test, allowed without",
    ),
    (["fpga", "now"], "npu: unrecognized arguments: now"),
    (
        ["ip", "--config", "a64"],
        "npu ip: argument --config: given 'a64', allowed a16, a4, a8, a32, a16-int8",
    ),
    (["release", "now"], "npu: unrecognized arguments: now"),
    (["quality", "nonsense"], "npu: given 'nonsense', allowed gpt2-tiny, "),
    (["quality", "--publish", "--tokens", "9"], "npu: --publish: given a part, allowed all"),
    (["lint", "more"], "npu: unrecognized arguments: more"),
    (["format", "more"], "npu: unrecognized arguments: more"),
    (["gen", "more"], "npu: unrecognized arguments: more"),
    (
        ["regress", "--filter", "nonsense", "--scheduler", "tcp://127.0.0.1:1"],
        "npu: FILTER: given 'nonsense', no test",
    ),
    (["nonsense"], "npu: argument COMMAND: invalid choice: 'nonsense' (choose from"),
    ([], "npu: the following arguments are required: COMMAND"),
]


def test_every_command_is_here() -> None:
    """None may look at the machine before it looks at its arguments."""
    assert set(command_line.COMMANDS) <= {arguments[0] for arguments, _ in REFUSED if arguments}


@pytest.mark.parametrize(("arguments", "line"), REFUSED)
def test_command(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    """Every command, and every option that can be wrong; the machine has nothing."""
    assert refused(lambda: command_line.main(arguments), capsys).startswith(line)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (["TESTCASE=nonsense"], "npu: no test is called 'nonsense'"),
        (["TESTCASE=test_gemm*"], "npu: no test is called 'test_gemm*'; near: test_gemm"),
        (["TESTCASE=,"], "npu: given ',', allowed names separated by commas or blanks"),
        (
            [f"TESTCASE={TEST}", "SEED=x"],
            "npu test: argument --seed: given 'x', allowed whole",
        ),
        (
            [f"TESTCASE={TEST}", "SEED="],
            "npu test: argument --seed: given '', allowed whole",
        ),
        (
            [f"TESTCASE={TEST}", "SEED=1 2"],
            "npu test: argument --seed: given '1 2', allowed whole",
        ),
        (
            [f"TESTCASE={TEST}", "SEEDS=0"],
            "npu test: argument --seeds: given '0', allowed whole",
        ),
        ([f"TESTCASE={TEST}", "ARRAY_DIM=5"], "npu test: argument --config: given 'a5', allowed"),
        (
            [f"TESTCASE={TEST}", "JOBS=0"],
            "npu test: argument -j/--jobs: given '0', allowed whole",
        ),
        ([f"TESTCASE={TEST}", "SIM=icarus"], "npu: SIM=icarus: only SIM=verilator is supported"),
        (["waves"], "npu: make waves needs TESTCASE=name"),
    ],
)
def test_make(variables: list[str], line: str) -> None:
    """The variables of make reach the command whole, and its status comes back.

    Setting up is left out (PYTHON=true): the environment is the one that runs this test.
    """
    run = subprocess.run(
        ["make", "--no-print-directory", "PYTHON=true", f"VENV={sys.executable}", *variables],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    first, last = run.stderr.splitlines()
    assert first.startswith(line)
    assert re.match(r"make(\[\d+\])?: \*\*\*", last)  # numbered below another make
