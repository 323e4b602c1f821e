# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints: the layouts that are accepted; what is not, is in tests/bad_input."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from npu.cli import command_line
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointError, CheckpointShape, shortened
from weights.importer import left_out, load_checkpoint, load_shape, parse_config
from weights.reference import forward
from weights.rotation import Rotation
from weights.shipped import CHECKPOINTS, shipped
from weights.synthetic import (
    config_of,
    random_checkpoint,
    random_tokens,
    shape_of,
    write_checkpoint,
)

SHAPE = shape_of(
    "gpt2", hidden=8, layers=1, heads=2, ffn=16, vocab=20, context=4, activation="gelu"
)
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a small checkpoint in it."""
    write_checkpoint(random_checkpoint(SHAPE, 1), tmp_path / "model")
    return tmp_path / "model"


def change_tensor(folder: Path, name: str, value: np.ndarray | None) -> None:
    """Replace a stored tensor, or remove it."""
    tensors = load_file(folder / WEIGHTS)
    tensors.pop(name, None)
    if value is not None:
        tensors[name] = value
    save_file(tensors, folder / WEIGHTS)


SHAPES = [
    SHAPE,
    replace(SHAPE, tied=False, activation="gelu_new"),
    shape_of("llama", hidden=12, heads=6, kv_heads=2, head_dim=4, vocab=30, rope_theta=500.0),
    shape_of("llama", biases=("q", "k", "v", "o", "gate", "up", "down"), tied=True),
    shape_of("mistral", kv_heads=1, window=7, epsilon=1e-5),
    shape_of("qwen2", kv_heads=2, window=23),
    shape_of("qwen2", kv_heads=2, tied=True),
    shape_of("qwen3", kv_heads=2, head_dim=20, biases=("q", "k", "v", "o")),
    *(shape_of(family, layers=7) for family in ARCHITECTURES),
    *(
        replace(shape_of(family), rotations=(Rotation(90.0, 16, kind, options),), rope_theta=90.0)
        for family in ("llama", "phi3")
        for kind, options in (
            ("longrope", ((1.0,) * 8, (2.0,) * 8, 9, 1.7)),
            *([("yarn", (4.0, 9, 1.3, 32.0, 1.0, True))] if family == "llama" else []),
        )
    ),
]


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.family)
def test_every_tensor_and_dimension(tmp_path: Path, shape: CheckpointShape, bare: bool) -> None:
    """What is written is read; names come with the prefix or, as without a head, bare."""
    written = random_checkpoint(shape, 1)
    write_checkpoint(written, tmp_path, prefix="" if bare else None)
    read = load_checkpoint(tmp_path)
    assert read.shape == shape
    assert read.tensors.keys() == written.tensors.keys()
    for name, tensor in written.tensors.items():
        np.testing.assert_allclose(read.tensors[name], tensor, rtol=3e-7, atol=1e-7, err_msg=name)


@pytest.mark.parametrize(
    "shape", [shape_of("gpt2"), shape_of("mistral", window=12), shape_of("gemma2")]
)
def test_a_shorter_context(tmp_path: Path, shape: CheckpointShape) -> None:
    """Is the same model of fewer positions; nothing is kept beside the folder."""
    write_checkpoint(random_checkpoint(shape, 1), tmp_path)
    whole, short = load_checkpoint(tmp_path), load_checkpoint(tmp_path, context=12)
    assert short.shape == load_shape(tmp_path, context=12)
    assert (short.shape.context, short.shape.window, short.shape.windows) == (12, 0, ())
    tokens = random_tokens(short.shape, 2, 3)
    np.testing.assert_array_equal(forward(short, tokens), forward(whole, tokens))
    assert (whole.folder, short.folder, short.place) == (tmp_path, None, tmp_path)
    assert load_checkpoint(tmp_path, context=24).folder == tmp_path
    for context in (0, 25):
        allowed = rf"--context: given {context}, allowed 1 to 24, the positions of the model"
        for load in (load_checkpoint, load_shape):
            with pytest.raises(CheckpointError, match=allowed):
                load(tmp_path, context=context)


def test_windows_that_stay_in_a_shorter_context() -> None:
    """Those that see less than all of it."""
    shape = replace(shape_of("gemma2", layers=3), windows=(5, 0, 9))
    assert shortened("x", shape, 9).windows == (5, 0, 0)
    assert shortened("x", replace(shape, windows=(), window=5), 9).window == 5


def test_head(tmp_path: Path) -> None:
    """A head of its own is (H, V); a tied one is the transposed token table."""
    tied, own = (random_checkpoint(replace(SHAPE, tied=tied), 2) for tied in (True, False))
    np.testing.assert_array_equal(tied.head, tied.tensors["embed"].T)
    assert own.head.shape == (8, 20)
    assert (own.head != own.tensors["embed"].T).any()


USUAL = {
    "gpt2": (768, 12, 12, 12, 64, 3072, 50257, 1024, 0, True),
    "llama": (4096, 32, 32, 32, 128, 11008, 32000, 2048, 0, False),
    "mistral": (4096, 32, 32, 8, 128, 14336, 32000, 131072, 4096, False),
    "qwen2": (4096, 32, 32, 32, 128, 22016, 151936, 32768, 0, False),
    "qwen3": (4096, 32, 32, 32, 128, 22016, 151936, 32768, 0, False),
}


def test_defaults_are_those_of_transformers() -> None:
    """A config.json without a field means transformers' default (tests/oracles: of all)."""
    assert USUAL.keys() <= ARCHITECTURES.keys()
    for family, wanted in USUAL.items():
        shape = parse_config({"model_type": family}, "test")[1]
        sizes = (shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.head_dim)
        assert (*sizes, shape.ffn, shape.vocab, shape.context, shape.window, shape.tied) == wanted


WINDOW = {"use_sliding_window": True, "sliding_window": 8}


@pytest.mark.parametrize(
    ("family", "changes", "window"),
    [
        ("mistral", {"sliding_window": None}, 0),
        ("mistral", {"sliding_window": 8}, 8),
        ("mistral", {"sliding_window": 23}, 23),
        ("mistral", {"sliding_window": 24}, 0),  # sees the whole context
        ("mistral", {"sliding_window": 8, "layer_types": ["sliding_attention"] * 2}, 8),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0}, 0),
        ("qwen2", WINDOW | {"max_window_layers": 0}, 8),
        ("qwen2", WINDOW | {"max_window_layers": 2}, 0),
        ("qwen2", WINDOW | {"layer_types": ["sliding_attention"] * 2}, 8),
        ("qwen2", WINDOW | {"layer_types": ["full_attention"] * 2}, 0),
        ("llama", {"layer_types": ["full_attention"] * 2, "sliding_window": None}, 0),
    ],
)
def test_windows(family: str, changes: dict[str, object], window: int) -> None:
    """The ways in which a config says how far all layers see."""
    config = config_of(shape_of(family)) | {"max_window_layers": 2, "layer_types": None}
    assert parse_config(config | changes, "test")[1].window == window


@pytest.mark.parametrize(
    ("changes", "theta"),
    [
        ({"rope_parameters": None}, 10000.0),
        ({"rope_parameters": None, "rope_theta": 500000}, 500000.0),
        ({"rope_parameters": {"rope_theta": 300.0, "rope_type": "default"}}, 300.0),
        ({"rope_parameters": {"rope_type": "default"}, "rope_theta": 300.0}, 300.0),
        ({"rope_parameters": None, "rope_theta": 300.0, "rope_scaling": None}, 300.0),
        ({"rope_parameters": None, "rope_theta": 300.0, "rope_scaling": {"type": "default"}}, 300),
        ({"rope_parameters": {"rope_theta": 300.0, "partial_rotary_factor": 1.0}}, 300.0),
    ],
)
def test_rope_theta(changes: dict[str, object], theta: float) -> None:
    """The base of the rotary embedding, as transformers 4 and 5 write it."""
    config = config_of(shape_of("llama")) | changes
    assert parse_config(config, "test")[1].rope_theta == theta


def test_options_without_effect() -> None:
    """Options that change the computation may be there with the value that does not."""
    neutral = {
        "logits_scaling": 1.0,
        "residual_multiplier": 1,
        "partial_rotary_factor": 1.0,
        "final_logit_softcapping": None,
        "add_cross_attention": None,
        "quantization_config": None,
    }
    shape = shape_of("llama")
    assert parse_config(config_of(shape) | neutral, "test")[1] == shape


def test_shards(folder: Path) -> None:
    """Shards named by an index give the same tensors."""
    whole = dict(load_checkpoint(folder).tensors)
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: tensors[name] for name in some}, folder / file)
    (folder / WEIGHTS).unlink()
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    read = load_checkpoint(folder)
    for name, tensor in whole.items():
        np.testing.assert_array_equal(read.tensors[name], tensor)
    (folder / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"b\.safetensors cannot be read"):
        list(read.tensors.values())


def test_half_precision(folder: Path) -> None:
    """float16 and bfloat16 become float32 exactly."""
    bias = np.array([0.5, -1.25, 3, 0, 0, 0, 0, 1])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        change_tensor(folder, "transformer.ln_f.bias", bias.astype(dtype))
        read = load_checkpoint(folder).tensors["norm.bias"]
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, bias)


def test_mask_buffers_are_dropped(folder: Path) -> None:
    """Old checkpoints store the causal mask, or the frequencies of the rotary embedding."""
    change_tensor(folder, "transformer.h.0.attn.bias", np.tri(4, dtype=np.float32)[None, None])
    assert load_checkpoint(folder).shape == SHAPE
    shape = shape_of("llama")
    write_checkpoint(random_checkpoint(shape, 1), folder)
    name = "model.layers.1.self_attn.rotary_emb.inv_freq"
    change_tensor(folder, name, np.ones(8, np.float32))
    assert load_checkpoint(folder).shape == shape


OFFLINE = """
import sys
from weights.checkpoint import CheckpointError
from weights.importer import load_checkpoint
assert "torch" not in sys.modules
try:
    print(load_checkpoint(sys.argv[1]).shape.hidden)
except CheckpointError as error:
    print(error)
assert "torch" not in sys.modules
"""


def run_offline(source: str, cache: Path) -> str:
    """Load a checkpoint in a fresh Python that is told to stay off the network."""
    result = subprocess.run(
        [sys.executable, "-c", OFFLINE, source],
        env={"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def test_shipped_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped model is read by its name from anywhere; a folder of that name goes before it."""
    monkeypatch.chdir(tmp_path)
    assert {"gpt2-tiny", "qwen2-tiny", "gpt2-tiny-int4g32"} <= shipped().keys()
    found = load_checkpoint("llama-tiny")
    assert found.folder == CHECKPOINTS / "llama-tiny" and found.shape.family == "llama"
    write_checkpoint(random_checkpoint(shape_of("qwen2"), 1), tmp_path / "llama-tiny")
    assert load_checkpoint("llama-tiny").shape.family == "qwen2"


def test_hub_cache_without_network(tmp_path: Path, folder: Path) -> None:
    """A hub id is read from the local cache; what is not there is refused with both choices."""
    assert "neither a folder nor in the local cache" in run_offline("nobody/nothing", tmp_path)
    entry = tmp_path / "models--some--gpt"
    snapshot = entry / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("0" * 40)
    assert run_offline("some/gpt", tmp_path).strip() == "8"


def test_pickles_of_the_hub(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are fetched only where there are no safetensors."""
    asked: list[list[str]] = []

    def download(_: str, allow_patterns: list[str], **__: object) -> Path:
        asked.append(allow_patterns)
        return folder

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    load_checkpoint("some/gpt")
    assert len(asked) == 1 and "pytorch_model*.bin" not in asked[0]
    (folder / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=r"no weights in .*, pytorch_model\.bin, or pytorch"):
        load_checkpoint("some/gpt")
    assert len(asked) == 3 and "pytorch_model*.bin" in asked[2]
    load_shape("some/gpt")
    assert len(asked) == 4


def test_text_of_a_model_of_several_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gemma 3 with pictures, as transformers 4 names its tensors: the rest is named, not used."""
    shape = shape_of("gemma3_text", hidden=16, heads=2, layers=2, vocab=40, context=24)
    written = random_checkpoint(shape, 1)
    write_checkpoint(written, tmp_path, prefix="language_model.model.")
    change_tensor(tmp_path, "vision_tower.vision_model.post_layernorm.weight", np.ones(3))
    change_tensor(tmp_path, "multi_modal_projector.mm_input_projection_weight", np.ones(3))
    text = json.loads((tmp_path / "config.json").read_text())
    del text["architectures"]
    whole = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]}
    (tmp_path / "config.json").write_text(json.dumps(whole | {"text_config": text}))
    read = load_checkpoint(tmp_path)
    assert read.shape == load_shape(tmp_path) == shape
    assert all(np.allclose(read.tensors[name], one) for name, one in written.tensors.items())
    assert left_out(tmp_path) == {"vision_tower": 1, "multi_modal_projector": 1}
    assert command_line.main(["inspect", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "vision_tower (1)" in shown
    assert "multi_modal_projector (1)" in shown
