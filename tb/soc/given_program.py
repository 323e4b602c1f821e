# SPDX-License-Identifier: Apache-2.0
"""What `npu soc` and `npu firmware` are given to run: a name, C sources or an ELF file."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from golden.decoder import forward_rows
from npu.commands import build_folder, files
from npu.commands.arguments import MODEL, UsageError
from npu.commands.consoles import watched
from npu.commands.load_model import Texts, load
from npu.commands.network_folder import SUFFIXES
from npu.commands.progress import step
from npu.firmware import compile as firmware
from npu.firmware.plan import IMAGE, FirmwarePlan, PlanError, firmware_network, firmware_plan
from npu.graph.form import Array
from npu.graph.passes.quantising.samples import random_samples
from npu.runtime.plan import Plan
from npu.runtime.plan_files import holds_plan, read_plan
from spec.isa.operands import Limits
from spec.paths import BUILD
from tb.soc import program_run

DEFAULTS: dict[str, object] = {
    "image": None,
    "model": "weights/checkpoints/gpt2-tiny",
    "prompt": "The parser accepts",
    "tokens": 48,
    "accept_loss": False,
    "compiler": None,
    "include": [],
    "flag": [],
}
"""What options say unless the command line does."""
NETWORK, DECODER = "a program with a network", "a program with a decoder"
PLAIN = "a program by name"
SOURCES, FILE = "C sources", "an ELF file"
TAKES: dict[str, tuple[str, ...]] = {
    NETWORK: ("model", "compiler"),
    DECODER: ("model", "prompt", "tokens", "accept_loss", "compiler"),
    PLAIN: ("compiler",),
    SOURCES: ("image", "model", "compiler", "include", "flag"),
    FILE: ("image",),
}
"""The options that each kind of program can take."""


@dataclass(frozen=True)
class GivenProgram:
    """What is to run.

    Attributes:
        path: the ELF file.
        image: bytes of memory from IMAGE on; none if empty.
        end: first address that nobody uses.
    """

    path: Path
    image: bytes = b""
    end: int = 0


def plan_of(model: str, prompt: str, tokens: int, *, accept_loss: bool = False) -> FirmwarePlan:
    """Compile a model and a prompt for a program. Raises what the parts raise.

    A folder that `npu compile` has made of a network is taken as it is, with random inputs.
    """
    console = watched()
    if holds_plan(Path(model)):
        plan = read_plan(Path(model))
        return network_of(plan, {name: x[0] for name, x in random_samples(plan.graph, 1).items()})
    loaded = load(
        model,
        Limits(),
        "auto",
        console,
        Texts([prompt], tokens),
        integers=forward_rows,
        accept_loss=accept_loss,
    )
    console.print(f"integers: {loaded.loss}", highlight=False)
    return firmware_plan(loaded.compiled, loaded.tokenizer, prompt, tokens, loaded.end)


def network_of(plan: Plan, inputs: Mapping[str, Array]) -> FirmwarePlan:
    """Lay out a network with inputs. Raises PlanError for a decoder, GraphError for inputs."""
    if plan.decoder is not None:
        raise PlanError("plan: given that of a decoder, allowed that of a network")
    return firmware_network(plan, inputs)


def compiled(
    name: str,
    plan: FirmwarePlan | None,
    target: firmware.FirmwareTarget | None = None,
    place: str = "",
) -> GivenProgram:
    """Compile a program by name, with a plan if it needs one.

    Args:
        name: of the program.
        plan: of the model that it runs.
        target: how to compile.
        place: folder in build/firmware for what belongs to this plan, by default the name.
    """
    build_folder.require()
    if plan is None:
        return GivenProgram(firmware.compile_program(name, target))
    folder = BUILD / "firmware" / (place or name)
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / firmware.PLAN, plan.header)
    output = folder / f"{name}.elf"
    path = firmware.compile_program(name, target, include=[folder], output=output)
    return GivenProgram(path, plan.image, plan.end)


def kind_of(names: Sequence[str], *, elf: bool = True) -> str:
    """Return what a command line names: a key of TAKES.

    Args:
        names: that are given.
        elf: whether an ELF file is allowed.

    Raises:
        UsageError: there is none of this name, or several of what is run alone.
        FileError: a source cannot be read.
    """
    if all(name.endswith(firmware.SOURCE) for name in names):
        for name in names:
            files.read_bytes(Path(name))
        return SOURCES
    for name in names:
        if Path(name).suffix in SUFFIXES:
            raise UsageError(f"program: given a network; {_compile_first(name)}")
        if holds_plan(Path(name)):
            raise UsageError(
                f"program: given the folder of a plan; allowed is npu soc network --model {name}"
            )
    if len(names) > 1:
        raise UsageError(f"program: given {len(names)} names, allowed several of C sources only")
    (name,) = names
    if name in firmware.examples():
        if not firmware.needs_plan(name):
            return PLAIN
        return DECODER if firmware.needs_prompt(name) else NETWORK
    if not elf or ("/" not in name and "." not in name and not Path(name).exists()):
        raise UsageError(
            f"program: given {name!r}, allowed {'an ELF file or ' if elf else ''}C sources, or "
            f"{', '.join(firmware.examples())}"
        )
    return FILE


def check_options(given: Mapping[str, object], kind: str) -> None:
    """Raise UsageError for an option that a kind of program cannot take."""
    for option, default in DEFAULTS.items():
        if given.get(option, default) != default and option not in TAKES[kind]:
            allowed = ", ".join(one for one, options in TAKES.items() if option in options)
            words = option.replace("_", "-")
            raise UsageError(f"--{words}: given for {kind}, allowed for {allowed}")


def program_of(arguments: argparse.Namespace) -> GivenProgram:
    """Return what `npu soc` is to run, compiled unless it is an ELF file."""
    kind = kind_of(arguments.program)
    check_options(vars(arguments), kind)
    name = arguments.program[0]
    image = b"" if arguments.image is None else program_run.image_of(arguments.image)
    if kind == FILE:
        return GivenProgram(Path(name), image, IMAGE + len(image))
    plan = None
    own_network = kind == SOURCES and arguments.model != DEFAULTS["model"]
    if own_network and image:
        raise UsageError(
            "--image: given with --model, allowed one of them: the image is its plan's"
        )
    if own_network or kind in (NETWORK, DECODER):
        _check_model(name, arguments.model, prompted=kind == DECODER)
        plan = plan_of(
            arguments.model,
            arguments.prompt,
            arguments.tokens,
            accept_loss=arguments.accept_loss,
        )
    target = firmware.FirmwareTarget(arguments.compiler)
    with step("compiling the program", console=watched()):
        if kind == SOURCES and plan is not None:
            return _own_network(arguments, target, plan)
        if kind == SOURCES:
            return GivenProgram(own(arguments, target), image, IMAGE + len(image))
        return compiled(name, plan, target)


def _own_network(
    arguments: argparse.Namespace, target: firmware.FirmwareTarget, plan: FirmwarePlan
) -> GivenProgram:
    """Compile sources of the user's with the plan of a network, which they include."""
    build_folder.require()
    with tempfile.TemporaryDirectory() as folder:
        files.write(Path(folder, firmware.PLAN), plan.header)
        return GivenProgram(own(arguments, target, headers=Path(folder)), plan.image, plan.end)


def own(
    arguments: argparse.Namespace,
    target: firmware.FirmwareTarget,
    output: Path | None = None,
    headers: Path | None = None,
) -> Path:
    """Compile sources of the user's; return the ELF file. Raises FirmwareError.

    `headers` is a folder of those that are made for them.
    """
    for folder in arguments.include:
        if not folder.is_dir():
            raise UsageError(f"--include {folder}: given no folder, allowed one of headers")
    build_folder.require()
    sources = [Path(name).resolve() for name in arguments.program]
    name = sources[0].stem
    return firmware.compile_sources(
        sources,
        name,
        target,
        include=[*([headers] if headers else []), *(one.resolve() for one in arguments.include)],
        flags=arguments.flag,
        output=output or BUILD / "firmware" / "own" / f"{name}-{target.kind()}.elf",
    )


def _check_model(name: str, model: str, *, prompted: bool) -> None:
    """Raise UsageError for a checkpoint where a network is needed, or the other way round."""
    planned = holds_plan(Path(model))
    if prompted and planned:
        raise UsageError(f"--model {model}: given the folder of a plan, allowed is {MODEL}")
    if not prompted and Path(model).suffix in SUFFIXES:
        raise UsageError(f"--model {model}: given a file; {_compile_first(model)}")
    if not prompted and not planned:
        what = "" if model == DEFAULTS["model"] else f" {model}"
        raise UsageError(
            f"--model{what}: given no folder of a plan, allowed is one that npu compile has made "
            f"of a network, for {name}"
        )


def _compile_first(file: str) -> str:
    """Return what an error about a network's file tells to do: two commands."""
    folder = Path(file).with_suffix("")
    return (
        f"allowed is its plan: npu compile {file} --calibrate random:8 --io int8 -o {folder}, then "
        f"npu soc network --model {folder}"
    )
