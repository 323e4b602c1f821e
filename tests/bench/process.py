# SPDX-License-Identifier: Apache-2.0
"""Runs `npu` as a user does: in a process of its own, which has imported nothing before."""

from __future__ import annotations

import os
import subprocess
import sys

from spec.paths import ROOT


def npu(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end, with more environment variables if there are any."""
    return subprocess.run(
        [sys.executable, "-m", "npu.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
