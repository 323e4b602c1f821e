# SPDX-License-Identifier: Apache-2.0
"""The bench: the chip in the simulator, its hosts and memories, and the tests on the RTL.

Rooms, each importing only from those before it: `bench` (what a test works with inside the
simulator), `run` (around the simulator), `stimulus` (random programs), `command` (the command
port), `models` (whole models), `benchmarks`, `tests`; `hdl` has the SystemVerilog side.
"""
