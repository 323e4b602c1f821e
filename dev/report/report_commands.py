# SPDX-License-Identifier: Apache-2.0
"""The command of `npu` that writes the page of all reports: report."""

from __future__ import annotations

import argparse

from dev.report import render
from dev.report.collect import Places, collect
from dev.report.source import shown
from npu.commands import build_folder
from npu.commands.arguments import AddCommand, UsageError, positive

BAD_INPUT = (UsageError,)
"""What a user can cause; the text is what to print."""


def _report(arguments: argparse.Namespace) -> int:
    """Write build/reports/index.html from the results and reports that there are."""
    page = collect(Places(), arguments.run)
    if arguments.run is not None and page.store.value is None:
        raise UsageError(f"--run {arguments.run}: {page.store.says}")
    build_folder.require()
    path = render.write(page)
    for complaint in page.complaints:
        print(f"missing: {complaint}" if complaint.startswith("There is no ") else complaint)
    print(f"written: {shown(path)}, {path.stat().st_size / 1e6:.1f} MB")
    return 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    report = command("report", _report)
    report.add_argument(
        "--run", type=positive, metavar="N", help="number of the run; default the latest"
    )
