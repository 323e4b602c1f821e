# SPDX-License-Identifier: Apache-2.0
"""The decoder that an ONNX file with past keys and values holds, as a checkpoint.

Exporters write one step of a decoder with its cache as inputs `past_key_values.L.key`, `.value` and
outputs `present.L.key`, `.value`. The canonical form of that graph shows dimensions and weights,
whoever wrote it; steps of the file on the float evaluator say whether they were read right: logits
of several positions are compared with those of the checkpoint, so nothing is taken on trust.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError, Operation
from npu.graph.importers import read
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.facts import Facts
from weights.checkpoint import Checkpoint, CheckpointError, CheckpointShape, Float32
from weights.reference import forward
from weights.shape import NormKind

IDS, MASK, POSITIONS, LOGITS = "input_ids", "attention_mask", "position_ids", "logits"
PAST, PRESENT = re.compile(r"past_key_values\.(\d+)\.(key|value)"), "present.{}.{}"
STEPS = 4
"""Steps that are compared; one fewer positions are in the file's cache."""
CLOSE = 2e-3
"""Largest difference of a logit, as a share of the largest logit."""
LAYERS = ("q", "k", "v", "o", "gate", "up", "down")
ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swish": "silu"}
"""Functions of a table, with what a checkpoint calls them."""


class DecoderFileError(CheckpointError):
    """A file with past keys and values is no decoder that a checkpoint can be."""


def is_decoder(path: Path) -> bool:
    """Whether a file is an ONNX graph with past keys and values."""
    if path.suffix != ".onnx" or not path.is_file():
        return False
    import onnx  # not needed where no file is one

    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # whatever is wrong with it, its importer says it
        return False
    return any(PAST.fullmatch(one.name) for one in graph.input)


def read_decoder(path: Path) -> Checkpoint:
    """Return the decoder of a file.

    Raises:
        DecoderFileError: it is another network than a checkpoint can be; says where it differs.
    """
    try:
        return _Reader(path).checkpoint()
    except GraphError as error:
        raise DecoderFileError(str(error)) from error


@dataclass(frozen=True)
class _Layer:
    """Operations of a block: the norms, and the products by the names of a checkpoint."""

    norms: tuple[Operation, Operation]
    products: dict[str, Operation]
    activation: str


class _Reader:
    """One file: its graph, and its canonical form with who makes and reads what."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.graph = read(path, shapes=self._shapes())
        self.form = canonicalise(self.graph)
        self.facts = Facts(self.form)
        self.layers = 1 + max(int(PAST.fullmatch(name)[1]) for name in self._past())  # type: ignore[index]

    def refusal(self, what: str) -> DecoderFileError:
        """Return the error of a graph that is built in another way."""
        return DecoderFileError(f"{self.path}: {what}, allowed is a decoder as GPT-2 or Llama")

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs: one row, one token, a few positions before it."""
        import onnx

        found: dict[str, tuple[int, ...]] = {}
        for one in onnx.load(self.path, load_external_data=False).graph.input:
            sizes = [size.dim_value for size in one.type.tensor_type.shape.dim]
            if PAST.fullmatch(one.name):
                if len(sizes) != 4 or not sizes[1] or not sizes[3]:
                    raise self.refusal(f"{one.name!r} is no cache [batch, heads, positions, lanes]")
                found[one.name] = (1, sizes[1], STEPS - 1, sizes[3])
            elif one.name in (IDS, POSITIONS):
                found[one.name] = (1, 1)
            elif one.name == MASK:
                found[one.name] = (1, STEPS)
            else:
                raise self.refusal(f"given the input {one.name!r}")
        for name in (IDS, MASK):
            if name not in found:
                raise self.refusal(f"given no input {name!r}")
        return found

    def _past(self) -> list[str]:
        return [name for name in self.graph.inputs if PAST.fullmatch(name)]

    # How to walk

    def _weight(self, one: Operation) -> Array | None:
        """Return the constant matrix (in, out) of a product."""
        if one.kind != "matmul":
            return None
        found = self.facts.value(one.inputs[1])
        if found is None or found.ndim != 2:
            return None
        return found.T if one["transpose_b"] else found

    def _above(self, name: str) -> Operation:
        """Return the product with weights that a tensor comes from, the next one."""
        todo, seen = [name], set[str]()
        while todo:
            maker = self.facts.maker(todo.pop(0))
            if maker is None or maker.name in seen:
                continue
            if self._weight(maker) is not None:
                return maker
            seen.add(maker.name)
            todo += maker.used
        raise self.refusal(f"{name!r} comes from no product with weights")

    def _below(self, name: str) -> Operation:
        """Return the product with weights that a tensor goes into, the next one."""
        todo, seen = [name], set[str]()
        while todo:
            for reader in self.facts.readers[todo.pop(0)]:
                if self._weight(reader) is not None:
                    return reader
                if reader.name not in seen:
                    seen.add(reader.name)
                    todo += reader.outputs
        raise self.refusal(f"{name!r} goes into no product with weights")

    def _readers(self, name: str, kinds: tuple[str, ...]) -> list[Operation]:
        return [one for one in self.facts.readers[name] if one.kind in kinds]

    def _norm(self, name: str) -> Operation:
        found = self._readers(name, ("rmsnorm", "layernorm"))
        if len(found) != 1:
            raise self.refusal(f"{name!r} is not normalised once")
        return found[0]

    def _added(self, product: Operation, stream: str) -> str:
        """Return the sum of a product and the residual stream."""
        for one in self._readers(product.outputs[0], ("add",)):
            if stream in one.inputs:
                return one.outputs[0]
        raise self.refusal(f"{product.outputs[0]!r} is not added to {stream!r}")

    # What is read

    def _embedded(self) -> tuple[str, Array, Array | None]:
        """Return the stream in front of the first block, token table and positions."""
        tables = {
            one.inputs[1]: one
            for one in self.form.operations
            if one.kind == "gather" and self.facts.value(one.inputs[0]) is not None
        }
        tokens = next((one for name, one in tables.items() if self._from(name, IDS)), None)
        if tokens is None:
            raise self.refusal(f"no table of tokens is read at {IDS!r}")
        stream, positions = tokens.outputs[0], None
        for one in self._readers(stream, ("add",)):
            (other,) = [name for name in one.inputs if name != stream]
            maker = self.facts.maker(other)
            if maker is not None and maker in tables.values():
                stream, positions = one.outputs[0], self.facts.value(maker.inputs[0])
        return stream, self._constant(tokens.inputs[0]), positions

    def _from(self, name: str, source: str) -> bool:
        """Whether a tensor follows from an input alone."""
        if name == source:
            return True
        maker = self.facts.maker(name)
        return maker is not None and any(self._from(each, source) for each in maker.used)

    def _constant(self, name: str) -> Array:
        found = self.facts.value(name)
        assert found is not None
        return found

    def _blocks(self, stream: str) -> Iterator[_Layer]:
        """Yield the blocks; the last value of the stream is that in front of the last norm."""
        for number in range(self.layers):
            norm = self._norm(stream)
            key, value = (self._new(number, part) for part in ("key", "value"))
            products = {"k": self._above(key), "v": self._above(value)}
            others = [
                one
                for one in self._readers(norm.outputs[0], ("matmul",))
                if one not in products.values()
            ]
            products["q"] = others[0] if others else products["k"]  # or one product makes all three
            products["o"] = self._below(PRESENT.format(number, "value"))
            stream = self._added(products["o"], stream)
            second = self._norm(stream)
            activation = self._feed_forward(second.outputs[0], products)
            stream = self._added(products["down"], stream)
            yield _Layer((norm, second), products, activation)
        self.end = stream

    def _new(self, layer: int, part: str) -> str:
        """Return what a step appends to a cache."""
        maker = self.facts.maker(PRESENT.format(layer, part))
        if maker is None or maker.kind != "concat" or len(maker.inputs) != 2:
            raise self.refusal(f"{PRESENT.format(layer, part)!r} is not the past with one row more")
        return maker.inputs[1]

    def _feed_forward(self, name: str, products: dict[str, Operation]) -> str:
        """Add the products behind the second norm; return the activation."""
        found = self._readers(name, ("matmul",))
        tables = {one: self._readers(one.outputs[0], ("table",)) for one in found}
        active = [one for one in found if tables[one]]
        if len(active) != 1 or len(found) > 2:
            raise self.refusal(f"{name!r} is read by {len(found)} products of which one is active")
        if len(found) == 2:
            (products["gate"],) = active
        (products["up"],) = [one for one in found if one not in active] or active
        products["down"] = self._below(products["up"].outputs[0])
        functions = tables[active[0]][0]["functions"]
        if len(functions) != 1 or functions[0] not in ACTIVATIONS:
            raise self.refusal(f"the activation is {', '.join(functions)}")
        return ACTIVATIONS[functions[0]]

    def _theta(self, lanes: int) -> float:
        """Return the base of the rotary frequencies, constants of the graph or in its tables."""
        pairs = lanes // 2
        for one in self.graph.tensors.values():
            if one.data is None or one.data.dtype.kind != "f" or not one.data.ndim:
                continue
            values = one.data.reshape(-1, one.data.shape[-1]).astype(np.float64)
            if len(values) > 1 and np.all(values[0] == 1):  # cosines, row by row of positions
                values = np.arccos(np.clip(values[1:2], -1, 1))
            angles = values.reshape(-1)[:pairs]
            if values.size in (pairs, lanes) and pairs > 1 and 0 < angles[1] < 1:
                theta = float(angles[1] ** -pairs)
                expected = theta ** (-np.arange(pairs) / pairs)
                if np.allclose(np.cos(angles), np.cos(expected), atol=1e-5):
                    return float(f"{theta:.4g}")
        raise self.refusal("no frequencies of rotary positions")

    def checkpoint(self) -> Checkpoint:
        """Return the decoder, compared with the file."""
        stream, embed, positions = self._embedded()
        blocks = list(self._blocks(stream))
        norm, head = self._norm(self.end), self._above(LOGITS)
        key = self.graph.type(self._past()[0]).shape
        lanes, kv_heads = key[3], key[1]
        tensors: dict[str, Float32] = {"embed": embed.astype(np.float32)}
        if positions is not None:
            tensors["positions"] = positions.astype(np.float32)
        biases: list[str] = []
        queries = 0
        for number, block in enumerate(blocks):
            for name, one in zip(("norm1", "norm2"), block.norms, strict=True):
                self._take_norm(tensors, f"h.{number}.{name}", one)
            queries = self._take_products(tensors, f"h.{number}", block, kv_heads * lanes, biases)
        self._take_norm(tensors, "norm", norm)
        matrix = self._weight(head)
        assert matrix is not None
        tied = matrix.T.shape == embed.shape and np.array_equal(matrix.T, embed)
        if not tied:
            tensors["head"] = matrix.astype(np.float32)
        kind: NormKind = "layernorm" if norm.kind == "layernorm" else "rmsnorm"
        gated = "gate" in blocks[0].products
        family = (
            "gpt2" if positions is not None else "qwen2" if set(biases) == set("qkv") else "llama"
        )
        shape = CheckpointShape(
            family=family,
            norm=kind,
            hidden=embed.shape[1],
            layers=self.layers,
            heads=queries // lanes,
            kv_heads=kv_heads,
            head_dim=lanes,
            ffn=tensors["h.0.up.weight"].shape[1],
            vocab=embed.shape[0],
            context=self._context(positions),
            rope=positions is None,
            gated=gated,
            epsilon=float(str(np.float32(norm["epsilon"]))),  # the decimal that was meant
            activation=blocks[0].activation,
            biases=tuple(name for name in LAYERS if name in biases),
            rope_theta=self._theta(lanes) if positions is None else 0.0,
            tied=tied,
        )
        tensors = {name: np.ascontiguousarray(each, np.float32) for name, each in tensors.items()}
        found = Checkpoint(shape, tensors, str(self.path), self.path.parent)
        self._compare(found)
        return found

    def _take_norm(self, tensors: dict[str, Float32], name: str, one: Operation) -> None:
        for part, given in zip(("weight", "bias"), one.inputs[1:], strict=False):
            if given:
                tensors[f"{name}.{part}"] = self._constant(given).reshape(-1)

    def _take_products(
        self, tensors: dict[str, Float32], at: str, block: _Layer, keys: int, biases: list[str]
    ) -> int:
        """Take weights and biases of a block; return the columns of q."""
        queries = 0
        for name, one in block.products.items():
            weight = self._weight(one)
            assert weight is not None
            bias = self.facts.value(one.inputs[2]) if len(one.used) > 2 else None
            if bias is not None:
                bias = np.broadcast_to(bias.reshape(-1), weight.shape[1:])
            if name in ("q", "k", "v") and block.products["q"] is block.products["v"]:
                ends = (0, weight.shape[1] - 2 * keys, weight.shape[1] - keys, weight.shape[1])
                part = slice(*ends["qkv".index(name) :][:2])
                weight, bias = weight[:, part], bias if bias is None else bias[part]
            tensors[f"{at}.{name}.weight"] = weight
            if bias is not None:
                tensors[f"{at}.{name}.bias"] = bias
                biases.append(name)
            queries = weight.shape[1] if name == "q" else queries
        return queries

    def _context(self, positions: Array | None) -> int:
        """Return the positions that the decoder is for: of its table, or as config.json says."""
        if positions is not None:
            return int(positions.shape[0])
        config = self.path.with_name("config.json")
        try:
            found: Any = json.loads(config.read_text(encoding="utf-8"))["max_position_embeddings"]
        except (OSError, ValueError, KeyError, TypeError):
            found = None
        if not isinstance(found, int) or found < 1:
            raise DecoderFileError(
                f"{self.path}: the file does not say for how many positions it is: allowed with "
                f"config.json beside it, with max_position_embeddings"
            )
        return found

    def _compare(self, found: Checkpoint) -> None:
        """Compare logits of a few positions with those of the file, step by step."""
        rng = np.random.default_rng(1)
        ids = rng.integers(0, found.shape.vocab, STEPS)
        expected = forward(found, ids[None].astype(np.int64))[0]
        cache = {name: np.zeros(self.graph.type(name).shape, np.float32) for name in self._past()}
        for position, token in enumerate(ids):
            mask = np.arange(STEPS) >= STEPS - 1 - position
            given = {
                IDS: np.array([[token]]),
                MASK: mask[None].astype(np.int64),
                POSITIONS: np.array([[position]]),
            }
            inputs = {name: each for name, each in given.items() if name in self.graph.inputs}
            step = evaluate(self.graph, {**inputs, **cache})
            wrong = np.abs(step[LOGITS].reshape(-1) - expected[position]).max()
            if not wrong <= CLOSE * np.abs(expected[position]).max():
                raise self.refusal(
                    f"its logits at position {position} differ from those of "
                    f"{found.shape.family} with its weights by {wrong:.2g}"
                )
            for name in self._past():
                number, part = PAST.fullmatch(name).groups()  # type: ignore[union-attr]
                cache[name] = step[PRESENT.format(number, part)][:, :, 1:]
