# SPDX-License-Identifier: Apache-2.0
"""Whole decoders, compiled: tensors, the cache, logits and tokens equal the plain network's."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NoReturn

import pytest

from golden import decoder
from npu.asm import assemble
from npu.compiler import (
    CompiledModel,
    CompileError,
    PackError,
    StreamShare,
    compile_model,
    overhead,
    pack,
    pass_layout,
    pieces,
    traffic,
)
from npu.compiler.kv_staging import Form
from npu.compiler.model import Place, plan_model
from npu.compiler.shape import from_json, to_json
from spec.isa import Opcode
from spec.isa.operands import Limits
from spec.paths import ROOT
from tests.python.compiler.compiled_model import (
    ModelChip,
    check_end,
    check_steps,
    check_tensors,
    ids_of,
)
from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.synthetic import random_model, shape_of

CHIP = Limits(sram_bytes=48 * 1024)
FAMILIES = ("gpt2", "llama", "mistral", "qwen2")
Changes = dict[str, int]


WEIGHTS = ROOT / "weights"


@cache
def _model(family: str, changes: tuple[tuple[str, int], ...] = ()) -> QuantizedModel:
    fields: Changes = {"vocab": 83, "context": 24, "layers": 2}
    if family != "gpt2":
        fields["kv_heads"] = 2
    if family == "mistral":
        fields["window"] = 10
    return random_model(shape_of(family, **fields | dict(changes)), 3)


def _decode_form(compiled: CompiledModel) -> Form:
    return compiled.plan.step_with_logits.layout.choice.form


def _prefill_form(compiled: CompiledModel, pos: int, rows: int) -> Form:
    chunks = compiled.plan.prompt(rows, pos, chunk=16, logits=True)
    return chunks[0].layout.choice.form


@pytest.mark.parametrize(
    ("family", "place", "prompt"),
    [
        ("gpt2", "sram", []),
        ("llama", "memory", []),
        ("mistral", "sram", [2]),
        ("qwen2", "memory", [5]),
    ],
)
def test_every_position(family: str, place: Place, prompt: list[int]) -> None:
    """Decode steps for every position, up to the end of the context."""
    compiled = compile_model(_model(family), CHIP, cache=place)
    assert compiled.cache.in_memory == (place == "memory")
    check_steps(_model(family), compiled, prompt)


@pytest.mark.parametrize("array_dim", [8, 16, 32])
@pytest.mark.parametrize("family", ["gpt2", "mistral"])
def test_chunks(family: str, array_dim: int) -> None:
    """Chunks of 16 rows, a last one of one row, and prompts behind what is in the cache."""
    model = _model(family, (("context", 80), ("layers", 1), ("window", 20 * (family != "gpt2"))))
    compiled = compile_model(model, replace(CHIP, array_dim=array_dim))
    check_steps(model, compiled, [33, 6, 20, 1], chunk=16, decode=2)


RECIPES = [
    ("checkpoints/gpt2-tiny", "int4g32,head=nf4g32", 16),
    ("checkpoints/gpt2-tiny", "qkv=mxfp6e2,up=mxfp8e4,o=int4g64,down=int4s,head=mxfp4", 32),
    (
        "checkpoints/llama-tiny",
        "qkv=int8s,o=fp4g128,up=int4,gate=mxint8,down=ternary,head=mxfp6e3",
        16,
    ),
    ("checkpoints/llama-tiny", "nf4g32,qkv=mxfp8e5,head=int4", 32),
    ("finetuned/gpt2-tiny-int4g32", "int4g32", 16),
    ("finetuned/gpt2-tiny-int4s", "int4s", 16),
    ("finetuned/gpt2-tiny-ternary", "ternary", 16),
]


@pytest.mark.parametrize(("name", "recipe", "array_dim"), RECIPES)
def test_narrow_weights(name: str, recipe: str, array_dim: int) -> None:
    """Packed weights on the instruction-level model are golden's decoder on the expanded ones."""
    source = str(WEIGHTS / name)
    model = quantize_checkpoint(source, parse_recipe(recipe))
    compiled = compile_model(model, replace(CHIP, array_dim=array_dim))
    check_steps(model, compiled, [9], decode=3)
    assert CompiledModel.load(compiled.packed()) == compiled
    plain = compile_model(quantize_checkpoint(source), compiled.limits)
    assert len(compiled.stream) < 0.8 * len(plain.stream)
    parts = pieces(compiled.decode())
    assert sum(part.bytes for part in parts) == len(compiled.stream)


def test_weights_that_the_chip_cannot_expand() -> None:
    """Refused by name before any program is made, from a packed file too."""
    model = quantize_checkpoint(str(WEIGHTS / "checkpoints" / "gpt2-tiny"), parse_recipe("int4g16"))
    with pytest.raises(
        CompileError, match=r"^h\.0\.qkv: given int4g with groups of 16, allowed at"
    ):
        compile_model(model, replace(CHIP, array_dim=32))
    compiled = compile_model(model, CHIP)
    plain = replace(CHIP, narrow_formats=False)
    with pytest.raises(CompileError, match=r"^h\.0\.qkv: given weights in int4g, allowed int8"):
        compile_model(model, plain)
    data = replace(compiled, plan=replace(compiled.plan, limits=plain)).packed()
    for file, chip in ((data, None), (compiled.packed(), plain)):
        with pytest.raises(CompileError, match=r"^x: h\.0\.qkv: given weights in int4g, allowed"):
            CompiledModel.load(file, filename="x", chip=chip)
    roomy = replace(CHIP, sram_bytes=2 * CHIP.sram_bytes)
    assert CompiledModel.load(compiled.packed(), chip=roomy).limits == roomy
    with pytest.raises(PackError, match=r"^x: .*edge"):
        CompiledModel.load(compiled.packed(), filename="x", chip=replace(CHIP, array_dim=32))


@pytest.mark.parametrize("window", [1, 5, 16, 17, 31, 32])
@pytest.mark.parametrize(("rows", "chunk"), [(40, 16), (48, 48)])
def test_windows(window: int, rows: int, chunk: int) -> None:
    """Windows around tile boundaries; of a larger chunk later rows begin with later keys."""
    model = _model("mistral", (("context", 64), ("layers", 1), ("window", window)))
    check_steps(model, compile_model(model, CHIP), [rows], chunk=chunk, decode=9)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("qwen2", {"heads": 7, "kv_heads": 1, "head_dim": 16}),
        ("llama", {"heads": 14, "kv_heads": 2, "head_dim": 8}),
        ("llama", {"heads": 8, "kv_heads": 1, "head_dim": 64}),
        ("mistral", {"heads": 2, "kv_heads": 2, "head_dim": 128}),
        ("llama", {"heads": 3, "kv_heads": 3, "head_dim": 10, "hidden": 50, "ffn": 33}),
        ("gpt2", {"heads": 6, "hidden": 60, "ffn": 130, "vocab": 257}),
        ("gpt2", {"heads": 1, "hidden": 32, "vocab": 16}),
    ],
)
def test_shapes(family: str, changes: Changes) -> None:
    """Groups of 1 to 8 query heads, head dimensions of 8 to 128, widths that fill no tile."""
    model = _model(family, tuple(changes.items()))
    check_steps(model, compile_model(model, CHIP), [9], decode=4)


@pytest.mark.parametrize(
    ("sram_bytes", "forms"),
    [
        (28 * 1024, (Form.ALL, Form.ALL)),
        (13 * 1024, (Form.RING, Form.RING)),
        (10 * 1024, (Form.RING, Form.PIECES)),
        (6 * 1024, (Form.PIECES, Form.PIECES)),
    ],
)
def test_little_room(sram_bytes: int, forms: tuple[Form, Form]) -> None:
    """Less and less SRAM: all heads at once, heads in turn, heads in pieces; never other bits."""
    changes = {"context": 100, "layers": 2, "head_dim": 32, "kv_heads": 2, "window": 0}
    model = _model("llama", tuple(changes.items()))
    limits = replace(CHIP, sram_bytes=sram_bytes, acc_rows=32)
    compiled = compile_model(model, limits, cache="memory")
    assert (_decode_form(compiled), _prefill_form(compiled, 64, 21)) == forms
    check_steps(model, compiled, [85], chunk=16, decode=2)


@pytest.mark.parametrize(("sram_bytes", "stack"), [(1536, 1), (2048, 2), (2560, 4), (4096, 8)])
def test_few_query_heads_at_a_time(sram_bytes: int, stack: int) -> None:
    """Where the scores of a group have no room: the same bits from the same cache in memory."""
    changes = {"context": 100, "layers": 1, "heads": 8, "kv_heads": 1, "head_dim": 8, "vocab": 17}
    model = _model("llama", tuple(changes.items()))
    ids, trace = ids_of(model), decoder.forward_trace(model, ids_of(model))
    chip = ModelChip(compile_model(model, CHIP, cache="memory"))
    chip.run(chip.model.prefill(97), ids[:97])
    chip.model = compile_model(model, replace(CHIP, sram_bytes=sram_bytes), cache="memory")
    chip.sram = chip.sram[:sram_bytes].copy()
    assert chip.model.plan.step_with_logits.work.stack == stack
    program = chip.model.decode(logits=True)
    for pos in (97, 98):
        result = chip.run(program, pos=pos, token=ids[pos])
        refs = program.tensors_at(pos)
        check_tensors(model, refs, result, trace, slice(pos, pos + 1), sram_bytes)
        check_end(chip, trace, pos + 1, result.token)


def _greedy(model: QuantizedModel, ids: list[int], count: int) -> list[int]:
    """Return the tokens after a prompt, each by a forward pass over all before it."""
    out: list[int] = []
    for _ in range(count):
        out.append(int(decoder.forward(model, ids + out)[-1].argmax()))
    return out


@pytest.mark.parametrize(
    ("family", "place"),
    [("gpt2", "memory"), ("llama", "sram"), ("mistral", "memory"), ("qwen2", "sram")],
)
def test_generate(family: str, place: Place) -> None:
    """One program for prompt and all tokens; it ends by count, by EOS, and after one token."""
    model = _model(family)
    compiled = compile_model(model, CHIP, cache=place)
    ids = ids_of(model)[:7]
    want = _greedy(model, ids, 6)
    program = compiled.generate(len(ids), chunk=4)
    assert assemble(program.text).image() == program.program.image()
    for count in (1, 6):
        chip = ModelChip(compiled)
        result = chip.run(program, ids, loop_left=count - 1)
        assert chip.tokens(count) == want[:count]
        assert (result.out_count, result.token) == (count, want[count - 1])
        assert result.pos == len(ids) + count - 2
    chip = ModelChip(compiled)
    end = want.index(want[4])
    result = chip.run(program, ids, loop_left=5, eos=want[4])
    assert result.out_count == end + 1
    assert chip.tokens(end + 1) == want[: end + 1]


def test_wide_head_is_split() -> None:
    """A vocabulary of more columns than an instruction takes; the image is the same."""
    model = _model("llama", (("vocab", 61_500), ("layers", 1), ("hidden", 16), ("context", 16)))
    compiled = compile_model(model, CHIP)
    program = compiled.decode()
    heads = [word for word in program.program.instructions if word.opcode == Opcode.GEMM][-2:]
    assert [word.n for word in heads] == [61_424, 76]
    check_steps(model, compiled, [3], decode=1)


def test_barriers_are_needed() -> None:
    """Without any one of its barriers a decode step has a race."""
    model = _model("llama")
    compiled = compile_model(model, CHIP, cache="memory")
    program = compiled.decode()
    words = program.program.instructions
    barriers = [at for at, word in enumerate(words) if word.opcode == Opcode.BARRIER]
    assert len(barriers) > 20
    for at in barriers:
        chip = ModelChip(compiled)
        rest = [*words[:at], *words[at + 1 :]]
        assert chip.execute(rest, pos=17, loop_left=1).races, f"barrier at {at}"


def test_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided about a step when the model was compiled is not decided again."""
    compiled = compile_model(_model("mistral"), CHIP)

    def again(*_: object) -> NoReturn:
        raise AssertionError("planned a second time")

    monkeypatch.setattr(pass_layout, "place", again)
    assert compiled.decode().sram_bytes == compiled.plan.step.layout.sram_bytes
    assert compiled.decode(logits=True).text != compiled.decode().text
    with pytest.raises(AssertionError, match="a second time"):
        compiled.prefill(3)


def test_lifetimes_of_a_plan() -> None:
    """Buffers of a plan that hold something at the same time share no byte."""
    plan = compile_model(_model("llama"), CHIP).plan
    for step in (plan.step, plan.step_with_logits, *plan.prompt(20, 0, chunk=16, logits=True)):
        at, buffers = step.layout.at, step.layout.buffers
        assert {buffer.name for buffer in buffers} == at.keys()
        for a, b in combinations(buffers, 2):
            if a.first <= b.last and b.first <= a.last:
                assert at[a.name] + a.size <= at[b.name] or at[b.name] + b.size <= at[a.name]
        assert max(at[each.name] + each.size for each in buffers) <= step.layout.sram_bytes


def test_packed_model() -> None:
    """The packed file holds all that programs need."""
    compiled = compile_model(_model("mistral"), CHIP)
    data = compiled.packed()
    back = CompiledModel.load(data)
    assert back == compiled
    assert back.generate(9).text == compiled.generate(9).text
    assert sorted(compiled.sections) == ["rope", "tokens"]
    with pytest.raises(CompileError, match=r"x\.bin: JSON: no compiled model"):
        CompiledModel.load(_other_pack(), filename="x.bin")


def test_file_for_no_chip() -> None:
    """A file whose programs its chip has no room for is refused when it is read."""
    compiled = compile_model(_model("llama"), CHIP, cache="memory")
    small = replace(compiled.plan, limits=replace(CHIP, sram_bytes=1024))
    data = replace(compiled, plan=small).packed()
    with pytest.raises(CompileError, match=r"^x\.tsr: a decode step of .* there are 1024"):
        CompiledModel.load(data, filename="x.tsr")


KEYS = {"family", "rms", "hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab"}
KEYS |= {"context", "window", "positions", "rope", "gated", "numbers"}
"""What the JSON of a packed file has said of a shape from the first file on."""


def test_shape_in_a_packed_file() -> None:
    """Its names are those of the files that were written before, and others are refused."""
    compiled = compile_model(_model("mistral"), CHIP)
    fields = to_json(compiled.shape, compiled.numbers)
    assert fields.keys() == KEYS
    assert from_json(fields) == (compiled.shape, compiled.numbers)
    for changes, message in (
        ({"positions": True}, r"either positions or rope"),
        ({"numbers": [{}]}, r"shape: given .*score_mult"),
        ({"depth": 3}, r"shape: given .*depth"),
    ):
        with pytest.raises(CompileError, match=message):
            from_json(fields | changes)


def _other_pack() -> bytes:
    return pack(b"", (), info={"model": "m"})


def test_stream_is_accounted_for() -> None:
    """A step takes the whole image in order; with widths of whole tiles little of it is padding."""
    model = _model("llama", (("hidden", 64), ("ffn", 128), ("vocab", 256)))
    compiled = compile_model(model, CHIP)
    program = compiled.decode()
    assert program.shares == compiled.shares
    parts = pieces(program)
    assert sum(part.bytes for part in parts) == len(compiled.stream)
    assert overhead(parts) <= 1.03


def test_necessary_traffic() -> None:
    """A decode step and a prompt, with the cache in memory and in SRAM."""
    model = _model("mistral", (("hidden", 64), ("ffn", 128), ("vocab", 256)))
    weights = 2 * (64 * 128 + 64 * 64 + 3 * 64 * 128) + 64 * 256
    channels = 8 * (2 * (128 + 64 + 128 + 128 + 64) + 256) + 4 * 64 * 5
    stream = weights + channels + 2 * 256
    row = 2 * 2 * 2 * 16
    for place, kv in (("memory", row), ("sram", 0)):
        compiled = compile_model(model, CHIP, cache=place)  # type: ignore[arg-type]
        step = traffic(compiled, compiled.decode(), 20)
        assert (step.read, step.write) == (stream + 128 + 32 + 9 * kv, 4 + kv)
        prompt = traffic(compiled, compiled.prefill(20, chunk=16, logits=True))
        assert prompt.read == stream + 20 * (128 + 32 + 4)
        assert prompt.write == 4 + 512 + 20 * kv


@pytest.mark.parametrize(
    ("changes", "limits", "place", "message"),
    [
        ({}, {"norm_max": 32}, "auto", r"hidden 64: the norm takes at most 32 channels"),
        ({}, {"sram_bytes": 1024}, "auto", r"a decode step of .* needs \d+ bytes of SRAM, .* 1024"),
        ({}, {"sram_bytes": 5120}, "sram", r"a decode step of .* bytes of SRAM, there are 1024"),
        ({}, {"sram_bytes": 2048}, "sram", r"cache of 24 positions, .* needs 4096 bytes of SRAM"),
        ({"ffn": 61_440}, {}, "auto", r"ffn = 61440: an instruction takes at most 61439"),
        ({"context": 40_000}, {}, "auto", r"context 40000, .*at most 32768 positions"),
        (
            {"hidden": 8192, "layers": 1999},
            {},
            "auto",
            r"memory: .* 1999 layers, .*stream \d[\d,]+, .*; no context is short enough, narrower",
        ),
        ({"ffn": 50_000}, {}, "auto", r"a decode step .* needs \d+ bytes of SRAM, there are 49152"),
        ({"kv_heads": 257, "heads": 257}, {}, "auto", r"kv_heads 257: at most 256 can be named"),
        (
            {"context": 4096, "layers": 30_000},
            {},
            "memory",
            r"K/V cache 7,864,320,000, .*; a context of up to",
        ),
        ({}, {"array_dim": 5}, "auto", r"limits: array_dim: given 5, allowed \(4, 8, 16, 32\)"),
        ({}, {}, "disk", r"cache: given 'disk', allowed 'auto', 'sram', 'memory'"),
    ],
)
def test_refused(changes: Changes, limits: Changes, place: Place, message: str) -> None:
    """What does not fit is named, with what is needed and what there is."""
    shape = replace(_model("llama").shape, **changes)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match=message):
        plan_model(shape, replace(CHIP, **limits), place)  # type: ignore[arg-type]


def test_refused_requests() -> None:
    """Prompts that the context has no room for, and things of another kind."""
    with pytest.raises(CompileError, match=r"model: given str, allowed a QuantizedModel"):
        compile_model("llama")  # type: ignore[arg-type]
    compiled = compile_model(_model("llama"), CHIP)
    for rows, start, message in (
        (25, 0, r"context full: 25 rows from position 0 end at 25, the context has 24 positions"),
        (1, 24, r"context full: 1 rows from position 24 end at 25"),
        (0, 0, r"rows: given 0, allowed whole numbers from 1"),
        (1, -1, r"start: given -1, allowed whole numbers from 0"),
        (2.0, 0, r"rows: given 2.0, allowed whole"),
    ):
        with pytest.raises(CompileError, match=message):
            compiled.prefill(rows, start)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match=r"chunk: given 0, allowed whole numbers from 1"):
        compiled.generate(1, chunk=0)


def test_shares_follow_the_stream() -> None:
    """A share that is not the next one of the stream is refused when it is emitted."""
    compiled = compile_model(_model("llama"), CHIP)
    first, second, *rest = compiled.shares
    moved = replace(compiled, shares=(StreamShare("h.0.norm1", 11, 64, first.bytes), second, *rest))
    with pytest.raises(CompileError, match=r"share h\.0\.norm1 is at 64 of the stream, which"):
        moved.decode()
