# SPDX-License-Identifier: Apache-2.0
"""The type of the handle that cocotb gives to a test."""

from __future__ import annotations

from typing import Any, TypeAlias

Dut: TypeAlias = Any
"""The bench top `tb_top`; cocotb finds its signals, by name, when the simulator runs."""
