# SPDX-License-Identifier: Apache-2.0
"""`npu embed` and folders of encoders that are refused: one line each, and nothing measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Rust
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from npu.cli import command_line
from tests.bad_input.nothing import nothing_there
from tests.python.importers.small_encoders import random_encoder, write_encoder
from weights.sentence_files import MODULES, PROMPTS, SENTENCES


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build an error."""
    nothing_there(monkeypatch)


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run `npu embed` and return the line that it refuses with."""
    try:
        status: object = command_line.main(["embed", *arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, ""), printed
    assert printed.err.count("\n") == 1, printed.err
    return printed.err.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of an encoder whose tokens are bytes."""
    write_encoder(random_encoder(vocab=256), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "embed: given neither sentences nor --file, allowed one of them"),
        (["a", "--file", "x"], "embed: given sentences and --file, allowed one of them"),
        (["--file", "x.txt"], "x.txt: cannot be read: No such file or directory"),
        (["a", " "], "sentence 2: given an empty text, allowed at least a letter"),
        (["a", "b" * 65], "sentence 2: given 65 tokens, allowed at most 64, special ones included"),
        (["a", "--on", "paper"], "argument --on: invalid choice: 'paper'"),
    ],
)
def test_sentences_that_are_refused(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is allowed."""
    assert message in refusal([str(folder), *arguments], capsys)


def test_a_file_without_sentences_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blank lines are none."""
    for content in (b"\n \n", b"a\xff\x00"):
        (tmp_path / "x.txt").write_bytes(content)
        message = f"x.txt: given {len(content)} bytes that are no text, allowed is UTF-8 text"
        assert message in refusal([str(folder), "--file", str(tmp_path / "x.txt")], capsys)


def test_half_a_character_is_no_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which sentence, which letter, what it is."""
    words = [WordLevel({"a": 0, "?": 1}, unk_token="?")]
    PreTrainedTokenizerFast(tokenizer_object=Rust(*words)).save_pretrained(folder)
    line = refusal([str(folder), "a", "a \udcff b"], capsys)
    assert "sentence 2: given 'a \\udcff b': letter 3: given '\\udcff', allowed is UTF-8" in line


def test_a_decoder_does_not_embed(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a folder that is not there."""
    line = refusal(["gpt2-tiny", "a"], capsys)
    assert "model_type: given 'gpt2', allowed ['bert'" in line
    assert "which is no folder" in refusal(["./none", "a"], capsys)


def test_an_encoder_does_not_chat(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which command is for it."""
    name = str(folder)
    for command in (["chat", name, "a"], ["generate", name, "--prompt", "a"]):
        assert command_line.main(command) == 2
        assert "an encoder: npu embed, npu compile" in capsys.readouterr().err


def broken(name: str, content: object) -> Callable[[Path], None]:
    """Return what writes a file of a folder anew."""

    def write(folder: Path) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)

    return write


def configured(**fields: object) -> Callable[[Path], None]:
    """Return what changes config.json."""

    def write(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | fields))

    return write


def without_prompt(folder: Path) -> None:
    """Ask for a prompt whose rows are no part of the mean."""
    broken(PROMPTS, ASKED)(folder)
    modes = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    broken("1_Pooling/config.json", modes)(folder)


DENSE = [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
ABOVE = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "../other"}]
ALONE = [{"type": "x.Transformer", "path": ""}]
TWICE = [*ALONE, *[{"type": "x.Pooling", "path": "1_Pooling"}] * 2]
ASKED = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken(MODULES, "{"), "modules.json: given what is no list of modules"),
        (broken(MODULES, [3]), "modules.json: given what is no list of modules"),
        (broken(MODULES, DENSE), "modules.json: given Dense at '2_Dense', allowed Transformer"),
        (broken(MODULES, ABOVE), "modules.json: given Pooling at '../other', allowed"),
        (broken(MODULES, ALONE), "modules.json: given Transformer, allowed Transformer at"),
        (broken(MODULES, TWICE), "modules.json: given Transformer, Pooling, Pooling, allowed"),
        (broken("1_Pooling/config.json", {}), "1_Pooling/config.json: given no mode, allowed"),
        (
            broken("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
            "1_Pooling/config.json: given pooling_mode_max_tokens, allowed one of",
        ),
        (
            broken("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}),
            "1_Pooling/config.json: given pooling_mode_mean_tokens, pooling_mode_max_tokens",
        ),
        (
            broken(SENTENCES, {"do_lower_case": "yes"}),
            "sentence_bert_config.json do_lower_case: given 'yes', allowed True or False",
        ),
        (
            broken(SENTENCES, {"tokenizer_args": {"do_lower_case": True}}),
            "sentence_bert_config.json tokenizer_args: given {'do_lower_case': True}, allowed",
        ),
        (
            broken(SENTENCES, {"model_args": {"num_hidden_layers": 1}}),
            "sentence_bert_config.json model_args: given {'num_hidden_layers': 1}, allowed none",
        ),
        (
            broken("sentence_roberta_config.json", {"max_seq_length": "x"}),
            "sentence_roberta_config.json max_seq_length: given 'x', allowed int >= 1",
        ),
        (
            broken(PROMPTS, {"default_prompt_name": "query", "prompts": {"passage": ""}}),
            "config_sentence_transformers.json default_prompt_name: given 'query', allowed the",
        ),
        (
            broken(PROMPTS, {"model_type": "SparseEncoder"}),
            "config_sentence_transformers.json model_type: given 'SparseEncoder', allowed",
        ),
        (
            broken(PROMPTS, {"truncate_dim": 8}),
            "config_sentence_transformers.json truncate_dim: given 8, allowed None",
        ),
        (without_prompt, "1_Pooling/config.json include_prompt: given False, allowed True"),
        (
            broken(SENTENCES, {"max_seq_length": -3}),
            "sentence_bert_config.json max_seq_length: given -3, allowed int >= 1",
        ),
        (configured(hidden_act="relu"), "config.json hidden_act: given 'relu', allowed ['gelu'"),
        (configured(hidden_size=66), "config.json hidden_size: given 66, allowed a multiple of"),
        (configured(position_embedding_type="relative_key"), "allowed 'absolute'"),
        (configured(is_decoder=True), "config.json is_decoder: given True, allowed False"),
        (
            configured(architectures=["BertForSequenceClassification"]),
            "config.json architectures: given ['BertForSequenceClassification'], allowed",
        ),
        (configured(num_hidden_layers=3), "tensor 'encoder.layer.2.attention.self.query.weight'"),
        (configured(model_type=["bert"]), "config.json model_type: given ['bert'], allowed"),
    ],
)
def test_folders_that_are_refused(
    change: Callable[[Path], None],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With file, field, what was given and what is allowed."""
    change(folder)
    assert message in refusal([str(folder), "a"], capsys)
