# SPDX-License-Identifier: Apache-2.0
"""Tests that run on the RTL: every `test_*.py` holds cocotb tests that the runner finds."""
