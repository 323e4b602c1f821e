# SPDX-License-Identifier: Apache-2.0
"""`npu generate` and `npu chat` refuse in one line, before anything is built or simulated."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from npu.cli import command_line
from npu.commands import load_model
from spec.paths import ROOT
from tb.models import generate
from tests.bad_input.nothing import nothing_there
from weights import quantize
from weights.calibrate import ActivationScales, ScalesError, calibrate, calibration_tokens
from weights.checkpoint import Checkpoint
from weights.importer import load_checkpoint
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

MODEL = str(ROOT / "weights" / "checkpoints" / "gpt2-tiny")


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build or to simulate an error."""

    def fail(*arguments: object, **_: object) -> None:
        raise AssertionError(f"went on with {arguments}")

    nothing_there(monkeypatch)
    monkeypatch.setattr(generate, "run", fail)


@pytest.fixture
def quick_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure activations on a few tokens instead of the corpus."""

    def scales_of(checkpoint: Checkpoint) -> ActivationScales:
        return calibrate(checkpoint, random_tokens(checkpoint.shape, 1, 1)[:, :8])

    monkeypatch.setattr(quantize, "scales_for", scales_of)


def refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], command: str = "generate"
) -> str:
    """Run the command in this process and return the line that it refuses with."""
    try:
        status: object = command_line.main([command, *arguments])
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
        ("x", ["--top-p", "1.5"], "npu: Sampler.top_p: given 1.5, allowed 0 to 1"),
        ("x", ["--top-p", "nan"], "npu: Sampler.top_p: given nan, allowed 0 to 1"),
        ("x", ["--min-p", "-1"], "npu: Sampler.min_p: given -1.0, allowed 0 to 1"),
        ("x", ["--repetition-penalty", "0"], "npu: Sampler.repetition_penalty: given 0.0, allowed"),
        ("x", ["--stop", ""], "npu generate: argument --stop: given '', allowed at least one char"),
        (
            "x",
            ["--stop-token", "-1"],
            "npu generate: argument --stop-token: given '-1', allowed wh",
        ),
        ("x", ["--stop-token", "256"], "npu: --stop-token: given 256, allowed 0 to 255"),
        (
            "x",
            ["--on", "chip"],
            "npu generate: argument --on: invalid choice: 'chip' (choose from ",
        ),
        (
            "x",
            ["--prompt-file", "x"],
            "npu generate: argument --prompt-file: not allowed with argu",
        ),
        ("x", ["--system", "y"], "npu: unrecognized arguments: --system y"),
        ("x", ["--temperature", "hot"], "npu generate: argument --temperature: invalid float val"),
        ("x", ["--latency", "0"], "npu generate: argument --latency: given '0', allowed whole nu"),
        ("x", ["--latency", "65536"], "npu generate: argument --latency: given '65536', allowed"),
        ("x", ["--config", "a5"], "npu generate: argument --config: given 'a5', allowed a16"),
        ("x", ["--cache", "disk"], "npu generate: argument --cache: invalid choice: 'disk' (choo"),
        ("x", ["--nonsense"], "npu: unrecognized arguments: --nonsense"),
    ],
)
def test_refused_options(
    capsys: pytest.CaptureFixture[str], prompt: str, more: list[str], line: str
) -> None:
    """Every option that can be wrong, and prompts that the context cannot hold."""
    assert refused([MODEL, "--prompt", prompt, *more], capsys).startswith(line)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ["--prompt", "x", "--batch", "4"],
            "npu: --batch 4: given one prompt, allowed --prompts F",
        ),
        (["--on", "golden"], "npu: --batch 2: given --on golden, allowed --on rtl"),
        (
            ["--cache", "sram"],
            "npu: --batch 2: given --cache sram, allowed a K/V cache of each pro",
        ),
        (
            ["--batch", "17"],
            "npu generate: argument --batch: given '17', allowed whole numbers 1 t",
        ),
        (["--batch", "0"], "npu generate: argument --batch: given '0', allowed whole numbers 1 to"),
        (["--speculate", "3"], "npu: --speculate 3: given --batch 2, allowed one of the two"),
        (
            ["--speculate", "16"],
            "npu generate: argument --speculate: given '16', allowed whole num",
        ),
        (["--tokens", "130"], "npu: /dev/stdin: "),
    ],
)
def test_refused_batches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], line: str
) -> None:
    """What does not go together, more than a step has rows, and a text that does not fit."""
    path = tmp_path / "prompts.txt"
    path.write_text("one\ntwo\n")
    given = [] if "--prompt" in more else ["--prompts", str(path), "--batch", "2"]
    assert refused([MODEL, *given, *more], capsys).startswith(line.replace("/dev/stdin", str(path)))


def test_no_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no default text."""
    line = refused([MODEL], capsys)
    assert line == "npu generate: one of the arguments --prompt --prompt-file --prompts is required"


def test_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is not there, one without a model, and a file."""
    line = refused([str(tmp_path / "none"), "--prompt", "x"], capsys)
    assert "/none', which is no folder; allowed is a folder with config.json and" in line
    line = refused([str(tmp_path), "--prompt", "x"], capsys)
    assert line == f"npu: {tmp_path}: config.json is missing in {tmp_path}"
    line = refused([str(Path(MODEL) / "config.json"), "--prompt", "x"], capsys)
    assert "which is a file" in line


@pytest.fixture
def no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the measurement of activations, which may take minutes, an error."""

    def fail(*arguments: object) -> None:
        raise AssertionError(f"measured {arguments}")

    monkeypatch.setattr(load_model, "quantize_loaded", fail)


def model_with_words(folder: Path, vocab: int, words: int, template: str | None = None) -> None:
    """Write a small model, and a tokenizer of the words w0, w1 and so on, with a chat template."""
    write_checkpoint(random_checkpoint(shape_of("llama", vocab=vocab, context=16), 1), folder)
    known = {f"w{index}": index for index in range(words)}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token=f"w{words - 1}"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template).save_pretrained(
        folder
    )


@pytest.mark.usefixtures("no_measurement")
@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--prompt", ""], "npu: prompt: given '', which has no tokens"),
        (["--prompt", "w1 w20"], "npu: prompt: given token id 20 at index 1, allowed 0 to 19"),
        (["--prompt", "w1 " * 17], "npu: prompt: given 17 tokens, allowed 1 to 16 (context)"),
        (["--prompt", "w1", "--tokens", "17"], "npu: tokens: given 17 after a prompt of 1, allow"),
        (["--prompt", "w1", "--temperature", "nan"], "npu: Sampler.temperature: given nan, allow"),
        (["--prompt", "w\udcff"], "npu: prompt: given 'w\\udcff': "),
    ],
)
def test_refused_before_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], line: str
) -> None:
    """What the prompt alone shows is not found out after minutes."""
    model_with_words(tmp_path, vocab=20, words=30)
    assert refused([str(tmp_path), *more], capsys).startswith(line)


def test_prompt_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there, is a folder, is empty, or is no text."""
    path = tmp_path / "prompt.txt"
    for content, said in (
        (None, "cannot be read: No such file or directory"),
        (b"", "given 0 bytes that are no text, allowed is UTF-8 text"),
        (b"a\xff", "given 2 bytes that are no text, allowed is UTF-8 text"),
    ):
        if content is not None:
            path.write_bytes(content)
        for command, option in product(("generate", "chat"), ("--prompt-file", "--prompts")):
            line = refused([MODEL, option, str(path)], capsys, command)
            assert line == f"npu: {path}: {said}"
    line = refused([MODEL, "--prompt-file", str(tmp_path)], capsys)
    assert line == f"npu: {tmp_path}: cannot be read: Is a directory"


@pytest.mark.usefixtures("no_measurement")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("w1\n\nw2\n", "line 2: prompt: given '', which has no tokens"),
        ("w1\r\nw20", "line 2: prompt: given token id 20 at index 0, allowed 0 to 19"),
        ("w1\nw2\n" + "w3 " * 9, "line 3: tokens: given 9 after a prompt of 9, allowed 1 to 8"),
    ],
)
def test_line_of_prompts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, said: str
) -> None:
    """One bad prompt among several is named, before any of them is begun."""
    model_with_words(tmp_path / "model", vocab=20, words=30)
    path = tmp_path / "prompts.txt"
    path.write_text(lines, newline="")
    line = refused([str(tmp_path / "model"), "--prompts", str(path), "--tokens", "9"], capsys)
    assert line.startswith(f"npu: {path}: {said}")


@pytest.mark.usefixtures("no_measurement")
@pytest.mark.parametrize(
    ("template", "arguments", "line"),
    [
        (
            None,
            ["w1"],
            "chat template: given none by the tokenizer TokenizersBackend, allowed a to",
        ),
        (
            "{{ raise_exception('System!') }}",
            ["w1", "--system", "w2"],
            "chat template: given messa",
        ),
        (
            "{% if %}",
            ["w1"],
            "chat template: given messages of user, allowed what the template tak",
        ),
        ("w1", [""], "prompt: given an empty text, allowed at least one character"),
        ("{{ messages[0].content }}", ["w\udcff"], "prompt: given 'w\\udcff': "),
        ("w3 w20", ["w1"], "prompt: given token id 20 at index 1, allowed 0 to 19"),
        ("{{ 'w1 ' * 17 }}", ["w1"], "prompt: given 17 tokens, allowed 1 to 16 (context)"),
        (
            "w1 w2",
            ["w1", "--tokens", "16"],
            "tokens: given 16 after a prompt of 2, allowed 1 to 15",
        ),
        ("w1", ["w1", "--top-p", "2"], "Sampler.top_p: given 2.0, allowed 0 to 1"),
    ],
)
def test_refused_questions(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    template: str | None,
    arguments: list[str],
    line: str,
) -> None:
    """What template, question and context make impossible is not found out after minutes."""
    model_with_words(tmp_path, vocab=20, words=30, template=template)
    assert refused([str(tmp_path), *arguments], capsys, "chat").startswith(f"npu: {line}")


def test_bytes_have_no_chat_template(capsys: pytest.CaptureFixture[str]) -> None:
    """The models that ship go on with a text."""
    assert refused([MODEL, "x"], capsys, "chat") == (
        "npu: chat template: given none by the tokenizer bytes, allowed a tokenizer with one; "
        "npu generate goes on with a plain text"
    )


def test_a_tokenizer_beyond_the_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ids for the calibration text are none of the model's, whatever the prompt is."""
    model_with_words(tmp_path, vocab=20, words=30)
    line = refused([str(tmp_path), "--prompt", "w1", "--tokens", "1"], capsys)
    assert line == (
        f"npu: {tmp_path}/tokenizer.json: given token id 29, allowed 0 to 19, the vocabulary of "
        "the checkpoint"
    )
    assert not (tmp_path / "activation_scales.json").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("tokenizer.json", text) for text in ("{}", '{"model": {"type": "BPE"}}')),
        ("tokenizer_config.json", '{"tokenizer_class": 3}'),
        *(
            (name, text)
            for name in ("tokenizer.json", "tokenizer_config.json")
            for text in ("", "{", "[]", "null", "3", "\xff")
        ),
    ],
)
def test_damaged_tokenizers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """Whatever the libraries make of them, it is one line."""
    model_with_words(tmp_path, vocab=30, words=30)
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    line = refused([str(tmp_path), "--prompt", "w1"], capsys)
    assert line.startswith(f"npu: {tmp_path}: the tokenizer cannot be read: "), line


def test_calibration_texts(tmp_path: Path) -> None:
    """Tokenizers that make nothing of the calibration text, do not know its words, or are none."""
    write_checkpoint(random_checkpoint(shape_of("llama", vocab=20, context=16), 1), tmp_path)
    checkpoint, path = load_checkpoint(tmp_path), tmp_path / "tokenizer.json"
    Tokenizer(models.BPE()).save(str(path))
    with pytest.raises(ScalesError, match=r"given no tokens for the calibration text, allowed 1"):
        calibration_tokens(checkpoint)
    Tokenizer(models.WordLevel({}, unk_token="none")).save(str(path))
    with pytest.raises(ScalesError, match=r"cannot be used as a tokenizer: WordLevel error"):
        calibration_tokens(checkpoint)
    path.write_text("{}")
    with pytest.raises(ScalesError, match=r"tokenizer\.json: cannot be used as a tokenizer"):
        calibration_tokens(checkpoint)


@pytest.mark.usefixtures("no_measurement")
@pytest.mark.parametrize(
    ("output", "reason"),
    [(".", "Is a directory"), ("none/x.tsr", "No such file or directory"), ("file/x", "No such")],
)
def test_output_of_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, reason: str
) -> None:
    """A file that cannot be written is refused before the model is read."""
    (tmp_path / "file").touch()
    assert command_line.main(["compile", MODEL, "-o", str(tmp_path / output)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"npu: {tmp_path / output}: cannot be written: {reason}"), line


@pytest.mark.usefixtures("quick_scales")
def test_ids_outside_the_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tokenizer that knows more tokens than the model has."""
    model_with_words(tmp_path, vocab=20, words=30)
    line = refused([str(tmp_path), "--prompt", "w3 w19 w20"], capsys)
    assert re.search(r"given token id 20 at index 2, allowed 0 to 19", line), line


@pytest.mark.usefixtures("quick_scales")
def test_cache_that_fits_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cache that shall lie in SRAM and is too large for it."""
    shape = shape_of("llama", vocab=256, context=4096, layers=2)
    write_checkpoint(random_checkpoint(shape, 1), tmp_path)
    line = refused([str(tmp_path), "--prompt", "x", "--cache", "sram"], capsys)
    assert re.search(r"the K/V cache of 4096 positions.*needs \d+ bytes of SRAM", line), line
