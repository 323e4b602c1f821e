# SPDX-License-Identifier: Apache-2.0
"""`npu generate` refuses in one line, with status 2, before anything is built or simulated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tb import build, cli
from tb.models import generate, load
from tb.paths import ROOT
from weights.calibrate import ActivationScales, calibrate
from weights.checkpoint import Checkpoint
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

MODEL = str(ROOT / "weights" / "checkpoints" / "gpt2-tiny")


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build or to simulate an error."""

    def fail(*arguments: object, **_: object) -> None:
        raise AssertionError(f"went on with {arguments}")

    monkeypatch.setattr(build, "build", fail)
    monkeypatch.setattr(build, "generate", fail)
    monkeypatch.setattr(generate, "run", fail)


@pytest.fixture
def quick_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure activations on a few tokens instead of the corpus."""

    def scales_of(checkpoint: Checkpoint) -> ActivationScales:
        return calibrate(checkpoint, random_tokens(checkpoint.shape, 1, 1)[:, :8])

    monkeypatch.setattr(load, "scales_for", scales_of)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command in this process and return the line that it refuses with."""
    try:
        status: object = cli.main(["generate", *arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert (status, printed.out, len(lines)) == (2, "", 1), (status, printed)
    return lines[0]


@pytest.mark.parametrize(
    ("prompt", "more", "line"),
    [
        ("", [], "npu: prompt: given an empty text, allowed at least one character"),
        ("x" * 129, [], "npu: prompt: given 129 tokens, allowed 1 to 128 (context)"),
        ("é" * 65, [], "npu: prompt: given 130 tokens, allowed 1 to 128 (context)"),
        ("x" * 128, ["--tokens", "2"], "npu: tokens: given 2 after a prompt of 128, allowed 1 to "),
        ("x", ["--tokens", "129"], "npu: tokens: given 129 after a prompt of 1, allowed 1 to 128 "),
        ("x", ["--tokens", "0"], "npu generate: argument --tokens: given '0', allowed whole numb"),
        ("x", ["--tokens", "-5"], "npu generate: argument --tokens: given '-5', allowed whole "),
        ("x", ["--tokens", "1.5"], "npu generate: argument --tokens: given '1.5', allowed whole "),
        ("x", ["--tokens", "many"], "npu generate: argument --tokens: given 'many', allowed whol"),
        ("x", ["--tokens", "٣"], "npu generate: argument --tokens: given '٣', allowed whole numb"),
        ("x", ["--top-k", "-1"], "npu generate: argument --top-k: given '-1', allowed whole numbe"),
        ("x", ["--seed", "-1"], "npu generate: argument --seed: given '-1', allowed whole numbers"),
        ("x", ["--temperature", "-0.1"], "npu: Sampler.temperature: given -0.1, allowed finite an"),
        ("x", ["--temperature", "nan"], "npu: Sampler.temperature: given nan, allowed finite and "),
        ("x", ["--temperature", "inf"], "npu: Sampler.temperature: given inf, allowed finite and "),
        ("x", ["--temperature", "hot"], "npu generate: argument --temperature: invalid float val"),
        ("x", ["--latency", "0"], "npu generate: argument --latency: given '0', allowed whole nu"),
        ("x", ["--latency", "65536"], "npu generate: argument --latency: given '65536', allowed"),
        ("x", ["--array-dim", "5"], "npu generate: argument --array-dim: given '5', allowed 4, 8"),
        ("x", ["--cache", "disk"], "npu generate: argument --cache: invalid choice: 'disk' (choo"),
        ("x", ["--nonsense"], "npu: unrecognized arguments: --nonsense"),
    ],
)
def test_refused_options(
    capsys: pytest.CaptureFixture[str], prompt: str, more: list[str], line: str
) -> None:
    """Every option that can be wrong, and prompts that the context cannot hold."""
    assert refused([MODEL, "--prompt", prompt, *more], capsys).startswith(line)


def test_no_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no default text."""
    line = refused([MODEL], capsys)
    assert line == "npu generate: the following arguments are required: --prompt"


def test_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is not there, one without a model, and a file."""
    line = refused([str(tmp_path / "none"), "--prompt", "x"], capsys)
    assert "/none', which is no folder; allowed is a folder with config.json and" in line
    line = refused([str(tmp_path), "--prompt", "x"], capsys)
    assert line == f"npu: {tmp_path}: config.json is missing in {tmp_path}"
    line = refused([str(Path(MODEL) / "config.json"), "--prompt", "x"], capsys)
    assert "which is a file" in line


@pytest.mark.usefixtures("quick_scales")
def test_ids_outside_the_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tokenizer that knows more tokens than the model has."""
    write_checkpoint(random_checkpoint(shape_of("llama", vocab=20, context=16), 1), tmp_path)
    words = {f"w{index}": index for index in range(30)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    line = refused([str(tmp_path), "--prompt", "w3 w19 w20"], capsys)
    assert re.search(r"given token id 20 at index 2, allowed 0 to 19", line), line


@pytest.mark.usefixtures("quick_scales")
def test_cache_that_fits_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cache that shall lie in SRAM and is too large for it."""
    shape = shape_of("llama", vocab=256, context=4096, layers=2)
    write_checkpoint(random_checkpoint(shape, 1), tmp_path)
    line = refused([str(tmp_path), "--prompt", "x", "--cache", "sram"], capsys)
    assert re.search(r"the K/V cache of 4096 positions.*needs \d+ bytes of SRAM", line), line
