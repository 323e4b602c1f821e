# SPDX-License-Identifier: Apache-2.0
"""The types of arguments that several commands take, and what their functions share."""

from __future__ import annotations

import argparse

from npu.isa.operands import ARRAY_DIMS
from tb import build


class UsageError(ValueError):
    """A command line that asks for something that there is not."""


def names_in(text: str) -> list[str]:
    """Return the names of a comma list. Raises UsageError if there are only commas."""
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if text and not names:
        raise UsageError(f"given {text!r}, allowed names separated by commas")
    return names


def positive(text: str) -> int:
    """Return a whole number above 0."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed 1 and above")
    return int(text)


def array_dim(text: str) -> int:
    """Return an edge that the array can have."""
    allowed = [str(dim) for dim in ARRAY_DIMS]
    if text not in allowed:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed {', '.join(allowed)}")
    return int(text)


def check_simulator(name: str) -> None:
    """Raise UsageError unless the simulator is the one that there is."""
    if name != "verilator":
        raise UsageError(f"SIM={name}: only SIM=verilator is supported")


def built(arguments: argparse.Namespace, kind: build.Kind) -> build.Configuration:
    """Build a model for the array that is asked for."""
    configuration = build.Configuration(kind=kind, array_dim=arguments.array_dim)
    build.generate()
    build.build(configuration)
    return configuration
