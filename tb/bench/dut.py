# SPDX-License-Identifier: Apache-2.0
"""The handle that cocotb gives to a test, and its clock."""

from __future__ import annotations

from typing import Any, TypeAlias

Dut: TypeAlias = Any
"""The bench top `tb_top`; cocotb finds its signals, by name, when the simulator runs."""
CLOCK_NS = 10
"""Period of the clock of `tb_top`."""
