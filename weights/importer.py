# SPDX-License-Identifier: Apache-2.0
"""Read a Hugging Face GPT-2 checkpoint into float32 numpy arrays, without torch.

A checkpoint is a local folder or a hub id. It consists of config.json and either
model.safetensors or the shards that model.safetensors.index.json names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
HUB_FILES = (CONFIG, "*.safetensors", INDEX, "tokenizer.json", "activation_scales.json")
"""What is fetched from the hub."""
FAMILIES = ("gpt2",)
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh")
"""The first is exact (erf), the others are the tanh form."""
MAX_SIZE = 1 << 24
"""The largest dimension of a config; what a chip takes is less and is the compiler's business."""
DTYPES = ("F64", "F32", "F16", "BF16")
"""Types of stored tensors, as safetensors calls them; all become float32."""
PREFIX = "transformer."
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
"""The causal mask that old checkpoints store; not a parameter."""


class CheckpointError(ValueError):
    """A checkpoint is not found, incomplete, of another kind or damaged."""


@dataclass(frozen=True, slots=True)
class Gpt2Shape:
    """The dimensions and constants of a GPT-2; hidden = heads * head_dim."""

    hidden: int
    layers: int
    heads: int
    ffn: int
    vocab: int
    context: int
    epsilon: float
    activation: str

    @property
    def head_dim(self) -> int:
        """Channels of one head."""
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A float model.

    Attributes:
        family: "gpt2".
        shape: its dimensions.
        tensors: float32 arrays by Hugging Face name without the `transformer.` prefix. Matrices of
            a layer are (in, out); "wte.weight" is (V, H), "wpe.weight" (C, H), "lm_head.weight"
            (V, H) and always present (the same array as "wte.weight" when tied).
        source: where it came from, for messages.
        folder: the folder that was read, None for a model built in memory.
    """

    family: str
    shape: Gpt2Shape
    tensors: dict[str, npt.NDArray[np.float32]]
    source: str
    folder: Path | None = None

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        if self.family not in FAMILIES:
            raise CheckpointError(
                f"{self.source}: given family {self.family!r}, allowed {FAMILIES}"
            )
        check_tensors(self.source, self.shape, self.tensors)

    def layer(self, index: int, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor of block `index`, for example `layer(0, "attn.c_attn.weight")`."""
        return self.tensors[f"h.{index}.{name}"]


def expected_tensors(shape: Gpt2Shape) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor that a checkpoint must hold."""
    hidden, ffn = shape.hidden, shape.ffn
    block: dict[str, tuple[int, ...]] = {
        "ln_1.weight": (hidden,),
        "ln_1.bias": (hidden,),
        "attn.c_attn.weight": (hidden, 3 * hidden),
        "attn.c_attn.bias": (3 * hidden,),
        "attn.c_proj.weight": (hidden, hidden),
        "attn.c_proj.bias": (hidden,),
        "ln_2.weight": (hidden,),
        "ln_2.bias": (hidden,),
        "mlp.c_fc.weight": (hidden, ffn),
        "mlp.c_fc.bias": (ffn,),
        "mlp.c_proj.weight": (ffn, hidden),
        "mlp.c_proj.bias": (hidden,),
    }
    tensors: dict[str, tuple[int, ...]] = {
        "wte.weight": (shape.vocab, hidden),
        "wpe.weight": (shape.context, hidden),
    }
    for layer in range(shape.layers):
        tensors.update({f"h.{layer}.{name}": size for name, size in block.items()})
    tensors["ln_f.weight"] = (hidden,)
    tensors["ln_f.bias"] = (hidden,)
    tensors["lm_head.weight"] = (shape.vocab, hidden)
    return tensors


def check_tensors(
    source: str, shape: Gpt2Shape, tensors: dict[str, npt.NDArray[np.float32]]
) -> None:
    """Raise CheckpointError unless `tensors` is complete, of the right shapes, and finite."""
    if shape.layers > len(tensors):  # before a table of that many layers is made
        raise CheckpointError(
            f"{source}: config.json n_layer: given {shape.layers}, "
            f"allowed at most the number of tensors, {len(tensors)}"
        )
    expected = expected_tensors(shape)
    missing = [name for name in expected if name not in tensors]
    if missing:
        raise CheckpointError(
            f"{source}: tensor {missing[0]!r} is missing ({len(missing)} of {len(expected)} are), "
            f"allowed shape {expected[missing[0]]}"
        )
    for name in sorted(tensors.keys() - expected.keys()):
        raise CheckpointError(
            f"{source}: tensor {name!r}: given shape {tensors[name].shape}, "
            "but a GPT-2 of this config has no tensor of this name"
        )
    for name in expected:
        tensor = tensors[name]
        if tensor.shape != expected[name]:
            raise CheckpointError(
                f"{source}: tensor {name!r}: given shape {tensor.shape}, allowed {expected[name]}"
            )
        if tensor.dtype != np.float32:
            raise CheckpointError(
                f"{source}: tensor {name!r}: given dtype {tensor.dtype}, allowed float32"
            )
        finite = np.isfinite(tensor)
        if not finite.all():
            index = tuple(int(i) for i in np.argwhere(~finite)[0])
            raise CheckpointError(
                f"{source}: tensor {name!r}: given {tensor[index]} at index {index}, "
                "allowed finite float32 numbers"
            )


def load_checkpoint(source: str | Path, *, revision: str | None = None) -> Checkpoint:
    """Read a checkpoint from a local folder or, if there is none of that name, from the hub.

    Args:
        source: a folder, or a hub id such as "openai-community/gpt2". Without a network a hub id
            is looked up in the local cache of huggingface_hub.
        revision: branch, tag or commit on the hub; None is the default branch.

    Raises:
        CheckpointError: not found, not a GPT-2, or a tensor is missing, misshapen or not finite.
            The message names the file or tensor, what was given and what is allowed.
    """
    folder = Path(source)
    if folder.is_file():
        raise CheckpointError(
            f"load_checkpoint: given {str(source)!r}, which is a file; allowed is the folder with "
            f"{CONFIG} and {WEIGHTS} in it, or a hub id"
        )
    if not folder.is_dir():
        folder = _fetch(str(source), revision)
    name = str(source)
    config = _read_json(folder / CONFIG, name)
    shape = parse_config(config, name)
    tensors = _read_tensors(folder, name)
    if config.get("tie_word_embeddings", True) and "wte.weight" in tensors:
        _tie(tensors, name)
    return Checkpoint("gpt2", shape, tensors, name, folder)


def _tie(tensors: dict[str, npt.NDArray[np.float32]], source: str) -> None:
    """Make the head the token table; a stored head that is another one is a contradiction."""
    table = tensors["wte.weight"]
    head = tensors.get("lm_head.weight", table)
    if head.shape != table.shape or head.tobytes() != table.tobytes():
        raise CheckpointError(
            f"{source}: tensor 'lm_head.weight': given another one than 'wte.weight', allowed an "
            "equal one or none, since config.json ties them (tie_word_embeddings)"
        )
    tensors["lm_head.weight"] = table


def _fetch(source: str, revision: str | None) -> Path:
    """Return the folder of a hub snapshot, from the network or else from the local cache."""
    allowed = "allowed is a folder with config.json and model.safetensors, or a hub id"
    if not _HUB_ID.fullmatch(source):
        raise CheckpointError(f"load_checkpoint: given {source!r}, which is no folder; {allowed}")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ImportError as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is no folder, and huggingface_hub is not "
            f"installed; {allowed} with huggingface_hub installed"
        ) from error
    try:
        found = snapshot_download(source, revision=revision, allow_patterns=list(HUB_FILES))
    except LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is neither a folder nor in the local cache "
            f"of huggingface_hub, and the hub cannot be reached; {allowed}"
        ) from error
    except (HfHubHTTPError, HFValidationError) as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is no folder, and the hub refused it: "
            f"{error}; {allowed}"
        ) from error
    return Path(found)


def _read_json(path: Path, source: str) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{source}: {path.name} is missing in {path.parent}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source}: {path.name} is not JSON: {error}") from error
    except OSError as error:
        raise CheckpointError(f"{source}: {path.name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{source}: {path.name}: given {type(content).__name__}, allowed map")
    return content


def parse_config(config: dict[str, Any], source: str) -> Gpt2Shape:
    """Return the dimensions of a GPT-2 config; defaults are those of transformers' GPT2Config.

    Raises:
        CheckpointError: another architecture, or an option that the pipeline does not have.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise CheckpointError(
            f"{source}: config.json model_type: given {family!r}, allowed {list(FAMILIES)}"
        )
    architectures = config.get("architectures") or ["GPT2LMHeadModel"]
    known = ("GPT2LMHeadModel", "GPT2Model")
    if not isinstance(architectures, list) or any(name not in known for name in architectures):
        raise CheckpointError(
            f"{source}: config.json architectures: given {architectures!r}, allowed {list(known)}"
        )
    fixed = {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    }
    for name, allowed in fixed.items():
        given = config.get(name, allowed)
        if given is not allowed:
            raise CheckpointError(
                f"{source}: config.json {name}: given {given!r}, allowed {allowed}"
            )
    tied = config.get("tie_word_embeddings", True)
    if not isinstance(tied, bool):
        raise CheckpointError(
            f"{source}: config.json tie_word_embeddings: given {tied!r}, allowed True or False"
        )
    activation = config.get("activation_function", "gelu_new")
    if activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{source}: config.json activation_function: given {activation!r}, "
            f"allowed {list(ACTIVATIONS)}"
        )
    epsilon = config.get("layer_norm_epsilon", 1e-5)
    if not isinstance(epsilon, int | float) or not 0 < epsilon < 1:
        raise CheckpointError(
            f"{source}: config.json layer_norm_epsilon: given {epsilon!r}, "
            "allowed a number between 0 and 1"
        )
    sizes: dict[str, int] = {}
    defaults = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    for name, default in (defaults | {"n_positions": 1024, "n_inner": 0}).items():
        size = config.get(name, default)
        if name == "n_inner" and not size:
            size = 4 * sizes["n_embd"]
        if type(size) is not int or not 1 <= size <= MAX_SIZE:
            raise CheckpointError(
                f"{source}: config.json {name}: given {size!r}, allowed int >= 1 and <= {MAX_SIZE}"
            )
        sizes[name] = size
    if sizes["n_embd"] % sizes["n_head"]:
        raise CheckpointError(
            f"{source}: config.json n_embd: given {sizes['n_embd']}, "
            f"allowed a multiple of n_head = {sizes['n_head']}"
        )
    return Gpt2Shape(
        hidden=sizes["n_embd"],
        layers=sizes["n_layer"],
        heads=sizes["n_head"],
        ffn=sizes["n_inner"],
        vocab=sizes["vocab_size"],
        context=sizes["n_positions"],
        epsilon=float(epsilon),
        activation=str(activation),
    )


def _read_tensors(folder: Path, source: str) -> dict[str, npt.NDArray[np.float32]]:
    """Read all shards as float32, by name without prefix."""
    files = [WEIGHTS]
    if not (folder / WEIGHTS).is_file():
        if not (folder / INDEX).is_file():
            raise CheckpointError(
                f"{source}: no weights in {folder}; allowed is {WEIGHTS}, or {INDEX} with shards"
            )
        weight_map = _read_json(folder / INDEX, source).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise CheckpointError(f"{source}: {INDEX}: given no weight_map, allowed name to file")
        files = sorted({_shard_name(name, file, source) for name, file in weight_map.items()})
    tensors: dict[str, npt.NDArray[np.float32]] = {}
    for file in files:
        path = folder / file
        if not path.is_file():
            raise CheckpointError(f"{source}: shard {file} is missing in {folder}")
        try:
            with safe_open(path, framework="np") as shard:
                for name in shard.keys():  # noqa: SIM118 (a safetensors handle is no mapping)
                    dtype = shard.get_slice(name).get_dtype()
                    _take(tensors, name, dtype, partial(shard.get_tensor, name), source)
        except (SafetensorError, TypeError, OSError) as error:
            raise CheckpointError(f"{source}: {file} cannot be read: {error}") from error
    return tensors


def _shard_name(name: str, file: object, source: str) -> str:
    """Return the file of a tensor as the index has it: the plain name of a safetensors file."""
    if not isinstance(file, str) or Path(file).name != file or Path(file).suffix != ".safetensors":
        raise CheckpointError(
            f"{source}: {INDEX}: tensor {name!r}: given file {file!r}, "
            "allowed the name of a .safetensors file in the folder"
        )
    return file


def _take(
    tensors: dict[str, npt.NDArray[np.float32]],
    name: str,
    dtype: str,
    load: Callable[[], npt.NDArray[Any]],
    source: str,
) -> None:
    """Add one stored tensor as float32; mask buffers are dropped."""
    short = name.removeprefix(PREFIX)
    if _BUFFERS.fullmatch(short):
        return
    if dtype not in DTYPES:
        raise CheckpointError(
            f"{source}: tensor {name!r}: given dtype {dtype}, allowed {', '.join(DTYPES)}"
        )
    if short in tensors:
        raise CheckpointError(f"{source}: tensor {name!r}: given twice, allowed once")
    with np.errstate(over="ignore"):  # what is too large becomes infinite and is refused as such
        tensors[short] = np.ascontiguousarray(load().astype(np.float32))
