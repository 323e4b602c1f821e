# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C as an event: it is acted on where nothing is half done.

Raised wherever the main thread happens to be, it can leave a lock of `threading` taken for good:
its condition variables are Python code. Threads that need that lock then never end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heard(note: Callable[[], None]) -> Iterator[None]:
    """While the body runs, call `note` for the first Ctrl-C; another one raises as usual.

    Args:
        note: takes no lock, for it may run between any two instructions of the main thread.

    A process that ignores Ctrl-C goes on ignoring it, and only the main thread hears it.

    Raises:
        KeyboardInterrupt: it came too late for the body to act on it.
    """
    before = signal.getsignal(signal.SIGINT)
    elsewhere = threading.current_thread() is not threading.main_thread()
    if elsewhere or before in (signal.SIG_IGN, None):
        yield
        return

    asked = False

    def first(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)
        note()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
