# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that nobody here knows, said by a user in operators of the standard.

@tessera.operator("Twice", domain="mine")
def twice(node):
    x = node.input(0)
    node.give("Add", [x, x])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from npu.graph.importers import onnx_dialects, onnx_file

Function = TypeVar("Function", bound=Callable[..., None])


def operator(*names: str, domain: str | Iterable[str]) -> Callable[[Function], Function]:
    """Say what operators of a domain compute.

    The function takes a node, an `npu.graph.importers.onnx_dialects.ForeignNode`: it reads inputs
    and attributes, adds operators of the standard (`node.add`) and gives the results (`node.give`).

    Args:
        names: of operators.
        domain: of theirs, or several; "" for what names none and is not of the standard.

    Raises:
        ValueError: the domain is ours.
    """

    def register(function: Function) -> Function:
        assert onnx_file.LANGUAGES, "what ships comes first, and can be replaced"
        onnx_dialects.operator(*names, domain=domain)(function)
        return function

    return register
