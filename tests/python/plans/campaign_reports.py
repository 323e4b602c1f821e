# SPDX-License-Identifier: Apache-2.0
"""Reports of campaigns whose parts run in several processes."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def into_report(file: Path, head: Mapping[str, Any], key: str, records: Mapping[str, Any]) -> None:
    """Put records into a report, beside those of others that come at once.

    Args:
        file: of JSON.
        head: what stands above the records.
        key: of the records.
        records: by name.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="utf-8") as report:
        fcntl.flock(report, fcntl.LOCK_EX)
        report.seek(0)
        text = report.read()
        known: dict[str, Any] = json.loads(text)[key] if text else {}
        whole = {**head, key: {**known, **records}}
        report.seek(0)
        report.truncate()
        report.write(json.dumps(whole, indent=1) + "\n")
