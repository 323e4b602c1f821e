# SPDX-License-Identifier: Apache-2.0
"""The commands for models and programs that need no simulator; refusals: tests/bad_input."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

from golden.decoder import forward_rows
from golden.session import GoldenSession
from npu.asm import assemble
from npu.cli import command_line
from npu.commands import compiled_files, program_files
from npu.commands.load_model import Loaded, load
from npu.commands.text_display import Display, visible
from npu.compiler import CompiledModel, CompiledProgram, compile_model, ideal, pack, pieces
from npu.runtime.plan_files import holds_plan
from spec.isa.operands import Limits
from spec.paths import ROOT
from tb.bench import logs
from tb.models import batch_generation, generate, profile
from tb.models.simulate_generation import Simulated
from tb.run.timeline import ENGINES, EngineWait, Slice, Timeline
from weights.importer import load_checkpoint
from weights.quantize import quantize_checkpoint
from weights.tokenizer import ByteTokenizer, TextStream

CHECKPOINTS = ROOT / "weights" / "checkpoints"
FAMILIES = ("gpt2", "llama", "mistral", "qwen2")
LISTING = ROOT / "tests" / "python" / "listings" / "gpt2_prefill.npu"


def _folder(family: str) -> str:
    return str(CHECKPOINTS / f"{family}-tiny")


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command_line.main(list(arguments)) == 0
    return capsys.readouterr().out


def _row(text: str, name: str) -> str:
    """Return the cells of a table's row, joined by single blanks."""
    (line,) = (line for line in text.splitlines() if re.match(rf"[│ ]*{re.escape(name)} ", line))
    return " ".join(line.replace("│", " ").split())


@pytest.fixture(scope="module")
def gpt2() -> CompiledModel:
    """Return the shipped GPT-2, compiled."""
    return compile_model(quantize_checkpoint(_folder("gpt2")))


# compile


@pytest.mark.parametrize("family", FAMILIES)
def test_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str) -> None:
    """The packed file gives back the model, the texts give back its programs."""
    path = tmp_path / "model.tsr"
    text = _printed(capsys, "compile", _folder(family), "-o", str(path), "--rows", "7")
    model = CompiledModel.load(path.read_bytes())
    for name, program in (("decode", model.decode()), ("generate-7", model.generate(7))):
        source = (tmp_path / f"model.{name}.npu").read_text()
        assert assemble(source).instructions == program.program.instructions
        assert _row(text, name).split()[1] == f"{len(program.program.instructions):,}"
    necessary = sum(piece.necessary for piece in pieces(model.decode()))
    assert f"{len(model.stream):,} bytes" in _row(text, "stream")
    assert f"the {necessary:,} necessary ones" in _row(text, "stream")
    assert _row(text, "table tokens") == "table tokens 32,768 bytes"
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("model.decode.npu", "model.generate-7.npu", "model.plan", "model.tsr")
    ]
    assert holds_plan(tmp_path / "model.plan")


def test_compile_for_another_chip(tmp_path: Path) -> None:
    """Size of the array and place of the cache reach the compiler."""
    path = tmp_path / "model.tsr"
    options = ["--config", "a32", "--cache", "memory"]
    assert command_line.main(["compile", _folder("llama"), "-o", str(path), *options]) == 0
    model = CompiledModel.load(path.read_bytes())
    assert (model.limits.array_dim, model.limits.edge, model.cache.in_memory) == (32, 32, True)


# asm, disasm


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text to words to text to words: the words stay."""
    words, text, again = (tmp_path / name for name in ("a.bin", "a.npu", "b.bin"))
    symbols = ["-D", "S=33", "--define", "L=0x2"]
    assert _printed(capsys, "asm", str(LISTING), "-o", str(words), *symbols).endswith(" words\n")
    expected = assemble(LISTING.read_text(), symbols={"S": 33, "L": 2}).image()
    assert words.read_bytes() == expected
    assert _printed(capsys, "disasm", str(words), "-o", str(text)) == ""
    assert _printed(capsys, "disasm", str(words)) == text.read_text()
    assert command_line.main(["asm", str(text), "-o", str(again)]) == 0
    assert again.read_bytes() == expected


def test_words_beside_the_text(tmp_path: Path) -> None:
    """Without -o the words lie beside the text."""
    (tmp_path / "mine.npu").write_text("NOP\nEND\n")
    assert command_line.main(["asm", str(tmp_path / "mine.npu")]) == 0
    assert (tmp_path / "mine.bin").read_bytes() == assemble("NOP\nEND").image()


# inspect


def test_inspect_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    """Dimensions, tensors, parameters, scales, and that it fits."""
    text = _printed(capsys, "inspect", _folder("llama"))
    checkpoint = load_checkpoint(_folder("llama"))
    total = sum(tensor.size for tensor in checkpoint.tensors.values())
    assert _row(text, "parameters") == f"parameters {total:,}"
    assert _row(text, "heads") == "heads 4 of 16, 2 of K and V"
    down = [checkpoint.tensors[f"h.{layer}.down.weight"] for layer in range(4)]
    largest = max(float(np.abs(tensor).max()) for tensor in down)
    assert _row(text, "h.*.down.weight") == f"h.*.down.weight 4 128 x 64 32,768 {largest:.3g}"
    scales = quantize_checkpoint(_folder("llama")).scales
    values = [scales[f"h.{layer}.act"] for layer in range(4)]
    assert _row(text, "h.*.act") == f"h.*.act {min(values):.3g} {max(values):.3g}"
    assert "fits the chip; K/V cache 32,768 bytes in the SRAM" in text


def test_inspect_checkpoint_without_scales(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured only to look at a checkpoint."""
    folder = tmp_path / "model"
    shutil.copytree(_folder("gpt2"), folder)
    (folder / "activation_scales.json").unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "activation scales: not measured yet" in _printed(capsys, "inspect", str(folder))
    assert not (folder / "activation_scales.json").exists()


def test_inspect_packed_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpt2: CompiledModel
) -> None:
    """The bytes of every layer; the name of the file does not matter."""
    path = tmp_path / "model.npu"
    path.write_bytes(gpt2.packed())
    text, _, weights = _printed(capsys, "inspect", str(path)).partition("Weights")
    parts = compiled_files.by_part(pieces(gpt2.decode()))
    assert list(parts) == [*(f"layer {layer}" for layer in range(4)), "norm", "head"]
    assert sum(size for size, _ in parts.values()) == len(gpt2.stream)
    assert parts["layer 0"] == (54656, 54528)  # as of the block in docs/performance.md
    for name, (size, necessary) in parts.items():
        assert _row(text, name) == f"{name} {size:,} {necessary:,} {size / necessary:.4f}"
    assert _row(text, "K/V cache") == "K/V cache 65,536 bytes in the SRAM"
    assert f"{compiled_files.bus_cycles(gpt2):,} cycles of the bus a token" in weights
    assert _row(weights, "down") == "down int8 65,536 65,536 8.00"


def test_inspect_packed_file_without_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpt2: CompiledModel
) -> None:
    """A packed file may hold just a stream and sections."""
    path = tmp_path / "stream.tsr"
    path.write_bytes(pack(gpt2.stream, gpt2.shares, sections={"mine": b"abc"}))
    text = _printed(capsys, "inspect", str(path))
    assert "a packed file without a model" in text
    assert _row(text, "share h.2.proj") == "share h.2.proj 4,608"
    assert _row(text, "section mine") == "section mine 3"


@pytest.mark.parametrize("kind", ["text", "words"])
def test_inspect_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpt2: CompiledModel, kind: str
) -> None:
    """Text and words of one program say the same, whatever the file is called."""
    program = gpt2.decode()
    path = tmp_path / "program.dat"
    path.write_bytes(program.text.encode() if kind == "text" else program.program.image())
    text = _printed(capsys, "inspect", str(path), "--listing")
    lines = [line.partition(";")[0].strip() for line in program.text.splitlines()]
    barriers = sum(line.startswith("BARRIER") for line in lines)
    assert _row(text, "barriers") == f"barriers {barriers}"
    assert _row(text, "stream") == f"stream {len(gpt2.stream):,} bytes"
    assert _row(text, "SRAM").startswith(f"SRAM {program.sram_bytes:,} bytes")
    assert _row(text, "illegal") == "illegal nothing"
    assert text.count("GEMM dst=") == sum(line.startswith("GEMM") for line in lines)


def test_contents_of_a_bad_program() -> None:
    """What a chip refuses is named with its word."""
    found = program_files.contents(assemble("NOP\n.word 0x01000101\nEND").instructions, Limits())
    assert found.counts == {"NOP": 1, "DMA_LOAD": 1, "END": 1}
    assert found.illegal.startswith("word 1, DMA_LOAD: ILLEGAL_")


# profile


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_a_step(family: str) -> None:
    """Every word belongs to a part, in the order of the model; shares say which."""
    model = compile_model(quantize_checkpoint(_folder(family)))
    for program in (model.decode(), model.prefill(5)):
        names = profile.parts_of(program)
        assert len(names) == len(program.program.instructions)
        layers = [f"layer {layer}" for layer in range(4)]
        assert list(dict.fromkeys(names)) == ["embedding", *layers, "head", "end"]
        for ref in program.tensors:
            assert names[ref.instr] == f"layer {ref.layer}", ref.name


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_works_of_parts_add_up(family: str, in_memory: bool) -> None:
    """The parts of a pass read and multiply what the whole pass does."""
    shape = load_checkpoint(_folder(family)).shape
    for rows, past in ((1, 50), (9, 0)):
        whole = ideal.forward(shape, rows, past, in_memory=in_memory)
        parts = profile.part_works(shape, rows, past, in_memory=in_memory, layouts={})
        assert sum(work.macs for work in parts.values()) == whole.macs
        assert sum(work.read_bytes for work in parts.values()) == whole.read_bytes
        assert all(work.read_bytes > 0 for work in parts.values())


def _line(program: CompiledProgram, cycles: int) -> Timeline:
    """Return a made-up timeline: each word of GEMM takes 10 cycles and waits for 3 of them."""
    slices: dict[str, list[Slice]] = {engine: [] for engine in ENGINES}
    for index in range(len(program.program.instructions)):
        wait = EngineWait(10 * index, 10 * index + 3, "parameter stream")
        piece = Slice(index, "GEMM", "", 10 * index, 10 * index + 10, 0, 0, (wait,))
        slices["gemm"].append(piece)
    held = [(EngineWait(5, 25, "barrier"), ""), (EngineWait(30, 31, "microcode"), "")]
    nothing = np.zeros(0, np.int64)
    samples: logs.Records = np.frombuffer(b"", logs.SAMPLE_WORD)
    return Timeline("x", cycles, slices, held, nothing, samples)


def test_cycles_of_parts_add_up(gpt2: CompiledModel) -> None:
    """Each part ends with its last instruction; all cycles are given to a part."""
    program = gpt2.decode()
    words = len(program.program.instructions)
    line = _line(program, 10 * words + 77)
    cycles = profile.part_cycles(program, line)
    names = profile.parts_of(program)
    assert sum(cycles.values()) == line.cycles
    for name, value in cycles.items():
        assert value == 10 * names.count(name) + (77 if name == "end" else 0)


def test_engines_work_and_wait(gpt2: CompiledModel) -> None:
    """Waiting is part of an instruction's time, work is the rest."""
    program = gpt2.decode()
    words = len(program.program.instructions)
    found = {name: (works, waits) for name, works, waits in profile.engine_rows(_line(program, 9))}
    assert found["gemm"] == (7 * words, {"parameter stream": 3 * words})
    assert found["ld"] == (0, {})
    assert found["sequencer"] == (0, {"barrier": 20, "microcode": 1})


# generate


def _loaded(end: int | None = None) -> Loaded:
    quiet = Console(stderr=True, quiet=True)
    loaded = load(_folder("gpt2"), Limits(), "auto", quiet, integers=forward_rows)
    return replace(loaded, ends=() if end is None else (end,))


def _simulated(ids: list[int]) -> Simulated:
    return Simulated(ids, [len(ids)], [], 1.0, None, Path())


def test_check_notices() -> None:
    """A wrong token, an early stop, and going on behind the end token are told from a good run."""
    loaded = _loaded()
    prompt = loaded.tokenizer.encode("The parser")
    session = GoldenSession(loaded.model)
    ids = [int(session.prefill(prompt)[-1].argmax())]
    while len(ids) < 5:
        ids.append(int(session.step(ids[-1]).argmax()))
    assert generate.check(loaded, prompt, _simulated(ids), 5) == ""
    wrong = [*ids[:3], ids[3] ^ 1, ids[4]]
    verdict = generate.check(loaded, prompt, _simulated(wrong), 5)
    assert verdict == f"token 3 is {ids[3] ^ 1}, expected {ids[3]}"
    verdict = generate.check(loaded, prompt, _simulated(ids[:4]), 5)
    assert verdict == "the chip stopped after 4 tokens, expected 5"
    first = ids.index(ids[4])
    stopped = replace(loaded, ends=(ids[4],))
    assert generate.check(stopped, prompt, _simulated(ids[: first + 1]), 9) == ""
    verdict = generate.check(stopped, prompt, _simulated([*ids[: first + 1], 1]), 9)
    assert verdict == f"the chip stopped after {first + 2} tokens, expected {first + 1}"


def test_a_text_of_a_batch_is_checked_whole() -> None:
    """A wrong logit, token or end is told; where its cache failed, what came before counts."""
    loaded = _loaded()
    prompt = loaded.tokenizer.encode("The parser")
    session, rows = GoldenSession(loaded.model), []
    rows.append(session.prefill(prompt)[-1])
    while len(rows) < 4:
        rows.append(session.step(int(rows[-1].argmax())))
    logits = np.array(rows)
    ids = [int(row.argmax()) for row in rows]
    request = generate.Request("The parser", 4)

    def verdict(ids: list[int], logits: npt.NDArray[np.int16], error: str | None = None) -> str:
        tokens = batch_generation.Tokens(ids, logits)
        greedy = batch_generation.GREEDY
        return batch_generation.text_of(loaded, request, prompt, greedy, tokens, error).mismatch

    assert verdict(ids, logits) == ""
    assert verdict(ids[:3], logits[:3]) == "the chip stopped after 3 tokens, expected 4"
    assert verdict([], logits[:0]) == "the chip stopped after 0 tokens, expected 4"
    assert verdict(ids[:3], logits[:3], "ld: BUS_ERROR") == ""
    wrong = logits.copy()
    wrong[2, 5] += 1
    assert verdict(ids, wrong).startswith("token 2: logit 5 is ")
    assert verdict([*ids[:3], ids[3] ^ 1], logits).startswith("token 3 is ")


def test_limit_knows_the_array() -> None:
    """A prompt takes an array of 4 far longer than one of 32, a lone token hardly."""
    loaded = _loaded()
    cycles = {}
    for dim in (4, 16, 32):
        limits = replace(loaded.compiled.limits, array_dim=dim)
        plan = replace(loaded.compiled.plan, limits=limits)
        other = replace(loaded, compiled=replace(loaded.compiled, plan=plan))
        cycles[dim] = generate.ideal_cycles(other, 100, 1)
    assert cycles[4] > 10 * cycles[16] > 20 * cycles[32]
    shape = loaded.compiled.shape
    passes = [(5, 0), *((1, past) for past in range(5, 14))]
    works = [ideal.forward(shape, rows, past, in_memory=False) for rows, past in passes]
    assert generate.ideal_cycles(loaded, 5, 10) == sum(work.ideal_cycles for work in works)


@pytest.mark.parametrize("family", FAMILIES)
def test_planned_shape(family: str) -> None:
    """What is checked before quantising is what the compiler checks after it."""
    shape = quantize_checkpoint(_folder(family)).shape
    assert load_checkpoint(_folder(family)).shape.plain() == shape


# the display


def _show(console: Console, text: str, prompt: str = "Go: ") -> None:
    tokenizer = ByteTokenizer()
    display = Display(TextStream(tokenizer), prompt, len(text.encode()), console)
    display.start()
    for byte in text.encode("utf-8", "surrogateescape"):
        display.push([byte])
    display.stop()


def test_text_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """The text and nothing else goes to standard output, unchanged."""
    text = "naïve 日本 \x1b[31m\r\n🙂!"
    _show(Console(file=io.StringIO()), text)
    assert capsys.readouterr().out == f"Go: {text}\n"


@pytest.mark.parametrize(("width", "height"), [(20, 5), (8, 3), (200, 50)])
def test_text_on_a_terminal(capsys: pytest.CaptureFixture[str], width: int, height: int) -> None:
    """The live part never exceeds the terminal, and the text is complete in the end."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, height=height)
    text = "".join(f"日本 w{number} " for number in range(100))
    _show(console, text)
    assert capsys.readouterr().out == f"Go: {text}\n"
    frames = file.getvalue().split("\x1b[2K")
    assert max(frame.count("\n") for frame in frames) <= height
    assert "w99" in file.getvalue()


def test_control_characters_do_not_reach_a_terminal() -> None:
    """A model may say anything; the terminal stays as it is."""
    assert visible("a\tb\n\x1b[2Jc\r\nd\x07\x9b") == "a\tb\n\ufffd[2Jc\nd\ufffd\ufffd"


def test_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output that cannot say a character gets a question mark."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    _show(Console(file=io.StringIO()), "ü", prompt="\udcff")
    sys.stdout.flush()
    assert raw.getvalue() == b"??\n"


def test_record_of_a_run() -> None:
    """The record holds text, cycles and the verdict as JSON."""
    loaded = _loaded()
    report = generate.Report(3, [104], "h", _simulated([104, 105]), 100, 50)
    record = generate.record(loaded, generate.Request("abc", 2), report)
    found = json.loads(json.dumps(record))
    assert (found["text"], found["ids"], found["chip_ids"]) == ("h", [104], [104, 105])
    table = generate.table(loaded, report)
    console = Console(file=io.StringIO(), width=60)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 60
    assert "50.0% of it reached" in " ".join(text.split())
    assert "tokens behind the end of the text: 1" in " ".join(text.split())
