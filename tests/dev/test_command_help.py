# SPDX-License-Identifier: Apache-2.0
"""`npu COMMAND --help` of every command."""

from __future__ import annotations

import pytest

from npu.cli import command_line


@pytest.mark.parametrize("command", command_line.COMMANDS)
def test_every_command_tells_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A text with a stray % would end in argparse's formatting."""
    with pytest.raises(SystemExit) as ended:
        command_line.run([command, "--help"])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    assert f"usage: npu {command}" in printed.out
    assert "options:" in printed.out
