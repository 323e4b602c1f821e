# SPDX-License-Identifier: Apache-2.0
"""`npu embed`: vectors, cosines, files and JSON, on golden and in real numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.cli import command_line
from tests.python.importers.small_encoders import random_encoder, write_encoder
from weights.encoder import Pooling

TEXTS = ("The list is empty.", "No item is left in it, so nothing is removed from the list.", "b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of an encoder whose tokens are bytes."""
    write_encoder(random_encoder(vocab=256), tmp_path / "model")
    return tmp_path / "model"


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run the command with --json and return what it says."""
    assert command_line.main(["embed", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_vectors_have_length_1_and_integers_are_near(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences of three lengths, in one program; the table of cosines is that of the vectors."""
    golden, real = (record(capsys, str(folder), *TEXTS, "--on", on) for on in ("golden", "float"))
    assert (golden["on"], golden["model"]) == ("golden", str(folder))
    assert [one["tokens"] for one in golden["sentences"]] == [len(text) for text in TEXTS]
    ours, wanted = (
        np.array([one["vector"] for one in each["sentences"]]) for each in (golden, real)
    )
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, rtol=1e-5)
    assert ((ours * wanted).sum(1) > 0.995).all()
    assert (ours != wanted).any()
    np.testing.assert_allclose(ours @ ours.T, golden["cosines"], rtol=0, atol=1e-5)


def test_a_file_has_a_sentence_in_each_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blank lines aside."""
    (tmp_path / "x.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    found = record(capsys, str(folder), "--file", str(tmp_path / "x.txt"), "--on", "float")
    assert found == record(capsys, str(folder), *TEXTS, "--on", "float")


def test_only_a_newline_ends_a_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Form feed, U+0085 and U+2028 do not."""
    (tmp_path / "x.txt").write_bytes("one\u2028of\x0cit\x85all\r\ntwo\n".encode())
    found = record(capsys, str(folder), "--file", str(tmp_path / "x.txt"), "--on", "float")
    assert [one["text"] for one in found["sentences"]] == ["one\u2028of\x0cit\x85all", "two"]


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Say whether two runs made the same vectors, whatever the sentences were."""
    one, other = ([each["vector"] for each in run["sentences"]] for run in (found, wanted))
    return one == other


@pytest.mark.parametrize(
    ("file", "content", "given", "meant"),
    [
        ("sentence_bert_config.json", {"do_lower_case": True}, "Hello ÀÉ", "hello àé"),
        ("sentence_roberta_config.json", {"do_lower_case": True}, "Hello", "hello"),
        (
            "config_sentence_transformers.json",
            {"prompts": {"q": "query: ", "p": "text: "}, "default_prompt_name": "q"},
            "Hello",
            "query: Hello",
        ),
        ("config_sentence_transformers.json", {"prompts": {"q": "query: "}}, "Hello", "Hello"),
        ("1_Pooling/config.json", {"pooling_mode": "mean"}, "Hello", "Hello"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean"]}, "Hello", "Hello"),
        ("modules.json", None, "  Hello ", "Hello"),
    ],
)
def test_a_sentence_is_what_sentence_transformers_makes_of_it(
    file: str,
    content: object,
    given: str,
    meant: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without blanks at the ends, behind the default prompt, in small letters, if files say so."""
    write_encoder(random_encoder(vocab=256), tmp_path / "other")
    if content is not None:
        (tmp_path / "other" / file).write_text(json.dumps(content))
    found = record(capsys, str(tmp_path / "other"), given, "--on", "float")
    assert same(found, record(capsys, str(folder), meant, "--on", "float"))
    if given != meant:
        assert found["sentences"][0]["text"] == given
        assert not same(found, record(capsys, str(folder), meant.swapcase(), "--on", "float"))


def test_a_table_of_cosines_is_printed_of_two_and_more(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of one."""
    assert command_line.main(["embed", str(folder), "[b]a", "b", "--on", "float"]) == 0
    both = capsys.readouterr().out
    assert "Cosines" in both
    assert "1.000" in both
    assert "[b]a" in both
    assert command_line.main(["embed", str(folder), "a", "--on", "float"]) == 0
    assert "Cosines" not in capsys.readouterr().out


@pytest.mark.parametrize("pooling", [None, Pooling("mean", unit=False, longest=64)])
def test_a_folder_that_says_less_gives_the_same(
    pooling: Pooling | None, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without modules.json rows are averaged; vectors have length 1 whatever the modules say."""
    write_encoder(random_encoder(vocab=256, pooling=pooling), tmp_path / "other")
    found, wanted = (
        record(capsys, str(each), *TEXTS, "--on", "float") for each in (tmp_path / "other", folder)
    )
    assert found["sentences"] == wanted["sentences"]
