# SPDX-License-Identifier: Apache-2.0
"""Moments that a test has changed, as a file."""

from __future__ import annotations

from pathlib import Path

from weights.covariance import InputMoments, write_moments


def save_moments(found: InputMoments, path: Path) -> None:
    """Write moments that are held."""
    widths = {name: len(moments) for name, moments in found.moments.items()}
    most = max(int(moments.diagonal().max()) for moments in found.moments.values())
    metadata = {"owner": found.owner, **found.provenance}
    write_moments(path, widths, most, metadata, found.moments.items())
