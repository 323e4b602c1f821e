# SPDX-License-Identifier: Apache-2.0
"""Digests of all that the compiler makes: programs, streams, tables, caches, maps of tensors.

They stand in `compiler_digests.json`: a change of the compiler that is to change no program leaves
the file as it is. One that is to change programs makes it anew, and the file's difference shows
which ones:

    python -m tests.python.compiler.compiler_digests
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from npu.compiler import (
    CompiledBlock,
    CompiledModel,
    CompiledProgram,
    CompileError,
    StreamShare,
    TensorRef,
    compile_block,
    compile_model,
)
from spec.isa import Instruction
from spec.isa.instruction import encode_image
from spec.isa.operands import ARRAY_DIMS, Limits
from tb.benchmarks import measured_models
from tb.benchmarks.catalogue import CASES
from tb.benchmarks.model_benchmarks import FAMILIES
from weights.model import Block, Linear, Norm, QuantizedModel
from weights.shape import Shape

FILE = Path(__file__).with_suffix(".json")
ABOUT = (
    "SHA-256, the first 16 hexadecimal digits; made by: "
    "python -m tests.python.compiler.compiler_digests"
)
DIGITS = 16

Digests = dict[str, str]
"""Digest by part of a case."""


def digest(*parts: bytes | str) -> str:
    """Return the digest of parts; where one ends and the next begins counts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()[:DIGITS]


def words(program: Iterable[Instruction]) -> str:
    """Return the digest of a program's words."""
    return digest(encode_image(list(program)))


def _maps(shares: Iterable[StreamShare], tensors: Iterable[TensorRef], *numbers: int) -> str:
    """Return the digest of what a program takes from the stream and where it writes tensors."""
    records = [json.dumps(astuple(share)) for share in shares]
    records += [json.dumps(astuple(tensor)) for tensor in tensors]
    return digest(*records, json.dumps(numbers))


def _program(program: CompiledProgram) -> str:
    """Return the digests of a program's words and text, and of its maps."""
    sizes = program.sram_bytes, program.rows
    image = encode_image(program.program.instructions)
    return f"{digest(image, program.text)} {_maps(program.shares, program.tensors, *sizes)}"


Request = tuple[int, int, int | None]
"""Rows, start and chunk of a prompt."""
PROMPTS: tuple[Request, ...] = (
    (1, 0, None),
    (16, 0, None),
    (17, 3, None),
    (33, 0, 16),
    (40, 7, 5),
    (128, 0, None),
)
"""Prompts of which prefill and generate are compiled where the context has room for them."""


def _programs(
    compiled: CompiledModel, context: int, prompts: tuple[Request, ...]
) -> Iterator[tuple[str, CompiledProgram]]:
    """Yield programs of every kind."""
    yield "decode", compiled.decode()
    yield "decode, logits", compiled.decode(logits=True)
    for rows, start, chunk in prompts:
        if start + rows <= context:
            what = f"{rows} from {start}, chunk {chunk}"
            yield f"prefill {what}", compiled.prefill(rows, start, chunk=chunk)
            yield f"prefill {what}, logits", compiled.prefill(rows, start, chunk=chunk, logits=True)
        if start + rows < min(context, 40):
            yield f"generate {what}", compiled.generate(rows, start, chunk=chunk)


def _model(
    compiled: CompiledModel, context: int, prompts: tuple[Request, ...] = PROMPTS
) -> Digests:
    """Return the digests of a compiled model and of its programs."""
    found = {
        "stream": digest(compiled.stream),
        "shares": _maps(compiled.shares, ()),
        "sections": digest(*(part for each in sorted(compiled.sections.items()) for part in each)),
        "cache": digest(json.dumps(astuple(compiled.cache)), json.dumps(compiled.registers())),
        "packed file": digest(compiled.packed()),
    }
    programs = _programs(compiled, context, prompts)
    return found | {name: _program(program) for name, program in programs}


def _block(make: Callable[[], CompiledBlock]) -> str:
    """Return the digests of a block's words and text, of its stream, and of its maps."""
    try:
        block = make()
    except CompileError as error:
        return f"refused {digest(str(error))}"
    image = encode_image(block.program.instructions)
    sizes = block.sram_bytes, block.input_bytes, block.output_bytes, block.edge
    maps = _maps(block.shares, block.tensors, *sizes)
    return f"{digest(image, block.text)} {digest(block.stream)} {maps}"


def _benchmark(name: str) -> Digests:
    """Return the digests of the programs that a benchmark runs."""
    load = CASES[name].load
    assert load is not None
    runs = load(np.random.default_rng(1)).runs
    return {f"program {at}": words(run.program) for at, run in enumerate(runs)}


LARGE = (
    *("small_decode", "fmt_small", "batch_small", "verify_small", "gqa", "batch_gqa"),
    *("greedy", "spec"),
)
"""Benchmarks that take too long to make; three layers of GPT-2 small stand for them."""


@cache
def _small() -> CompiledModel:
    """Return a decoder of GPT-2 small's shape; its layers are all the same one."""
    model = measured_models.random_gpt2(
        measured_models.small_shape(layers=1), np.random.default_rng(1)
    )
    shape = replace(model.shape, layers=3)
    return compile_model(replace(model, shape=shape, blocks=3 * model.blocks), cache="memory")


def _small_digests() -> Digests:
    compiled = _small()
    programs = {
        "decode": compiled.decode(),
        "decode, logits": compiled.decode(logits=True),
        "prefill 48": compiled.prefill(48),
        "verify 8": compiled.verify(8, 100),
        "batch of 16": compiled.batch(range(16), [row * compiled.cache.bytes for row in range(16)]),
    }
    return {name: _program(program) for name, program in programs.items()} | {
        "stream": digest(compiled.stream)
    }


def _norm(rng: np.random.Generator, size: int) -> Norm:
    return Norm(
        int(rng.integers(1 << 40)),
        rng.integers(0, 1 << 15, size).astype(np.uint16),
        rng.integers(0, 64, size).astype(np.uint8),
        rng.integers(-128, 128, size, np.int8),
    )


def _linear(rng: np.random.Generator, inputs: int, outputs: int) -> Linear:
    return Linear(
        rng.integers(-127, 128, (inputs, outputs), np.int8),
        rng.integers(-(1 << 20), 1 << 20, outputs).astype(np.int32),
        rng.integers(1 << 14, 1 << 15, outputs).astype(np.uint16),
        rng.integers(0, 64, outputs).astype(np.uint8),
    )


def _drawn_block(
    rng: np.random.Generator, hidden: int, heads: tuple[int, int, int], ffn: int, gated: bool
) -> Block:
    queries, keys = heads[0] * heads[2], heads[1] * heads[2]
    return Block(
        norm1=_norm(rng, hidden),
        qkv=_linear(rng, hidden, queries + 2 * keys),
        score_mult=int(rng.integers(1 << 14, 1 << 15)),
        score_shift=int(rng.integers(64)),
        proj=_linear(rng, queries, hidden),
        norm2=_norm(rng, hidden),
        up=_linear(rng, hidden, ffn),
        table=rng.integers(-128, 128, 256, np.int8),
        down=_linear(rng, ffn, hidden),
        gate=_linear(rng, hidden, ffn) if gated else None,
        product_mult=int(rng.integers(1 << 14, 1 << 15)) if gated else 0,
        product_shift=int(rng.integers(64)) if gated else 0,
    )


def _table(rng: np.random.Generator, most: int, *size: int) -> npt.NDArray[np.int16]:
    return rng.integers(-most, most + 1, size, np.int16)


def drawn(
    family: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ffn: int,
    context: int = 48,
    vocab: int = 83,
    window: int = 0,
    layers: int = 2,
) -> QuantizedModel:
    """Return a decoder of integers that no float had a part in, so that they are the same anywhere.

    "gpt2" has what GPT-2 has; any other family RMSNORM, rotary positions and a gate.
    """
    rng = np.random.default_rng(5)
    plain = family == "gpt2"
    dims = heads, kv_heads, head_dim
    return QuantizedModel(
        shape=Shape(
            family=family,
            norm="layernorm" if plain else "rmsnorm",
            hidden=hidden,
            layers=layers,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            ffn=ffn,
            vocab=vocab,
            context=context,
            window=window,
            rope=not plain,
            gated=not plain,
        ),
        wte=_table(rng, 9000, vocab, hidden),
        wpe=_table(rng, 9000, context, hidden) if plain else None,
        rope=None if plain else _table(rng, 1 << 14, 1, context, head_dim // 2, 2),
        blocks=tuple(_drawn_block(rng, hidden, dims, ffn, not plain) for _ in range(layers)),
        final_norm=_norm(rng, hidden),
        head=_linear(rng, hidden, vocab),
        scales={"logits": 0.5},
    )


ODD: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "groups of 7": ("qwen2", {"heads": 7, "kv_heads": 1, "head_dim": 16}, {}),
    "heads of 8": ("llama", {"heads": 14, "kv_heads": 2, "head_dim": 8}, {}),
    "heads of 128": ("mistral", {"heads": 2, "kv_heads": 2, "head_dim": 128, "window": 10}, {}),
    "heads of 10": (
        "llama",
        {"heads": 3, "kv_heads": 3, "head_dim": 10, "hidden": 50, "ffn": 33},
        {"array_dim": 32},
    ),
    "6 heads of 10": ("gpt2", {"heads": 6, "kv_heads": 6, "head_dim": 10, "hidden": 60}, {}),
    "one head": ("gpt2", {"heads": 1, "kv_heads": 1, "head_dim": 32, "hidden": 32}, {}),
    "61,500 tokens": (
        "llama",
        {"heads": 2, "kv_heads": 1, "head_dim": 8, "hidden": 16, "vocab": 61_500, "layers": 1},
        {},
    ),
}
"""Family, dimensions and chip of decoders that fill no tile."""
NARROW: dict[str, tuple[dict[str, int], dict[str, int], tuple[int, ...]]] = {
    "heads in turn and in pieces": (
        {"heads": 4, "kv_heads": 2, "head_dim": 32, "context": 100},
        {"acc_rows": 32},
        (28 * 1024, 13 * 1024, 10 * 1024, 6 * 1024),
    ),
    "groups in parts": (
        {"heads": 8, "kv_heads": 1, "head_dim": 8, "context": 100, "vocab": 17, "layers": 1},
        {},
        (4096, 2048),
    ),
}
"""Dimensions, chip and sizes of the SRAM of a LLaMA with less and less room."""
FEW: tuple[Request, ...] = ((17, 3, None), (40, 7, 16))


def _drawn(family: str, changes: Mapping[str, int]) -> QuantizedModel:
    return drawn(family, **({"hidden": 64, "ffn": 96} | dict(changes)))


def _odd(name: str) -> Digests:
    family, changes, limits = ODD[name]
    model = _drawn(family, changes)
    chip = Limits(**{"sram_bytes": 48 * 1024} | limits)  # type: ignore[arg-type]
    return _model(compile_model(model, chip), model.shape.context, FEW)


def _narrow(name: str) -> Digests:
    """Return the digests on chips with less and less room."""
    changes, limits, sizes = NARROW[name]
    model = _drawn("llama", changes)
    found: Digests = {}
    for size in sizes:
        compiled = compile_model(model, Limits(sram_bytes=size, **limits), cache="memory")  # type: ignore[arg-type]
        parts = _model(compiled, model.shape.context, FEW)
        found |= {f"SRAM {size}: {part}": one for part, one in parts.items()}
    return found


def _blocks() -> Iterator[tuple[str, Callable[[], CompiledBlock]]]:
    """Yield blocks in both forms: rows, layers, array sizes, depths, sizes of the SRAM."""
    tiny = partial(measured_models.tiny, "gpt2")
    odd = {
        f"{hidden} in {heads} heads, FFN {ffn}": partial(
            drawn,
            "gpt2",
            hidden=hidden,
            heads=heads,
            kv_heads=heads,
            head_dim=hidden // heads,
            ffn=ffn,
            context=128,
            layers=1,
        )
        for hidden, heads, ffn in ((48, 2, 100), (32, 1, 33), (16, 4, 5), (96, 3, 65))
    }

    def one(
        make: Callable[[], QuantizedModel], layer: int, rows: int, fused: bool, limits: Limits
    ) -> Callable[[], CompiledBlock]:
        return lambda: compile_block(make(), layer, rows, fused=fused, limits=limits)

    for fused in (True, False):
        form = "fused" if fused else "unfused"
        for size in ARRAY_DIMS:
            for rows in (1, 5, 16, 33, 128):
                chip = Limits(array_dim=size)
                yield f"{form}, array {size}, {rows} rows", one(tiny, 0, rows, fused, chip)
        for layer in (1, 3):
            yield f"{form}, layer {layer}", one(tiny, layer, 16, fused, Limits())
        for kib in (128, 96, 64, 48, 40, 32, 24, 20):
            chip = Limits(sram_bytes=kib * 1024)
            yield f"{form}, {kib} KiB, 40 rows", one(tiny, 0, 40, fused, chip)
        yield f"{form}, 32 accumulators", one(tiny, 0, 32, fused, Limits(acc_rows=32))
        for name, make in odd.items():
            for rows in (1, 17, 70):
                yield f"{form}, {name}, {rows} rows", one(make, 0, rows, fused, Limits())


def _shipped(family: str, size: int) -> Digests:
    """Return the digests of a shipped checkpoint on a size of the array, cache in both places.

    Small arrays have the tile edge of the array of 16, and fewer prompts here.
    """
    model, chip = measured_models.tiny(family), Limits(array_dim=size)
    prompts = PROMPTS if size == chip.edge else FEW
    found = _model(compile_model(model, chip, cache="sram"), model.shape.context, prompts)
    compiled = compile_model(model, chip, cache="memory")
    parts = _model(compiled, model.shape.context, FEW)
    return found | {f"cache in memory: {part}": one for part, one in parts.items()}


def cases() -> dict[str, Callable[[], Digests]]:
    """Return what is digested: by name, a function that compiles and returns the digests."""
    found: dict[str, Callable[[], Digests]] = {}
    for family in FAMILIES:
        for size in ARRAY_DIMS:
            found[f"{family}-tiny, array {size}"] = partial(_shipped, family, size)
    found |= {name: partial(_odd, name) for name in ODD}
    found |= {name: partial(_narrow, name) for name in NARROW}
    found["blocks"] = lambda: {name: _block(make) for name, make in _blocks()}
    for name, case in CASES.items():
        if case.load is not None and not name.startswith(LARGE):
            found[f"benchmark {name}"] = partial(_benchmark, name)
    return found | {"three layers of GPT-2 small": _small_digests}


def load() -> dict[str, Digests]:
    """Return the digests of the file, by case."""
    found: dict[str, Digests] = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    return found


def main() -> None:
    """Make the file."""
    found = {name: make() for name, make in cases().items()}
    FILE.write_text(json.dumps({"about": ABOUT, "cases": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
