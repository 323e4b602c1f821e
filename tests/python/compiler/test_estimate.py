# SPDX-License-Identifier: Apache-2.0
"""`npu estimate`: published models by their dimensions, shipped ones against what they become."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from npu.cli import command_line
from npu.commands.compiled_files import bus_cycles
from npu.compiler import compile_model
from npu.compiler.estimate import estimate
from npu.compiler.model_plan import MEMORY_BYTES
from spec.isa.operands import Limits
from tb.benchmarks import measured_models, model_benchmarks
from tb.benchmarks.bars import landed
from tests.python.weights.gguf_files import write_gguf
from weights.formats.recipe import INT8_WEIGHTS, WORDS, parse_recipe
from weights.importer import load_shape
from weights.quantize import quantize_checkpoint
from weights.shipped import shipped
from weights.synthetic import random_checkpoint, shape_of

PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("published_models.toml").read_text(encoding="utf-8")
)
ENCODERS = ("bert", "vit", "whisper")
DAMAGED = {
    **{"model_type": "unknown", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 320},
    **{"num_hidden_layers": 10_000_000, "max_position_embeddings": 128, "rms_norm_eps": 1e-5},
}
"""A number of layers that no model has."""
BESIDE_PRODUCTS = {"whisper-tiny": 0.08}
"""Share of parameters in convolutions, norms and biases where it is above 2 %."""


def written(place: Path, **content: object) -> Path:
    """Write a config.json."""
    path = place / "config.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def estimated(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """Return what the command says as JSON."""
    assert command_line.main(["estimate", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each by config.json alone: its parameters, every format, and what it fits with if it does."""
    content = dict(PUBLISHED[name])
    millions, family = content.pop("millions"), content["model_type"]
    path = written(tmp_path, **content)
    found = estimated(capsys, path)
    near = BESIDE_PRODUCTS.get(name, 0.02)
    assert found["import"]["parameters"] == pytest.approx(1e6 * millions, rel=near)
    assert found["encoder"] == (family in ENCODERS)
    assert {str(one) for one in WORDS.values()} == {one["weights"] for one in found["formats"]}
    assert (found["refusal"] is None) == found["verdict"].startswith(("accepted", "does not"))
    whole = found["contexts"][0]["memory"]
    assert found["fits"] <= (whole <= MEMORY_BYTES)
    assert found["fits"] or found["fits_with"], found["verdict"]
    for options in found["fits_with"]:
        assert (
            f"would fit with {options}" in found["verdict"] or f"or {options}" in found["verdict"]
        )
        words = shlex.split(options)
        assert estimated(capsys, path, *words)["fits"]
        if words[-2] == "--context":
            longer = [*words[:-1], int(words[-1]) + 1]
            assert not estimated(capsys, path, *longer)["fits"]


def test_a_published_model_that_was_compiled(tmp_path: Path) -> None:
    """SmolLM2-135M-Instruct: its stream; 5 + 2 tokens took 17,297,094 cycles on the RTL."""
    content = dict(PUBLISHED["SmolLM2-135M"])
    del content["millions"]
    shape = load_shape(written(tmp_path, **content).parent).plain()
    found = estimate(shape, Limits(), INT8_WEIGHTS, encoder=False).asked
    assert found.stream == 136_269_376
    assert 2 * found.cycles_first == pytest.approx(17_297_094, rel=0.03)


@pytest.mark.parametrize("name", sorted(shipped()))
@pytest.mark.parametrize("word", ["int8", "int4g32", "mxfp6e2", "int4,head=int4"])
def test_bytes_are_those_of_the_compiled_model(
    name: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stream, tables, K/V cache and its place, to the byte, and the bus cycles of inspect."""
    recipe = parse_recipe(word)
    model = compile_model(
        quantize_checkpoint(str(shipped()[name]), recipe if recipe.narrow else None)
    )
    found = estimated(capsys, name, "--weights", word)
    asked = next(one for one in found["formats"] if one["weights"] == str(recipe))
    assert asked["stream"] == len(model.stream)
    assert asked["cycles_first"] == bus_cycles(model)
    whole = found["contexts"][0]
    assert whole["tables"] == sum(map(len, model.sections.values()))
    assert (whole["cache"], whole["in_memory"]) == (model.cache.bytes, model.cache.in_memory)


@pytest.mark.parametrize("family", model_benchmarks.FAMILIES)
@pytest.mark.parametrize("position", model_benchmarks.POSITIONS)
def test_cycles_are_near_the_measured_ones(family: str, position: int) -> None:
    """Those of a decode step on the RTL, never fewer than the limit."""
    shape = load_shape(shipped()[f"{family}-tiny"]).plain()
    found = estimate(shape, Limits(), INT8_WEIGHTS, encoder=False).asked
    measured = landed()[f"tiny_decode_{family}_p{position}"]
    assert found.cycles_first <= measured <= 1.03 * found.cycles_first


@pytest.mark.parametrize("position", model_benchmarks.SMALL_POSITIONS)
def test_cycles_with_the_cache_in_memory(position: int) -> None:
    """GPT-2 small's shape, with so many positions that the measured one is the last."""
    shape = measured_models.small_shape()
    found = estimate(shape, Limits(), INT8_WEIGHTS, encoder=False).asked
    each = (found.cycles_last - found.cycles_first) / (shape.context - 1)
    limit = found.cycles_first + each * position
    assert limit <= landed()[f"small_decode_{position}"] <= 1.03 * limit


@pytest.mark.parametrize(
    ("name", "family", "positions", "uses"),
    [
        ("vit-base", "vit", 197, "an encoder of pictures: npu compile, npu run"),
        ("vit-base", "deit", 198, "an encoder of pictures: npu compile, npu run"),
        ("whisper-tiny", "whisper", 1500, "an encoder of sound: npu compile, npu run"),
        ("bert-base", "bert", 512, "an encoder: npu embed, npu compile"),
    ],
)
def test_an_imported_encoder_has_the_positions_of_its_importer(
    name: str,
    family: str,
    positions: int,
    uses: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the verdict says which commands are for it."""
    found = estimated(capsys, written(tmp_path, **PUBLISHED[name] | {"model_type": family}))
    assert found["shape"]["context"] == positions
    assert found["refusal"] == f"not generated from: {uses}"


def test_an_encoder_multiplies_all_rows_with_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ViT: 14 x 14 patches and one position more, at 256 multiplications a cycle."""
    found = estimated(capsys, written(tmp_path, **PUBLISHED["vit-base"]))
    cycles = 12 * (197 * 12 * 768**2 + 2 * 197**2 * 768) // 256
    assert {one["cycles_last"] for one in found["formats"]} == {cycles}
    assert found["contexts"][0]["cache"] == 0


def test_the_text_of_several_kinds_of_input_and_one_head_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`text_config` counts; old Falcons have one K/V head whatever num_kv_heads says."""
    text = dict(PUBLISHED["falcon-rw-1b"]) | {"multi_query": True, "num_kv_heads": 32}
    path = written(tmp_path, model_type="seeing", text_config=text)
    shape = estimated(capsys, path)["shape"]
    assert (shape["hidden"], shape["kv_heads"]) == (2048, 1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"model_type": "mixtral", "num_local_experts": 8}, "num_local_experts: given 8, allowed"),
        ({"model_type": "qwen3_moe", "num_experts": 128}, "num_experts: given 128, allowed 1 or"),
        ({"model_type": "deepseek_v3", "n_routed_experts": 256}, "a mixture of experts"),
        ({"model_type": "mamba"}, "given none of d_model, hidden_size"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "is_encoder_decoder: given True, all"),
        (
            DAMAGED | {"model_type": "llama"},
            "num_hidden_layers: given 10000000, allowed int >= 1 and",
        ),
        (DAMAGED, "num_hidden_layers: given 10000000, allowed int >= 1 and <= 1024"),
        (
            {"model_type": "gemma3", "text_config": {"hidden_size": -3}},
            "config.json text_config.hidden_size: given -3, allowed int >= 1",
        ),
        ({"hidden_size": -3}, "hidden_size: given -3, allowed int >= 1"),
        ({"hidden_size": 100, "num_attention_heads": 12}, "a multiple of 12 heads"),
        (
            {"hidden_size": 96, "num_attention_heads": 12, "num_key_value_heads": 5},
            "num_key_value_heads: given 5, allowed a divisor of 12 heads",
        ),
        ({"hidden_size": 96, "num_attention_heads": 12, "num_hidden_layers": 2}, "of vocab_size"),
        ({"model_type": "vit", "hidden_size": 96, "patch_size": 0}, "patch_size: given 0, allowed"),
    ],
)
def test_what_cannot_be_estimated_is_said_in_a_line(
    content: dict[str, object], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The field, what was given, and what is allowed."""
    if content.get("model_type") == "vit":
        content = content | {"num_attention_heads": 12, "num_hidden_layers": 2}
    path = written(tmp_path, **content)
    assert command_line.main(["estimate", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert line in printed.err
    assert f"npu: {path.parent}: config.json" in printed.err


def test_a_gguf_file_is_told_its_own_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Heads by layer are not read; the key is that of the file, not one of config.json."""
    checkpoint = random_checkpoint(shape_of("llama", hidden=32, heads=4, kv_heads=2, layers=2), 1)
    for key, given in (("attention.head_count_kv", [2, 2]), ("block_count", 10_000_000)):
        path = write_gguf(checkpoint, tmp_path / "m.gguf", metadata={f"llama.{key}": given})
        assert command_line.main(["estimate", str(path)]) == 2
        assert f"npu: {path}: metadata llama.{key}: given {given}, " in capsys.readouterr().err


def test_positions_that_config_json_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Are asked for, and then taken from the command line."""
    content = dict(PUBLISHED["falcon-rw-1b"])
    del content["millions"], content["max_position_embeddings"]
    path = written(tmp_path, **content)
    assert command_line.main(["estimate", str(path)]) == 2
    assert "max_position_embeddings" in capsys.readouterr().err
    assert estimated(capsys, path, "--context", "512")["shape"]["context"] == 512


def test_a_shape_that_no_program_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a format nor a context helps, and the verdict says so."""
    content = dict(PUBLISHED["Llama-2-7B"]) | {"hidden_size": 1 << 20}
    found = estimated(capsys, written(tmp_path, **content))
    assert (found["fits"], found["fits_with"]) == (False, [])
    assert "no format or context would fit" in found["verdict"]


def test_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a decoder and of an encoder; formats that are as large share a row."""
    assert command_line.main(["estimate", "gpt2-tiny", "--clock", "250"]) == 0
    printed = capsys.readouterr().out
    assert "verdict  accepted" in printed
    assert "tokens a second" in printed
    assert "at 250 MHz" in printed
    assert "ternary, int2" in printed
    content = dict(PUBLISHED["vit-base"])
    assert command_line.main(["estimate", str(written(tmp_path, **content).parent)]) == 0
    printed = capsys.readouterr().out
    assert "estimated as an encoder" in " ".join(printed.split())
    assert "197 positions" in printed
    assert "0 tokens" not in printed
    assert "passes a second" in printed
    assert "197" in printed
