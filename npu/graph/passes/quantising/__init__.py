# SPDX-License-Identifier: Apache-2.0
"""Integers for what the chip touches: the third pass."""
