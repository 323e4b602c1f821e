# SPDX-License-Identifier: Apache-2.0
"""The bench: simulator set-up, runner, drivers, memory, scoreboard and the tests on the RTL."""
