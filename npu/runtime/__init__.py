# SPDX-License-Identifier: Apache-2.0
"""Runs compiled networks: segments on a chip behind a bus, all else on the host."""
