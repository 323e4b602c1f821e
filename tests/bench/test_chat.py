# SPDX-License-Identifier: Apache-2.0
"""`npu chat` and `npu generate` on golden: prompts, ends of the text, sampling; no simulator."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from golden import session
from golden.decoder import forward_rows
from npu.cli import command_line
from npu.commands.load_model import Loaded, Texts, load
from npu.driver.sampling import Sampler
from spec.isa.operands import Limits
from spec.paths import ROOT
from tb.models import generate, model_commands
from tb.models.simulate_generation import Simulated
from tests.python.weights.chat_folder import START, chat_folder
from weights.chat import Question, prompt_ids

MODEL = ROOT / "weights" / "checkpoints" / "gpt2-tiny"
QUESTION = Question("What is a list?", "Be brief.")
TURNS = b"system: Be brief.\nuser: What is a list?\nassistant: "
QUIET = Console(stderr=True, quiet=True)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Return the model with a chat template, compiled, without an end token."""
    folder = chat_folder(MODEL, tmp_path_factory.mktemp("chat") / "model")
    found = load(str(folder), Limits(), "auto", QUIET, Texts([QUESTION], 30), integers=forward_rows)
    return replace(found, ends=())


def on_golden(loaded: Loaded, **options: Any) -> generate.Report:  # noqa: ANN401
    """Generate 30 tokens."""
    request = generate.Request(QUESTION, 30, on="golden", **options)
    return generate.run_on_golden(loaded, request, QUIET)


def test_prompt_of_a_question(loaded: Loaded) -> None:
    """The template's own special tokens are the only ones."""
    assert prompt_ids(loaded.tokenizer, QUESTION) == [START, *TURNS]
    without = Question(QUESTION.text)
    assert prompt_ids(loaded.tokenizer, without) == [START, *TURNS[TURNS.index(b"user") :]]
    assert prompt_ids(loaded.tokenizer, "user") == [START, *b"user"]


def test_greedy_text(loaded: Loaded, capsys: pytest.CaptureFixture[str]) -> None:
    """The tokens are those of the integer network; the text has no question before it."""
    ids = session.generate(loaded.model, [START, *TURNS], 30)
    report = on_golden(loaded)
    assert report.ids == ids
    assert report.text == loaded.tokenizer.decode(ids)
    assert capsys.readouterr().out == f"{report.text}\n"


def test_ends_of_a_text(loaded: Loaded, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends before any stop string and before any end token, whichever comes first."""
    whole = on_golden(loaded)
    stop = whole.text[12:16]
    at = whole.text.index(stop)
    assert at > 0
    short = on_golden(loaded, stops=("never", stop))
    assert (short.text, short.ids) == (whole.text[:at], whole.ids[: at + 4])
    end = whole.ids[5]
    first = whole.ids.index(end)
    short = on_golden(replace(loaded, ends=(255, end)), stops=(stop,))
    assert (short.text, short.ids) == (whole.text[:first], whole.ids[: first + 1])
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == short.text


def test_chip_knows_one_end(loaded: Loaded) -> None:
    """Where it picks by itself it stops at the first that is named; where the host does, at all."""
    ids = on_golden(loaded).ids
    other = ids[5]
    first = ids.index(other) + 1
    ends = replace(loaded, ends=(255, other))
    prompt = prompt_ids(loaded.tokenizer, QUESTION)
    host = generate.Request(QUESTION, 30, top_k=1, temperature=1.0).settings(1.0, prompt)

    def verdict(done: int, sampling: dict[str, Any] | None) -> str:
        simulated = Simulated(ids[:done], [], [], 1.0, None, Path())
        return generate.check(ends, prompt, simulated, 30, sampling)

    assert (verdict(30, None), verdict(first, host)) == ("", "")
    assert verdict(first, None) == f"the chip stopped after {first} tokens, expected 30"
    assert verdict(30, host) == f"the chip stopped after 30 tokens, expected {first}"


def test_sampled_text(loaded: Loaded) -> None:
    """Every setting reaches the sampler, the tokens of the prompt too; the seed decides."""
    settings: dict[str, Any] = {"temperature": 1.1, "top_k": 50, "top_p": 0.95, "min_p": 0.01}
    settings |= {"repetition_penalty": 1.2, "seed": 8}
    prompt = [START, *TURNS]
    sampler = Sampler(loaded.model.scales["logits"], **settings, seen=prompt)
    golden, ids = session.GoldenSession(loaded.model), list[int]()
    row = golden.prefill(prompt)[-1]
    while len(ids) < 30:
        ids.append(sampler.choose(row))
        if len(ids) < 30:
            row = golden.step(ids[-1])
    assert on_golden(loaded, **settings).ids == ids
    for name, other in (("seed", 9), ("repetition_penalty", 1.0), ("top_k", 2), ("min_p", 0.9)):
        assert on_golden(loaded, **settings | {name: other}).ids != ids, name


def test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question from a file; the answer alone on standard output, all else in the record."""
    monkeypatch.setattr(generate, "run", None)
    saved = dict[str, Any]()
    monkeypatch.setattr(model_commands, "_save", lambda _, found, __: saved.update(found))
    folder = chat_folder(MODEL, tmp_path / "model")
    path = tmp_path / "question.txt"
    path.write_text("What is a\nlist?\n")
    options = ["--on", "golden", "--tokens", "9", "--stop", "zzz", "--stop-token", "7"]
    options += ["--repetition-penalty", "1.3", "--system", "Go."]
    assert command_line.main(["chat", str(folder), "--prompt-file", str(path), *options]) == 0
    printed = capsys.readouterr()
    record = json.loads(json.dumps(saved))
    assert printed.out == f"{record['text']}\n"
    assert "golden, without the chip" in printed.err
    assert record["request"]["prompt"] == {"text": "What is a\nlist?", "system": "Go."}
    assert (record["request"]["repetition_penalty"], record["request"]["stops"]) == (1.3, ["zzz"])
    assert (record["ends"], len(record["ids"])) == ([0, 7], 9)


def test_several_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question a line: each is answered as it is alone; a table has a row for each."""
    saved = dict[str, Any]()
    monkeypatch.setattr(model_commands, "_save", lambda _, found, __: saved.update(found))
    folder = str(chat_folder(MODEL, tmp_path / "model"))
    questions = ["What is a list?", "Who calls [it]?"]
    path = tmp_path / "questions.txt"
    path.write_text("\r\n".join(questions) + "\n", newline="")
    options = ["--on", "golden", "--tokens", "9", "--system", "Go.", "--temperature", "1"]
    assert command_line.main(["chat", folder, "--prompts", str(path), *options]) == 0
    printed = capsys.readouterr()
    runs = saved["runs"]
    assert printed.out == "".join(f"{run['text']}\n" for run in runs)
    assert [run["request"]["prompt"] for run in runs] == [
        {"text": question, "system": "Go."} for question in questions
    ]
    assert "prompt 2 of 2" in printed.err
    assert "Who calls [it]?" in printed.err
    assert runs[0]["ids"] != runs[1]["ids"]
    for run, question in zip(runs, questions, strict=True):
        assert command_line.main(["chat", folder, question, *options]) == 0
        assert saved["ids"] == run["ids"]


def test_table_of_golden(loaded: Loaded) -> None:
    """It fits a terminal and says what ran."""
    console = Console(file=io.StringIO(), width=60)
    console.print(generate.table(replace(loaded, ends=(3, 4)), on_golden(loaded)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "30 generated" in text
    assert "3; for the host alone: 4" in text
