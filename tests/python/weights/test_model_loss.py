# SPDX-License-Identifier: Apache-2.0
"""What the integers of a model lose: measured at every import, warned of, refused, accepted."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from golden.decoder import forward_rows
from npu.cli import command_line
from spec.paths import ROOT
from tb.run import build
from tests.python.weights.lossy_checkpoints import GOOD, HOPELESS, POOR, lossy
from weights.corpus import read_corpus, read_end
from weights.importer import load_checkpoint
from weights.loss import Loss, LossError, import_rows, measure_loss, rows_of
from weights.model import QuantizedModel
from weights.quantize import quantize_loaded
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint
from weights.tokenizer import ByteTokenizer, TokenizerError

FOLDER = "{folder}"


class Pairs:
    """A tokenizer of pairs of letters, 1 in front of every text."""

    name = "pairs"
    begin = end = turn_end = None
    chat_template = None
    warnings = ()

    def encode(self, text: str) -> list[int]:
        """Return 1 and an id for each two letters."""
        return self.ids(text)

    def ids(self, text: str) -> list[int]:
        """Return the same."""
        return [1, *(2 + len(text[i : i + 2]) for i in range(0, len(text), 2))]

    def conversation(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Refuse: there is no chat template."""
        raise NotImplementedError

    def decode(self, ids: Sequence[int]) -> str:
        """Return letters, as many as there were."""
        return "".join("x" * (one - 2) for one in ids if one != 1)

    def size(self, ids: Sequence[int]) -> int:
        """Return two for each pair."""
        return len(self.decode(ids))


def measured(folder: Path, text: bytes | None = None) -> tuple[Loss, QuantizedModel]:
    """Return what a checkpoint loses on the text of an import, or on another."""
    checkpoint = load_checkpoint(folder)
    model = quantize_loaded(checkpoint)
    if text is None:
        rows = import_rows(checkpoint, ByteTokenizer())
    else:
        rows = rows_of(checkpoint, ByteTokenizer(), np.frombuffer(text, np.uint8), 8)
    return measure_loss(checkpoint, model, rows, forward_rows), model


def test_a_model_that_knows_nothing_is_no_better_than_guessing(tmp_path: Path) -> None:
    """All logits 0: eight bits a byte, the same in integers, and a user hears of it."""
    checkpoint = random_checkpoint(shape_of("llama", vocab=256, context=16), 3)
    checkpoint.tensors["head"][:] = 0
    checkpoint.tensors["head"][0, 0] = 1e-6  # not all of them: scales are above 0
    write_checkpoint(checkpoint, tmp_path)
    loss, _ = measured(tmp_path)
    assert loss.float_bits == pytest.approx(8.0, abs=1e-3)
    assert loss.guessed_bits == 8.0
    assert abs(loss.share) < 0.02
    (warning,) = [one for one in loss.warnings if "guessing" in one] or [""]
    assert bool(warning) == (loss.float_bits >= 8.0)


def test_worse_than_guessing_is_told_whatever_the_loss() -> None:
    """Faithful noise is noise; integers that are as good as float32 are not refused for it."""
    loss = Loss(100, 400, 2.6, 2.6, 2.5, 1.0)
    (warning,) = loss.warnings
    assert "no better than guessing: 2.6000 bits per byte, guessing takes 2.5000" in warning
    assert Loss(100, 400, 2.0, 2.0, 2.5, 1.0).warnings == []
    assert len(Loss(100, 400, 2.0, math.nan, 2.5, 1.0).warnings) == 1


def test_bits_count_the_bytes_that_tokens_stand_for() -> None:
    """Two letters a token are half the bits a byte, and what a text begins with counts nothing."""
    checkpoint = random_checkpoint(shape_of("llama", vocab=8, context=16), 1)
    text = np.frombuffer(b"abcdefghijk", np.uint8)
    (row,) = rows_of(checkpoint, Pairs(), text, 16)
    assert row.ids.tolist() == [1, 4, 4, 4, 4, 4, 3]
    assert row.bytes == 11
    (short,) = rows_of(checkpoint, Pairs(), text, 4)
    assert (short.ids.tolist(), short.bytes) == ([1, 4, 4, 4], 6)


def test_text_that_gives_no_rows_is_refused() -> None:
    """Nothing, blanks, a context of one token, and ids that the model has not."""
    checkpoint = random_checkpoint(shape_of("llama", vocab=256, context=16), 1)
    for text, length in ((b"", 16), (b"  \n ", 16), (b"abc", 1)):
        with pytest.raises(LossError, match="given no text of 2 tokens"):
            rows_of(checkpoint, ByteTokenizer(), np.frombuffer(text, np.uint8), length)
    small = random_checkpoint(shape_of("llama", vocab=4, context=16), 1)
    with pytest.raises(TokenizerError, match="gives token id 4, allowed 0 to 3"):
        rows_of(small, Pairs(), np.frombuffer(b"abcd", np.uint8), 16)


def test_the_text_of_an_import_is_the_end_of_what_calibration_reads() -> None:
    """A tenth of its files, in its order."""
    whole, end = read_corpus().development.tobytes(), read_end().tobytes()
    last = end[-2000:]
    assert whole.endswith(last)
    assert 0.03 < len(end) / len(whole) < 0.2


@pytest.mark.parametrize(
    ("factor", "options", "status", "told"),
    [
        (GOOD, [], 0, ""),
        (POOR, [], 0, f"warning: {FOLDER}: as integers it loses much: "),
        (HOPELESS, [], 2, f"npu: {FOLDER}: given a model that loses too much as integers: "),
        (HOPELESS, ["--accept-loss"], 0, f"warning: {FOLDER}: as integers it loses much: "),
    ],
)
def test_compile_says_what_the_integers_lose(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    options: list[str],
    status: int,
    told: str,
) -> None:
    """Always as a figure; above 2 % as a warning, above 15 % as an error unless it is accepted."""
    folder, output = lossy(tmp_path / "model", factor), tmp_path / "model.tsr"
    loss, _ = measured(folder)
    assert command_line.main(["compile", str(folder), "-o", str(output), *options]) == status
    printed = capsys.readouterr()
    assert output.exists() == (status == 0)
    assert (told.format(folder=folder) + f"{loss}," in printed.err) == bool(told)
    assert ("warning" in printed.err) == told.startswith("warning")
    assert (f"integers      {loss} " in printed.out) == (status == 0)


def test_generate_refuses_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise and status 0 are no answer; what to do is said."""
    monkeypatch.setattr(build, "build", lambda _: pytest.fail("built"))
    folder = lossy(tmp_path / "model", HOPELESS)
    assert command_line.main(["generate", str(folder), "--prompt", "The"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"npu: {folder}: given a model that loses too much as integers: +")
    assert "wider --weights lose less" in error
    assert error.endswith("takes it as it is with --accept-loss (of make: ACCEPT_LOSS=1)")


@pytest.mark.parametrize("target", ["generate", "profile", "soc"])
def test_make_passes_the_acceptance(target: str) -> None:
    """ACCEPT_LOSS=1 of make is --accept-loss."""
    for given, count in ((["ACCEPT_LOSS=1"], 1), ([], 0)):
        command = ["make", "-n", "PYTHON=true", *given, target]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert run.stdout.count("--accept-loss") == count


@pytest.mark.parametrize(("factor", "status"), [(GOOD, 0), (POOR, 0), (HOPELESS, 2)])
def test_quality_of_any_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], factor: float, status: int
) -> None:
    """Both networks on a text of the user's; a loss that an import refuses is an error."""
    folder, text = lossy(tmp_path / "model", factor), tmp_path / "text"
    text.write_bytes(read_corpus().held_out[5000:9000].tobytes())
    options = ["--text", str(text), "--tokens", "1000"]
    assert command_line.main(["quality", str(folder), *options]) == status
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:7])
    assert rows["text"].startswith("1,016 tokens, 1,016 bytes")
    floats, integers = (float(rows[one].split()[0]) for one in ("float32", "integers"))
    assert 1.0 < floats < 2.5
    loss = float(rows["loss"].strip().rstrip("%")) / 100
    assert loss == pytest.approx(integers / floats - 1, abs=2e-4)
    assert (integers / floats - 1 > 0.15) == bool(status)
    agreement = float(rows["same"].removeprefix("top-1").strip().rstrip("%"))
    assert (agreement > 80) == (status == 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["no/where", "--text", "{}/none"], "none: cannot be read"),
        (
            ["gpt2-tiny", "--text", "x"],
            "--text, --weights: given for shipped models, allowed for a",
        ),
        (["weights/checkpoints/gpt2-tiny", "--text", "{}/empty"], "given no text of 2 tokens"),
    ],
)
def test_quality_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    """No file, an empty one, a text for models that have one."""
    (tmp_path / "empty").touch()
    given = [one.format(tmp_path) for one in arguments]
    assert command_line.main(["quality", *given]) == 2
    assert line in capsys.readouterr().err
