# SPDX-License-Identifier: Apache-2.0
"""The named configurations: what their source may say, and that the chip has their parameters."""

from __future__ import annotations

import re

import pytest

from spec.configurations import CHIPS, SOURCE, USUAL, ConfigurationError, for_limits, named, read
from spec.isa.operands import Limits
from spec.paths import ROOT, RTL

TEXT = SOURCE.read_text(encoding="utf-8")


def test_every_parameter_is_one_of_the_chip() -> None:
    """A name that the RTL does not have would be built without a word."""
    top = (RTL / "npu_top.sv").read_text(encoding="utf-8")
    declared = set(re.findall(r"^  parameter .*?(\w+)\s+=", top, re.M))
    assert USUAL.parameters.keys() <= declared
    defaults = dict(re.findall(r"^  parameter .*?(\w+)\s+= (?:\d+'[bd])?(\d+)", top, re.M))
    assert {name: str(value) for name, value in USUAL.parameters.items()} == {
        name: defaults[name] for name in USUAL.parameters
    }, "the usual chip is npu_top as it is by default"


def test_a_configuration_has_the_usual_values_that_it_does_not_name() -> None:
    """And its own where it does."""
    found = read(f'{TEXT}\n[mine]\ntext = "mine"\narray_dim = 8\ncop_sources = 3\n')
    mine = found["mine"]
    assert (mine.array_dim, mine.cop_sources, mine.scratch_bytes) == (8, 3, USUAL.scratch_bytes)
    assert mine.limits == Limits(array_dim=8)
    assert {name: chip for name, chip in found.items() if name != "mine"} == CHIPS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a\n", "configurations.toml: Expected"),
        ('[a]\ntext = "x"\n', "configurations.toml: a: array_dim is missing"),
        (f"{TEXT}\n[b]\narray = 4\n", "configurations.toml: b: array is no value of it"),
    ],
)
def test_a_wrong_source_is_refused(text: str, said: str) -> None:
    """Naming configuration and value."""
    with pytest.raises(ConfigurationError, match=f"^{re.escape(said)}"):
        read(text)


def test_a_name_that_is_none() -> None:
    """One line with those that there are."""
    with pytest.raises(ConfigurationError, match=r"^given 'a5', allowed a16, a4, a8"):
        named("a5")


def test_limits_choose_a_chip() -> None:
    """What was compiled for few formats runs on a chip with more, not the other way."""
    for chip in CHIPS.values():
        assert for_limits(chip.limits).array_dim == chip.array_dim
    assert for_limits(Limits(narrow_formats=False)) is USUAL
    with pytest.raises(ConfigurationError, match="given an array of 64 with narrow formats True"):
        for_limits(Limits(array_dim=64))


def test_make_help_names_them_all() -> None:
    """And its short form with the size of the array."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    said = re.search(r"CONFIG=([\w-]+) \(([^)]*)\)", makefile)
    assert said is not None
    assert [said[1], *said[2].split(", ")] == list(CHIPS)
