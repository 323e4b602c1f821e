# SPDX-License-Identifier: Apache-2.0
"""How tests run: NumPy multiplies in one thread, hypothesis draws the same cases in every run.

A failure of hypothesis is shrunk and says its repro. Products as small as those of the tests are
slower when they are spread over threads, and pytest has a process for every processor already; it
counts when NumPy is loaded, which is after this.

What was skipped is told at the end, a line for each reason with the command that changes it. A skip
for any other reason than those of `npu.optional` makes the run a failure.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from npu import optional

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("project", derandomize=True, deadline=None, database=None)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add where `npu pytest` wants to find what was skipped."""
    parser.addoption("--write-skipped", type=Path, metavar="FILE", help="names of what is skipped")


def _skips(config: pytest.Config) -> list[tuple[str, str]]:
    """Return name and reason of all that has been skipped, of files as a whole too."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    found = []
    for report in terminal.stats.get("skipped", []) if terminal else []:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found.append((report.nodeid, text.removeprefix("Skipped: ")))
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down what was skipped; let the run fail if something must not be."""
    if hasattr(session.config, "workerinput"):
        return  # the process above has the reports of all
    skips = _skips(session.config)
    file = session.config.getoption("--write-skipped")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(sorted({name for name, _ in skips}), indent=1) + "\n")
    wrong = any(optional.objection(reason) for _, reason in skips)
    if wrong and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Tell how many were skipped for each reason."""
    skips = _skips(config)
    for reason, count in Counter(reason for _, reason in skips).most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
        objection = optional.objection(reason)
        if objection is not None:
            names = ", ".join(sorted({name for name, why in skips if why == reason}))
            terminalreporter.write_line(f"  not allowed, {objection}: {names}", red=True)
