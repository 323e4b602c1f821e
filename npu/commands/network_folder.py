# SPDX-License-Identifier: Apache-2.0
"""Networks on disk: what `npu compile` makes of a file, and the folder that it leaves.

A folder appears as a whole or not at all: it is written beside its place and takes the place of
an older one at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from rich.console import Console
from rich.markup import escape

from npu.commands.arguments import UsageError
from npu.commands.files import FileError
from npu.commands.progress import step
from npu.graph.form import Array
from npu.graph.inputs import Samples
from npu.graph.passes.quantising.calibrate import METHODS
from npu.graph.prepare import Io
from npu.graph.text import type_text
from npu.planner.build_plan import Built, Choose, CompileOptions, build_plan
from npu.planner.decoder_file import is_decoder
from npu.runtime.network_account import report_of
from npu.runtime.plan import Plan
from npu.runtime.plan_files import IMAGE, PLAN, files_of
from npu.runtime.report_table import report_table
from npu.tables import FitTable, pairs
from weights.checkpoint import Checkpoint
from weights.stored.gguf_header import is_gguf

SUFFIXES = (".onnx", ".mlir", ".mlirbc", ".tflite")
PASSES = "passes"
OURS = (PLAN, IMAGE, PASSES, "run")
"""What lies in a folder of ours."""
PLACES = {
    "host": "on the host",
    "npu": "in programs of the chip",
    "port": "on the chip's command port",
}
"""Options that say where an operation is to run."""
RANDOM = "random:"


def is_network(name: str) -> bool:
    """Say whether an argument of `npu compile` is a file of a network, and no decoder."""
    path = Path(name)
    network = path.suffix in SUFFIXES or path.is_file()
    return network and not is_decoder(path) and not is_gguf(path)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `npu compile` that are for networks."""
    group = parser.add_argument_group(
        "networks",
        "Files of ONNX, StableHLO and TFLite. With one of these options a checkpoint is a network "
        "too: of the logits of all positions of a text.",
    )
    group.add_argument(
        "--calibrate",
        metavar="SAMPLES",
        help="an .npz with an array per input whose first axis counts samples (an .npy for one "
        "input), or random:N; for networks in float; a checkpoint has texts",
    )
    group.add_argument(
        "--calibration",
        choices=METHODS,
        default=METHODS[0],
        help="what scales cover: of results of products the 99.99 percentile of what samples show; "
        "of all tensors what lets integers tell most; or the largest (percentile)",
    )
    group.add_argument(
        "--max-error",
        type=_share,
        metavar="SHARE",
        help="refuse to write a network of which an output is off by more of its largest value "
        "than this (1%% or 0.01), and name the operations that lose most; measured on up to 16 of "
        "the samples",
    )
    group.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="of an input with free dimensions (tokens=1,64 of a checkpoint); may be repeated",
    )
    group.add_argument(
        "--state",
        type=_state,
        action="append",
        default=[],
        metavar="INPUT=OUTPUT",
        help="an output that the next run finds as an input: neither is given or shown any more, "
        "and samples are runs one after another; may be repeated",
    )
    for name, where in PLACES.items():
        group.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="NAME",
            help=f"an operation, or kind of operation, that is to run {where}; may be repeated",
        )
    group.add_argument(
        "--wide",
        action="append",
        default=[],
        metavar="NAME",
        help="an input, operation, or kind of operation whose values have 16 bits on the chip, "
        "where it can make them so; may be repeated; or auto: those that lose most, until "
        "--max-error is met",
    )
    group.add_argument(
        "--split",
        action="append",
        default=[],
        metavar="NAME",
        help="an operation of the chip, by its name in the table, behind which a program ends and "
        "another one begins; may be repeated",
    )
    group.add_argument(
        "--io",
        choices=get_args(Io),
        help="what inputs and outputs are: real numbers, or int8, the integers of the chip with "
        "their scales in the plan, int16 where a result has more bits (float)",
    )
    group.add_argument(
        "--keep",
        action="store_true",
        help="write the passes with all constants, so that they parse",
    )


def _share(text: str) -> float:
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed above 0 to 1: 1% or 0.01")
    return share


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    parts = sizes.split(",") if sizes else []
    if not equals or not name or not all(one.isascii() and one.isdecimal() for one in parts):
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed NAME=1,3,224,224")
    return name, tuple(map(int, parts))


def _state(text: str) -> tuple[str, str]:
    name, _, output = text.partition("=")
    if not name or not output:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed INPUT=OUTPUT")
    return name, output


def asked(arguments: argparse.Namespace) -> bool:
    """Say whether an option of networks is given: a checkpoint is one then."""
    options = ("calibrate", "max_error", "shape", "host", "npu", "port", "split", "io", "keep")
    given = any(getattr(arguments, name) for name in (*options, "wide", "state"))
    return given or arguments.calibration != METHODS[0]


def refuse_model_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of generation with a network."""
    for name, default in (
        ("rows", None),
        ("plan", None),
        ("tokens", None),
        ("cache", "auto"),
    ):
        if getattr(arguments, name) != default:
            raise UsageError(f"--{name}: given for a network, allowed for generation")


def read_samples(text: str) -> Samples | str:
    """Return what --calibrate names: samples, or the text "random:N". Raises FileError."""
    return text if text.startswith(RANDOM) else read_arrays(Path(text))


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz by name; that of an .npy under "". Raises FileError."""
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"": found}
        with found:
            return {name: found[name] for name in found.files}
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError):
        raise FileError(
            f"{path}: given a file that is none, allowed .npz or .npy of numbers"
        ) from None


def compile_network(
    arguments: argparse.Namespace,
    console: Console,
    output: Console,
    source: Path | Checkpoint,
    witness: Callable[[Built], Mapping[str, str]],
    choose: Choose | None = None,
) -> int:
    """Compile a network into a folder, and say what is in it.

    Args:
        arguments: of the command line.
        console: for what is being done.
        output: for what was made.
        source: the network.
        witness: checks what was built before anything is written, and returns rows for the table.
        choose: chooses the results of 16 bits; those of --wide without it.
    """
    refuse_model_options(arguments)
    folder: Path = arguments.output
    check_folder(folder)
    state = dict(arguments.state)
    if len(state) < len(arguments.state):
        raise UsageError("--state: given an input twice, allowed each once")
    samples = None if arguments.calibrate is None else read_samples(arguments.calibrate)
    with step(f"compiling {arguments.model}", console=console):
        built = build_plan(
            source,
            CompileOptions(
                calibrate=samples,
                calibration=arguments.calibration,
                shapes=dict(arguments.shape),
                host=arguments.host,
                npu=arguments.npu,
                port=arguments.port,
                wide=choose or arguments.wide,
                split=arguments.split,
                io=arguments.io or "float",
                state=state,
                limits=arguments.chip.limits,
                weights=arguments.weights,
            ),
        )
    with step("comparing it with golden", console=console):
        compared = witness(built)
    write(built, folder, keep=arguments.keep)
    output.print(report_table(report_of(built.plan)))
    output.print(_written(built, folder, compared))
    return 0


def _written(built: Built, folder: Path, compared: Mapping[str, str]) -> FitTable:
    plan = built.plan
    table = pairs()
    table.add_row("calibration", plan.origin.calibration)
    if built.wide:
        table.add_row("16 bits", escape(", ".join(built.wide)))
    for what, names in (("input", plan.graph.arguments), ("output", plan.graph.results)):
        for name in names:
            kind = plan.graph.type(name)
            if kind.quantisation is not None:
                table.add_row(f"{what} {escape(name)}", escape(type_text(kind)))
    for state in plan.graph.states:
        text = f"{type_text(plan.graph.type(state.input))}, next {state.output}"
        table.add_row(f"state {escape(state.input)}", escape(text))
    sizes = f"stream {len(plan.stream):,}, constants {len(plan.constants):,}, arena {plan.arena:,}"
    table.add_row("bytes", sizes)
    for name, text in compared.items():
        table.add_row(name, escape(text))
    table.add_row("written", escape(str(folder)))
    return table


def check_folder(folder: Path) -> None:
    """Raise FileError if a folder can be written in no way, or would take what is not ours."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileError(f"{folder}: cannot be written: there is a file of this name")
    if not folder.parent.is_dir():
        raise FileError(f"{folder}: cannot be written: there is no folder {folder.parent}")
    if not os.access(folder.parent, os.W_OK):
        raise FileError(f"{folder}: cannot be written: no right to, or a read-only file system")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in OURS)
        if others:
            raise FileError(
                f"{folder}: holds {others[0]!r}, which npu compile has not written: name a new "
                "folder, or one of a network"
            )


def write(built: Built, folder: Path, *, keep: bool = False) -> None:
    """Write a folder, in the place of an older one if there is one.

    Whatever happens, the folder is the old one or the new one.

    Raises:
        FileError: it cannot be written; the old one is as it was.
    """
    passes = {f"{PASSES}/{name}": text.encode() for name, text in built.texts(whole=keep)}
    write_plan(built.plan, folder, passes)


def write_plan(plan: Plan, folder: Path, more: Mapping[str, bytes] | None = None) -> None:
    """Write the folder of a plan, with more files in it; as `write`."""
    files: dict[str, bytes] = {**files_of(plan), **(more or {})}
    check_folder(folder)
    try:
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        _fill(new, files)
        _swap(new, folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    (folder / PASSES).mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def _swap(new: Path, folder: Path) -> None:
    """Put a folder in the place of another, which goes where the new one was."""
    if not folder.exists():
        new.rename(folder)
        return
    old = new.with_name(f"{new.name}.old")
    folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
