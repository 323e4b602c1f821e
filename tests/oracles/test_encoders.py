# SPDX-License-Identifier: Apache-2.0
"""The float graph of encoders against transformers, from folders that it has written.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from npu.graph.evaluate import evaluate
from npu.graph.importers import read
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.importers.encoder_checkpoint import EMBEDDING, MASK, ROWS, TYPES
from npu.planner.build_plan import CompileOptions, build_plan
from weights.sentence_files import MODULES

TOLERANCE = 1e-5
BERT: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 100,
    "vocab_size": 301,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
}
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 40},
    {"hidden_size": 96, "num_attention_heads": 12, "hidden_act": "gelu_new"},
)
DISTIL = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
"""The fields of a config as DistilBERT calls them."""
FAMILIES = ("bert", "roberta", "xlm-roberta", "distilbert")
LENGTHS = (24, 9, 1)


def config_of(family: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Return what a config of a family says."""
    given = BERT | shape
    if family == "distilbert":
        return {DISTIL.get(name, name): value for name, value in given.items()}
    return given


def written(model: Any, folder: Path, seed: int) -> None:  # noqa: ANN401
    """Draw all parameters wider than transformers does, norms and biases too, and write them."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, one in model.named_parameters():
            spread = 0.2 if one.ndim == 1 else one.shape[-1] ** -0.5
            one.normal_(float("LayerNorm.weight" in name or "norm.weight" in name), spread)
    model.eval().save_pretrained(folder)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", SHAPES, ids=["usual", "one head", "wide"])
def test_rows_are_those_of_transformers(family: str, shape: dict[str, Any], tmp_path: Path) -> None:
    """Padded sentences of three lengths; with types where there are some."""
    seed = 11 + SHAPES.index(shape)
    model: Any = AutoModel.from_config(AutoConfig.for_model(family, **config_of(family, shape)))
    written(model, tmp_path, seed)
    random = np.random.default_rng(seed)
    typed = family == "bert"
    shapes = {TOKENS: (1, 24)} | ({TYPES: (1, 24)} if typed else {})
    graph = read(tmp_path, shapes=shapes)
    for length in LENGTHS:
        inputs = {TOKENS: random.integers(2, 301, (1, 24)).astype(np.int32)}
        inputs[MASK] = (np.arange(24) < length).astype(np.int32)[None]
        inputs[TOKENS][inputs[MASK] == 0] = BERT["pad_token_id"]
        more = {}
        if typed:
            inputs[TYPES] = random.integers(0, 2, (1, 24)).astype(np.int32)
            more["token_type_ids"] = torch.tensor(inputs[TYPES])
        with torch.no_grad():
            wanted = model(
                input_ids=torch.tensor(inputs[TOKENS]),
                attention_mask=torch.tensor(inputs[MASK]),
                **more,
            ).last_hidden_state[:, :length]
        found = evaluate(graph, inputs)[ROWS][:, :length]
        error = np.abs(found - wanted.numpy()).max() / np.abs(wanted.numpy()).max()
        assert error <= TOLERANCE, f"seed {seed}, length {length}: {error:.3g}"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_with_a_head_of_words_is_its_encoder(family: str, tmp_path: Path) -> None:
    """Names have a prefix there, and the head is left out."""
    model: Any = AutoModelForMaskedLM.from_config(
        AutoConfig.for_model(family, **config_of(family, {}))
    )
    written(model, tmp_path, 3)
    tokens = np.random.default_rng(3).integers(2, 301, (1, 12)).astype(np.int32)
    with torch.no_grad():
        wanted = model.base_model(input_ids=torch.tensor(tokens)).last_hidden_state.numpy()
    graph = read(tmp_path, shapes={TOKENS: (1, 12)})
    found = evaluate(graph, {TOKENS: tokens, MASK: np.ones_like(tokens)})[ROWS]
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_names_of_tensorflow_are_known(tmp_path: Path) -> None:
    """bert-base-uncased has gamma and beta."""
    model: Any = AutoModel.from_config(AutoConfig.for_model("bert", **BERT))
    written(model, tmp_path, 4)
    tokens = np.arange(2, 14, dtype=np.int32)[None]
    inputs = {TOKENS: tokens, MASK: np.ones_like(tokens)}
    wanted = evaluate(read(tmp_path, shapes={TOKENS: (1, 12)}), inputs)[ROWS]
    file = tmp_path / "model.safetensors"
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {}
    for name, tensor in load_file(file).items():
        for new, before in old.items():
            name = name.replace(new, before)
        tensors[f"bert.{name}"] = tensor
    assert any(name.endswith("gamma") for name in tensors)
    save_file(tensors, file, metadata={"format": "pt"})
    found = evaluate(read(tmp_path, shapes={TOKENS: (1, 12)}), inputs)[ROWS]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_vectors_are_those_of_sentence_transformers(pool: str, tmp_path: Path) -> None:
    """Pooling as its page has it: the rows, times the mask, over their number; unit length."""
    model: Any = AutoModel.from_config(AutoConfig.for_model("bert", **BERT))
    written(model, tmp_path, 5)
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": path}
        for kind, path in kinds.items()
    ]
    (tmp_path / MODULES).write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    modes = {"pooling_mode_cls_token": pool == "cls", "pooling_mode_mean_tokens": pool == "mean"}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    tokens = np.random.default_rng(5).integers(2, 301, (1, 16)).astype(np.int32)
    mask = (np.arange(16) < 10).astype(np.int32)[None]
    ids, there = torch.tensor(tokens), torch.tensor(mask)
    with torch.no_grad():
        rows = model(input_ids=ids, attention_mask=there).last_hidden_state
    wide = there.unsqueeze(-1).float()
    pooled = rows[:, 0] if pool == "cls" else (rows * wide).sum(1) / wide.sum(1).clamp(min=1e-9)
    wanted = torch.nn.functional.normalize(pooled, p=2, dim=1).numpy()
    graph = read(tmp_path, shapes={TOKENS: (1, 16)})
    found = evaluate(graph, {TOKENS: tokens, MASK: mask})[EMBEDDING]
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


class _RowsModel(torch.nn.Module):  # type: ignore[misc]
    """A model with tokens and mask in, rows out."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(tokens, attention_mask=mask).last_hidden_state


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["eager", "sdpa"])
def test_what_pytorch_exports_is_one_segment(form: str, tmp_path: Path) -> None:
    """With a mask that is made at run time; sdpa has Where and IsNaN around the softmax."""
    config = AutoConfig.for_model("bert", **BERT | {"hidden_size": 64}, attn_implementation=form)
    model = _RowsModel(AutoModel.from_config(config)).eval()
    tokens, mask = torch.arange(2, 34)[None], (torch.arange(32) < 20).long()[None]
    file = tmp_path / "bert.onnx"
    names = {"input_names": [TOKENS, MASK], "output_names": [ROWS]}
    torch.onnx.export(model, (tokens, mask), str(file), dynamo=False, **names)
    random = np.random.default_rng(8)
    samples = {
        TOKENS: random.integers(2, 301, (8, 1, 32)),
        MASK: (np.arange(32) < random.integers(1, 33, (8, 1, 1))).astype(np.int64),
    }
    built = build_plan(file, CompileOptions(calibrate=samples))
    kinds = [op.kind for op in built.passes["canonical"].operations]
    assert (kinds.count("attention"), kinds.count("softmax")) == (3, 0)
    assert len(built.plan.segments) == 1
    with torch.no_grad():
        wanted = model(tokens, mask)[:, :20].numpy()
    inputs = {TOKENS: tokens.numpy(), MASK: mask.numpy()}
    found = evaluate(built.passes["canonical"], inputs)[ROWS][:, :20]
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()
