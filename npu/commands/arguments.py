# SPDX-License-Identifier: Apache-2.0
"""The types of arguments that several commands take, and how a command is added."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Protocol

from npu.compiler.model import Place
from spec import configurations
from spec.configurations import CHIPS, USUAL, ChipParameters
from weights.formats.recipe import (
    INT8_NETWORK,
    INT8_WEIGHTS,
    RecipeError,
    WeightRecipe,
    parse_recipe,
)
from weights.loss import REFUSED

PLACES: tuple[Place, ...] = ("auto", "sram", "memory")
TIERS = ("smoke", "full", "nightly")
"""How much of tests, benchmarks and measurements runs."""
MODEL = (
    "a Hugging Face folder, a GGUF file, the name of a shipped model such as gpt2-tiny, or a hub id"
)


class UsageError(ValueError):
    """A command line that asks for something that there is not."""


class AddCommand(Protocol):
    """Adds a command to the parser of `npu`."""

    def __call__(
        self, name: str, function: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        """Return the new command's parser.

        The function looks at all that it is given before it looks for what the machine may lack.
        """


def check_tier(tier: str, allowed: Sequence[str] = TIERS) -> str:
    """Return a tier. Raises UsageError if there is no such one."""
    if tier not in allowed:
        raise UsageError(f"TIER={tier}: given {tier!r}, allowed {', '.join(allowed)}")
    return tier


def names_in(text: str) -> list[str]:
    """Return the names between commas or blanks. Raises UsageError if there is only these."""
    names = text.replace(",", " ").split()
    if text and not names:
        raise UsageError(f"given {text!r}, allowed names separated by commas or blanks")
    return names


def whole_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of whole numbers from `least` on, up to `most` if that is given."""

    def whole(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() else -1
        if number < least or (most is not None and number > most):
            allowed = f"from {least}" if most is None else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"given {text!r}, allowed whole numbers {allowed}")
        return number

    return whole


positive = whole_from(1)


def _chip(text: str) -> ChipParameters:
    """Return the configuration of a name."""
    try:
        return configurations.named(text)
    except configurations.ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_config(parser: argparse.ArgumentParser, default: ChipParameters | None = USUAL) -> None:
    """Add --config, as `chip`."""
    text = f"the chip: {', '.join(CHIPS)} ({USUAL.name}); spec/configurations.toml describes them"
    parser.add_argument(
        "--config", type=_chip, default=default, metavar="NAME", dest="chip", help=text
    )


def _recipe(text: str) -> WeightRecipe:
    """Return the weight formats that a text asks for."""
    try:
        return parse_recipe(text)
    except RecipeError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("weights: ")) from None


def add_weights(parser: argparse.ArgumentParser, *, networks: bool = False) -> None:
    """Add --weights; with networks as text, because what it names depends on the model."""
    text = (
        "formats of the weights: a word for the blocks (int4g32), or one for each kind "
        "(qkv=mxfp6e2,o=int4g32,...,head=int4)"
    )
    if networks:
        text += "; of a network a word for all products, then NAME=word for single operations"
    parser.add_argument(
        "--weights",
        type=str if networks else _recipe,
        default=str(INT8_NETWORK) if networks else INT8_WEIGHTS,
        metavar="FORMATS",
        help=f"{text}; docs/formats.md has them all (int8)",
    )


def model_recipe(text: str) -> WeightRecipe:
    """Return the weight formats that a text asks for in a decoder. Raises UsageError."""
    try:
        return parse_recipe(text)
    except RecipeError as error:
        raise UsageError(f"--{error}") from None


def add_context(parser: argparse.ArgumentParser) -> None:
    """Add --context."""
    parser.add_argument(
        "--context",
        type=positive,
        metavar="N",
        help="positions: a smaller cache and smaller tables (those of the model)",
    )


def add_accept_loss(parser: argparse.ArgumentParser) -> None:
    """Add --accept-loss."""
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help=f"go on with a model whose integers lose more than {REFUSED:.0%}% of bits per byte",
    )


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add --cache."""
    parser.add_argument(
        "--cache",
        choices=PLACES,
        default="auto",
        help="place of the K/V cache: sram, memory, or auto, the SRAM if that costs nothing (auto)",
    )
