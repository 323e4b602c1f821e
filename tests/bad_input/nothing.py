# SPDX-License-Identifier: Apache-2.0
"""A machine that has nothing: bad input is refused before anybody looks at the machine."""

from __future__ import annotations

import sys

import pytest

from npu import optional
from npu.commands import build_folder, progress
from tb.run import build, verilator

OPTIONAL = ("distributed", "jax", "matplotlib", "playwright", "tflite", "unicorn")
# Not torch: `make test` installs it for nobody, and where it is, transformers wants it.


def nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take tools, packages and room away, and make every attempt to build an error."""

    def fail(*arguments: object, **_: object) -> None:
        raise AssertionError(f"went on with {arguments}")

    for module, name in (
        (build, "build"),
        (build, "generate"),
        (build_folder, "require"),
        (verilator, "find"),
    ):
        monkeypatch.setattr(module, name, fail)
    monkeypatch.setenv(optional.BARE, "1")
    for package in OPTIONAL:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(progress, "PATIENCE_S", 3600.0)  # lines about slow steps are no refusals
