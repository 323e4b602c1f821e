# SPDX-License-Identifier: Apache-2.0
"""`npu operator` refuses in one line."""

from __future__ import annotations

import pytest

from npu.cli import command_line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["swiglo"], "npu: operator 'swiglo': there is none, allowed swiglu"),
        (["swiglu", "--set", "row=2"], "npu: operator swiglu, row: there is no such size, allowed"),
        (["swiglu", "--set", "rows"], "npu: --set rows: allowed SIZE=N"),
        (["swiglu", "--set", "rows=0"], "npu: operator swiglu, rows: given 0, allowed 1 to 4096"),
        (["swiglu", "--set", "rows=--5"], "npu: operator swiglu, rows: given '--5', allowed 1"),
        (["swiglu", "--set", "rows=\u00b2"], "npu: operator swiglu, rows: given '\u00b2', allowed"),
        (["attention", "--set", "mask=all"], "npu: operator attention, mask: given 'all', allowed"),
        (["attention", "--set", "heads=3"], "npu: operator attention with heads=3, groups=4, rows"),
        (["rope", "--set", "depth=15"], "npu: operator rope with heads=4, rows=16, depth=15, posi"),
        (["swiglu", "--seed", "-1"], "npu operator: argument --seed: given '-1', allowed whole"),
        (["swiglu", "--json", "none/x.json"], "npu: none/x.json: cannot be written"),
        (["--set", "rows=5"], "npu: --set, --json: given without a name, allowed with one"),
    ],
)
def test_one_line_says_what_is_allowed(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, sizes, files."""
    try:
        status: object = command_line.main(["operator", *arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    (found,) = printed.err.splitlines()
    assert found.startswith(line)
