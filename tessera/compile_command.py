# SPDX-License-Identifier: Apache-2.0
"""`npu compile`: a decoder becomes a packed file, a network of a file the folder of a plan."""

from __future__ import annotations

import argparse
from pathlib import Path

from golden.decoder import forward_rows
from npu.commands import compiled_files, files, network_folder
from npu.commands.arguments import (
    MODEL,
    AddCommand,
    UsageError,
    add_accept_loss,
    add_cache,
    add_config,
    add_context,
    add_weights,
    model_recipe,
    whole_from,
)
from npu.commands.consoles import printed, watched
from npu.commands.load_model import BAD_MODEL, Texts, is_encoder_model, load, network_of
from npu.firmware.compile import PLAN
from npu.firmware.plan import PlanError, firmware_plan
from npu.graph.form import GraphError
from npu.planner.build_plan import Built
from npu.runtime.report_table import WIDTH
from tessera.accuracy import AccuracyError, held
from tessera.wide_search import AUTO, wide_until
from tessera.witness import WitnessError, checked

TOKENS = 48
"""Of a plan unless the command line says otherwise."""
IMAGE_SUFFIX = ".img"
BAD_INPUT = (
    *BAD_MODEL,
    AccuracyError,
    files.FileError,
    GraphError,
    PlanError,
    UsageError,
    WitnessError,
)
"""What a user can cause; each says in one line what was given and what is allowed."""


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    _add_compile(command("compile", _compile))


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Quantise and compile a model into one packed file: parameter stream, tables, and all that "
        "a host needs to make programs from it. The texts of its programs are written beside it. "
        "With --rows also a plan, which npu run runs and npu explain shows. A network from a file "
        "of ONNX, StableHLO or TFLite becomes the folder of a plan, for npu run, npu explain and "
        "npu soc network; so does an encoder, and a decoder with an option of networks."
    )
    parser.add_argument("model", metavar="MODEL", help=f"{MODEL}; or a file of a network")
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        required=True,
        metavar="FILE",
        help="file or folder to write",
    )
    parser.add_argument(
        "--rows",
        type=whole_from(1),
        metavar="N",
        help="also the program for a prompt of N tokens, and the plan for it, with programs that "
        "generate, prefill and step (a folder: FILE with the suffix .plan)",
    )
    parser.add_argument(
        "--plan",
        metavar="PROMPT",
        help="also the image (FILE with the suffix .img) and the C header (npu_plan.h beside it) "
        "with which a program for a RISC-V core goes on with PROMPT",
    )
    parser.add_argument(
        "--tokens",
        type=whole_from(1),
        metavar="N",
        help=f"of --plan, at most ({TOKENS})",
    )
    add_weights(parser, networks=True)
    add_context(parser)
    add_accept_loss(parser)
    add_cache(parser)
    add_config(parser)
    network_folder.add_options(parser)


def _compile(arguments: argparse.Namespace) -> int:
    """Compile a model into a packed file and program texts, or a network into a folder."""
    file = network_folder.is_network(arguments.model)
    if file and arguments.context is not None:
        raise UsageError("--context: given with the file of a network, allowed with a checkpoint")
    if file or network_folder.asked(arguments) or is_encoder_model(arguments.model):
        most: float | None = arguments.max_error
        choose = None
        if AUTO in arguments.wide:
            if most is None or len(arguments.wide) > 1:
                raise UsageError(f"--wide {AUTO}: allowed with --max-error and without other names")
            choose = wide_until(most)

        def witness(built: Built) -> dict[str, str]:
            error = {} if most is None else {"error": held(built, most)}
            return {"compared": checked(built), **error}

        model, context = arguments.model, arguments.context
        source = Path(model) if file else network_of(model, context)
        return network_folder.compile_network(
            arguments, watched(), printed(WIDTH), source, witness, choose
        )
    files.check_output(arguments.output)
    limits = arguments.chip.limits
    prompt, count = arguments.plan, arguments.tokens
    if prompt is None and count is not None:
        raise UsageError("--tokens: given without --plan, allowed with it")
    count = count or TOKENS
    texts = None if prompt is None else Texts([prompt], count)
    loaded = load(
        arguments.model,
        limits,
        arguments.cache,
        watched(),
        texts,
        model_recipe(arguments.weights),
        integers=forward_rows,
        accept_loss=arguments.accept_loss,
        context=arguments.context,
    )
    if prompt is not None:
        plan = firmware_plan(loaded.compiled, loaded.tokenizer, prompt, count, loaded.end)
        files.write(arguments.output.with_suffix(IMAGE_SUFFIX), plan.image)
        files.write(arguments.output.with_name(PLAN), plan.header)
    written = compiled_files.write(loaded.compiled, arguments.output, arguments.rows)
    printed().print(compiled_files.written_table(written, loaded.loss))
    printed().print(compiled_files.weights_table(written.model))
    return 0
