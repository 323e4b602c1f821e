# SPDX-License-Identifier: Apache-2.0
"""A thousand random products and convolutions of given integers against plain integers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spec.paths import REPORTS
from tests.needs import needs

needs("graphs")

from tests.python.importers.given_integers import FORMS, differ
from tests.python.plans.campaign_reports import into_report

EACH, MOST = 100, 0.001
"""Cases of a form, and the share of elements that may be one step off."""
REPORT = REPORTS / "given_integers.json"


@pytest.mark.parametrize("form", FORMS)
def test_given_integers(form: str, tmp_path: Path) -> None:
    """The share of elements that are one step off is written down."""
    share = differ(form, range(EACH), tmp_path)
    into_report(REPORT, {"cases of each form": EACH}, "one step off", {form: round(share, 6)})
    assert json.loads(REPORT.read_text(encoding="utf-8"))["one step off"][form] <= MOST
