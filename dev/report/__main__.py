# SPDX-License-Identifier: Apache-2.0
"""Writes the page at the end of a regression, which knows nothing of the page itself."""

from __future__ import annotations

from dev.report import render
from dev.report.collect import Places, collect
from dev.report.source import shown

if __name__ == "__main__":
    print(f"page: {shown(render.write(collect(Places())))}")
