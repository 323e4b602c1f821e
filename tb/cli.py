# SPDX-License-Identifier: Apache-2.0
"""The command line: `npu <command>` or `python -m tb.cli <command>`; the Makefile calls it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tb import last_resort

DEBUG = "--debug"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = DEBUG in arguments
    others = [word for word in arguments if word != DEBUG]
    first = [DEBUG] if debug else []
    return last_resort.guarded("npu", lambda: _run([*first, *others]), debug=debug)


def _run(arguments: list[str]) -> int:
    """Parse and run; the imports take long enough to be interrupted, so they belong in here."""
    from tb import commands

    return commands.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
