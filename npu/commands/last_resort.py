# SPDX-License-Identifier: Apache-2.0
"""Ends a command in one line, whatever went wrong, with the status that shells expect.

No traceback is shown unless `--debug` asks for it. An error that nobody has foreseen is a fault of
ours: its traceback goes to a file, and the line says what to report. Standard library only, so that
it also covers the imports of a command.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import traceback
import unicodedata
from collections.abc import Callable
from pathlib import Path

from spec.paths import REPORTS

REFUSED, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
"""Exit status: something that the user can mend; Ctrl-C; nobody reads the output any more."""
REPORT = "traceback.txt"


class Refusal(Exception):  # noqa: N818 (not an error of the program)
    """What a user can cause; the text says in one line what was given and what is allowed."""


def harmless(text: str) -> str:
    """Return a text in which nothing moves a cursor, turns or ends a line, or is half a letter."""
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _harms(one) else one for one in text)


def _harms(one: str) -> bool:
    # Zl and Zp end a line as well.
    kind = unicodedata.category(one)
    return one != "\n" and (kind[0] == "C" or kind in ("Zl", "Zp"))


def guarded(program: str, command: Callable[[], int], *, debug: bool) -> int:
    """Run a command and return its exit status; print one line about whatever it raises.

    Args:
        program: its name, in front of the line.
        command: returns an exit status.
        debug: print tracebacks.
    """
    _complete_streams()
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _close_output()
        return PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:
        line, status = _verdict(error)
        with contextlib.suppress(OSError):  # the reader of the errors may be gone as well
            if debug:
                traceback.print_exception(error)
            print(f"{program}: {harmless(line)}", file=sys.stderr, flush=True)
        _settle_output()
        return status


def _verdict(error: BaseException) -> tuple[str, int]:
    """Return the line and the exit status for an error."""
    match error:
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case Refusal():
            return str(error), REFUSED
        case OSError():
            return _text_of(error), REFUSED
        case ModuleNotFoundError():
            return f"the Python package {error.name} is missing: run make setup", REFUSED
        case MemoryError():
            return "the memory of this machine does not suffice", REFUSED
        case _:
            return _unforeseen(error), REFUSED


def one_line(error: BaseException) -> str:
    """Return the text of an error of somebody else's, who may have used several lines."""
    return " ".join(str(error).split()) or type(error).__name__


def _text_of(error: OSError) -> str:
    parts = [str(part) for part in (error.filename, error.strerror) if part]
    return ": ".join(parts) if error.strerror else one_line(error)


def _unforeseen(error: BaseException) -> str:
    """Save the traceback and return what is to be reported."""
    trace = "".join(traceback.format_exception(error))
    text = f"command: {' '.join(sys.argv)}\nPython {sys.version}\n\n{trace}"
    what = f"{type(error).__name__}: {one_line(error)}"
    for folder in (REPORTS, Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / REPORT
            path.write_text(text, encoding="utf-8", errors="replace")
            return f"this must not happen ({what}): please report it together with {path}"
    return f"this must not happen ({what}): please report it with what --debug shows"


def _complete_streams() -> None:
    """Replace closed streams, and let the output stream write what its encoding cannot say."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _close_output() -> None:
    """Send what is still to be written nowhere, or Python would complain once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _settle_output() -> None:
    """Write what is still to be written, if that is possible."""
    try:
        sys.stdout.flush()
    except OSError:
        _close_output()
