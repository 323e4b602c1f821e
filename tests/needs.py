# SPDX-License-Identifier: Apache-2.0
"""Skips what cannot run here: the only way to do so."""

from __future__ import annotations

import pytest

from npu import optional


def needs(*names: str) -> None:
    """Skip the test, or the module, unless packages of Debian or groups of pip are there."""
    __tracebackhide__ = True
    reason = optional.missing(*names)
    if reason is not None:
        pytest.skip(reason, allow_module_level=True)
