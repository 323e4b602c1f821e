# SPDX-License-Identifier: Apache-2.0
"""The folder build/: whether it can be made and written, and whether there is room in it."""

from __future__ import annotations

import os
import shutil

from npu.commands.hard_path import hard_name
from spec.paths import BUILD

MIB = 1 << 20
LEAST = 64 * MIB
"""Free bytes without which no command that builds or simulates begins."""


class RoomError(RuntimeError):
    """There is no folder to build in."""


def require() -> None:
    """Make the folder build/, unless it is there.

    Raises:
        RoomError: nothing can be built in a folder of its name; it is no folder, cannot be written,
            or its file system is full.
    """
    hard = hard_name(str(BUILD))
    if hard is not None:
        raise RoomError(hard)
    try:
        BUILD.mkdir(exist_ok=True)
    except FileExistsError:
        raise RoomError(f"{BUILD}: given something else, allowed a folder, or nothing") from None
    except OSError as error:
        raise RoomError(f"{BUILD}: cannot be made: {error.strerror}") from None
    if not os.access(BUILD, os.W_OK | os.X_OK):
        raise RoomError(f"{BUILD}: given a folder that is read-only, allowed one to write in")
    free = shutil.disk_usage(BUILD).free
    if free < LEAST:
        raise RoomError(
            f"{BUILD}: given {free // MIB} MiB of free space, allowed {LEAST // MIB} and more"
        )


def is_full() -> bool:
    """Whether the file system of build/ is full, the likely reason of any failure there."""
    return BUILD.is_dir() and shutil.disk_usage(BUILD).free < MIB
