# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that run models on the simulated chip."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from golden.decoder import forward_rows
from npu.commands.arguments import (
    MODEL,
    AddCommand,
    add_accept_loss,
    add_cache,
    add_config,
    add_context,
    add_weights,
    whole_from,
)
from npu.commands.consoles import watched
from npu.commands.files import FileError, as_json, lines_of, read_text
from npu.commands.load_model import BAD_MODEL, Loaded, Texts, load
from npu.commands.progress import step
from npu.commands.text_display import visible
from npu.compiler.model_plan import SEQUENCES
from npu.driver.sampling import SamplingError
from spec.configurations import USUAL, ChipParameters
from spec.isa.operands import Limits
from spec.paths import REPORTS, ROOT
from tb.bench.knobs import LATENCY_MAX
from tb.models import batch_generation, evaluate, generate, profile
from tb.models.simulate_generation import SimulationError
from tb.run import build
from tb.run.verilator import VerilatorError
from weights.chat import Question

BAD_INPUT = (
    *BAD_MODEL,
    FileError,
    SamplingError,
    SimulationError,
    VerilatorError,
    build.BuildError,
    profile.PictureError,
)
"""What a user can cause; each says in one line what was given and what is allowed."""


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    _add_generate(command("generate", _generate))
    _add_chat(command("chat", _chat))
    _add_evaluate(command("evaluate", _evaluate))
    _add_profile(command("profile", _profile))


def _add_latency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latency",
        type=whole_from(1, LATENCY_MAX),
        default=40,
        metavar="N",
        help="of the memory, in cycles (40)",
    )


def _add_writing(parser: argparse.ArgumentParser) -> None:
    """Add what `npu generate` and `npu chat` have in common, but for model and prompt."""
    parser.add_argument(
        "--on",
        choices=("rtl", "golden"),
        default="rtl",
        help="rtl, compared with golden, or golden alone: the same tokens, without cycles (rtl)",
    )
    parser.add_argument(
        "--tokens", type=whole_from(1), default=48, metavar="N", help="tokens at most (48)"
    )
    parser.add_argument(
        "--stop",
        type=_some_text,
        action="append",
        default=[],
        metavar="TEXT",
        help="a text that ends the answer and is no part of it; may be given several times",
    )
    parser.add_argument(
        "--stop-token",
        type=whole_from(0),
        action="append",
        default=[],
        metavar="ID",
        help="a token that ends it, beside those of the model; may be given several times",
    )
    for name, usual, text in (
        ("temperature", 0.0, "of sampling; 0 takes the likeliest token"),
        ("top-p", 1.0, "share of probability that the likeliest tokens are drawn from; 1 is all"),
        ("min-p", 0.0, "least probability, as a share of the likeliest one's; 0 is all"),
        ("repetition-penalty", 1.0, "what lowers tokens that have come already; 1 is none"),
    ):
        parser.add_argument(
            f"--{name}", type=float, default=usual, metavar="X", help=f"{text} ({usual:g})"
        )
    parser.add_argument(
        "--top-k",
        type=whole_from(0),
        default=0,
        metavar="K",
        help="likeliest tokens that are drawn from; 0 is all (0)",
    )
    parser.add_argument(
        "--seed", type=whole_from(0), default=1, metavar="N", help="of sampling (1)"
    )
    add_weights(parser)
    add_context(parser)
    add_accept_loss(parser)
    add_cache(parser)
    _add_latency(parser)
    add_config(parser)


def _some_text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("given '', allowed at least one character")
    return text


def _file_text(name: str) -> str:
    """Return the text of a file, without the newline that ends it."""
    return read_text(Path(name)).removesuffix("\n").removesuffix("\r")


def _add_prompts(parser: argparse.ArgumentParser, name: str, **options: Any) -> None:  # noqa: ANN401
    """Add the ways to give one prompt or several; `name` and `options` are those of a text."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(name, **options)
    group.add_argument("--prompt-file", metavar="FILE", help="a file with it")
    group.add_argument("--prompts", metavar="FILE", help="a file with several, one a line")


def _add_batch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch",
        type=whole_from(1, SEQUENCES),
        metavar="N",
        help="prompts that share each decode step, which reads the weights once; with --prompts",
    )
    parser.add_argument(
        "--speculate",
        type=whole_from(1, SEQUENCES - 1),
        metavar="N",
        help="tokens that are guessed from the text so far and verified in one pass, at most",
    )


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Go on with a text: the model is quantised, compiled and run on the simulated chip, which "
        "picks the tokens itself (greedy) or leaves the choice to the host (sampling). Then every "
        "token, and every logit that was sampled from, is compared with the integer network. Text "
        "goes to standard output, progress and figures to standard error; "
        "build/reports/generate.json has both."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    _add_prompts(parser, "--prompt", metavar="TEXT", help="the text to go on with")
    _add_batch(parser)
    _add_writing(parser)


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Answer a question: the chat template of the model's tokenizer makes a prompt of it, and "
        "the answer is generated as `npu generate` does it. Only the answer goes to standard "
        "output."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    _add_prompts(parser, "prompt", metavar="QUESTION", nargs="?", help="what the user says")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before")
    _add_batch(parser)
    _add_writing(parser)


def _chat(arguments: argparse.Namespace) -> int:
    """Answer questions with the simulated chip and compare the answers with golden."""
    questions = [Question(text, arguments.system) for text in _texts(arguments)]
    return _write(arguments, Texts(questions, arguments.tokens, arguments.prompts))


def _generate(arguments: argparse.Namespace) -> int:
    """Generate text on the simulated chip and compare it with golden."""
    return _write(arguments, Texts(_texts(arguments), arguments.tokens, arguments.prompts))


def _texts(arguments: argparse.Namespace) -> list[str]:
    """Return the prompts that are given: one, or the lines of a file."""
    if arguments.prompts is not None:
        return lines_of(_file_text(arguments.prompts))
    text: str | None = arguments.prompt
    return [_file_text(arguments.prompt_file) if text is None else text]


def _write(arguments: argparse.Namespace, texts: Texts) -> int:
    console = watched()
    _check_batch(arguments)
    request = generate.Request(
        prompt=texts.prompts[0],
        tokens=arguments.tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        seed=arguments.seed,
        top_p=arguments.top_p,
        min_p=arguments.min_p,
        repetition_penalty=arguments.repetition_penalty,
        stops=tuple(arguments.stop),
        latency=arguments.latency,
        cache=arguments.cache,
        on=arguments.on,
    )
    request.settings()  # refuses what makes no sense with any model
    loaded = _loaded(arguments, texts, arguments.chip.limits, console)
    loaded = replace(loaded, ends=tuple(dict.fromkeys((*loaded.ends, *arguments.stop_token))))
    requests = [replace(request, prompt=prompt) for prompt in texts.prompts]
    if arguments.batch is not None or arguments.speculate is not None:
        return _write_batch(arguments, loaded, requests, console)
    for request in requests:
        generate.check_request(loaded, request)
    chip = None if request.on == "golden" else _built(arguments.chip)
    reports = []
    for number, request in enumerate(requests, 1):
        if texts.file is not None:
            console.print(f"prompt {number} of {len(requests)}", highlight=False)
        if chip is None:
            reports.append(generate.run_on_golden(loaded, request, console))
        else:
            reports.append(generate.run(loaded, request, chip, console))
    records = [generate.record(loaded, *done) for done in zip(requests, reports, strict=True)]
    if texts.file is None:
        console.print(generate.table(loaded, reports[0]))
    else:
        for table in generate.tables(loaded, requests, reports):
            console.print(table)
    several = {"prompts": texts.file, "runs": records}
    _save(REPORTS / "generate.json", records[0] if texts.file is None else several, console)
    return 1 if any(report.mismatch for report in reports) else 0


def _check_batch(arguments: argparse.Namespace) -> None:
    """Refuse what does not go with --batch or --speculate, and put a batch's caches into memory."""
    guesses = arguments.speculate
    if guesses is not None:
        for wrong, given, allowed in (
            (arguments.batch is not None, f"--batch {arguments.batch}", "one of the two"),
            (arguments.on == "golden", "--on golden", "--on rtl"),
        ):
            if wrong:
                raise FileError(f"--speculate {guesses}: given {given}, allowed {allowed}")
    if arguments.batch is None:
        return
    for wrong, given, allowed in (
        (arguments.prompts is None, "one prompt", "--prompts FILE"),
        (arguments.on == "golden", "--on golden", "--on rtl"),
        (arguments.cache == "sram", "--cache sram", "a K/V cache of each prompt in memory"),
    ):
        if wrong:
            raise FileError(f"--batch {arguments.batch}: given {given}, allowed {allowed}")
    arguments.cache = "memory"


def _write_batch(
    arguments: argparse.Namespace,
    loaded: Loaded,
    requests: list[generate.Request],
    console: Console,
) -> int:
    rows = arguments.batch or 1, arguments.speculate or 0
    batch_generation.check_requests(loaded, requests, *rows)
    report = batch_generation.run(loaded, requests, *rows, _built(arguments.chip), console)
    for text in report.texts:
        before = "" if isinstance(text.request.prompt, Question) else text.request.prompt
        print(visible(before + text.text))
    for table in batch_generation.table(loaded, report):
        console.print(table)
    _save(REPORTS / "generate.json", batch_generation.record(loaded, report), console)
    return 1 if any(text.mismatch or text.error for text in report.texts) else 0


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say how well a model predicts a text in float32 and as integers, which are those of the "
        "chip bit for bit: bits per byte and perplexities as lm-eval has them, how often both take "
        "the same token, and of each layer the error and the values that are cut off. "
        "build/reports/evaluate.json has all figures."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--text", required=True, metavar="FILE", help="UTF-8 text")
    parser.add_argument(
        "--tokens",
        type=whole_from(2),
        default=2048,
        metavar="N",
        help="about so many, evenly spread over the text (2048)",
    )
    parser.add_argument(
        "--row",
        type=whole_from(2),
        metavar="N",
        help=f"tokens that are predicted by those before them, in a row ({evaluate.ROW}, or the "
        "context)",
    )
    add_weights(parser)


def _evaluate(arguments: argparse.Namespace) -> int:
    """Say how well a model predicts a text as integers, and what each layer loses."""
    console = watched()
    text = read_text(Path(arguments.text)).encode()
    found = evaluate.evaluate(
        arguments.model, arguments.weights, text, arguments.tokens, arguments.row, console
    )
    for table in found.tables():
        console.print(table)
    _save(REPORTS / "evaluate.json", found.record(), console)
    return 0


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a prompt and some tokens on the simulated chip, each step by itself, and say where "
        "the cycles of the last step went: by part of the model, by engine, and what the engines "
        "waited for. build/reports/profile gets timelines for ui.perfetto.dev (prompt.json, "
        "step.json), pictures (step.png, roofline.png) and all figures (profile.json)."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="the text to go on with")
    parser.add_argument(
        "--tokens",
        type=whole_from(2),
        default=4,
        metavar="N",
        help="tokens at most, 2 or more (4)",
    )
    add_weights(parser)
    add_context(parser)
    add_accept_loss(parser)
    add_cache(parser)
    _add_latency(parser)


def _profile(arguments: argparse.Namespace) -> int:
    """Show where the cycles of a decode step go."""
    console = watched()
    loaded = _loaded(arguments, Texts([arguments.prompt], arguments.tokens), Limits(), console)
    profile.check_request(loaded, arguments.prompt, arguments.tokens)
    profile.require_pictures()
    configuration = _built(USUAL)
    latency = arguments.latency
    found = profile.run(loaded, arguments.prompt, arguments.tokens, latency, configuration, console)
    last = found.passes[-1]
    console.print(profile.passes_table(found.passes))
    console.print(profile.parts_table(loaded, last))
    console.print(profile.engines_table(last))
    with step("drawing", console=console):
        written = profile.write(loaded, found, latency)
    console.print(f"integers: {loaded.loss}", highlight=False)
    console.print(f"RTL = golden: {found.mismatch or 'yes, every token'}", highlight=False)
    for path in written:
        console.print(f"written: {path.relative_to(ROOT)}", highlight=False)
    _save(profile.FOLDER / "profile.json", profile.record(loaded, found), console)
    return 1 if found.mismatch else 0


def _loaded(
    arguments: argparse.Namespace, texts: Texts, limits: Limits, console: Console
) -> Loaded:
    return load(
        arguments.model,
        limits,
        arguments.cache,
        console,
        texts,
        arguments.weights,
        integers=forward_rows,
        accept_loss=arguments.accept_loss,
        context=arguments.context,
    )


def _built(chip: ChipParameters) -> build.Configuration:
    configuration = build.Configuration(chip=chip)
    build.generate()
    build.build(configuration)
    return configuration


def _save(path: Path, record: dict[str, Any], console: Console) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(record) + "\n", encoding="utf-8")
    console.print(f"record: {path.relative_to(ROOT)}", highlight=False)
