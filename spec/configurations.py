# SPDX-License-Identifier: Apache-2.0
"""The named configurations of the chip: `configurations.toml` is their single source."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from spec.isa.operands import Limits

SOURCE = Path(__file__).with_suffix(".toml")


class ConfigurationError(ValueError):
    """There is no configuration of a name."""


@dataclass(frozen=True)
class ChipParameters:
    """Parameters of `npu_top`, and what runs on such a chip.

    Attributes:
        name: of the configuration.
        text: what is special about it.
        array_dim: edge of the systolic array.
        narrow_formats: whether it has weights narrower than int8.
        scratch_bytes: of the command port's scratchpad, 0 for a chip without the port.
        cop_sources: operands of the coprocessor's port, 0 for a chip without coprocessor.
        cop_id_width: bits of an identifier of the coprocessor's port.
        cop_hartid_width: bits of a hart's number there.
        cop_split: whether operands come behind the issue.
        smoke: whether the smoke tier has it.
        tests: modules of tests that a regression on another chip runs on it as well.
    """

    name: str
    text: str
    array_dim: int
    narrow_formats: bool
    scratch_bytes: int
    cop_sources: int
    cop_id_width: int
    cop_hartid_width: int
    cop_split: bool
    smoke: bool
    tests: tuple[str, ...]

    @property
    def limits(self) -> Limits:
        """What a compiler has to know of it."""
        return Limits(array_dim=self.array_dim, narrow_formats=self.narrow_formats)

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of `npu_top`; a part that is not there has the usual ones."""
        return {
            "ArrayDim": self.array_dim,
            "EnableCmd": int(self.scratch_bytes > 0),
            "CmdScratchBytes": self.scratch_bytes or USUAL.scratch_bytes,
            "EnableCop": int(self.cop_sources > 0),
            "CopNumRs": self.cop_sources or USUAL.cop_sources,
            "CopIdWidth": self.cop_id_width,
            "CopHartIdWidth": self.cop_hartid_width,
            "CopIssueRegisterSplit": int(self.cop_split),
            "NarrowFormats": int(self.narrow_formats),
        }


def read(text: str) -> dict[str, ChipParameters]:
    """Return the configurations of a source by name.

    Raises:
        ConfigurationError: it is not TOML, or a configuration has another set of values.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{SOURCE.name}: {error}") from error
    known = {field.name for field in fields(ChipParameters)} - {"name"}
    usual: dict[str, object] = {}
    found: dict[str, ChipParameters] = {}
    for name, given in tables.items():
        usual = usual or given
        values = {**usual, **given}
        for key in sorted(known ^ set(values)):
            raise ConfigurationError(
                f"{SOURCE.name}: {name}: {key} is {'missing' if key in known else 'no value of it'}"
            )
        found[name] = ChipParameters(**{**values, "name": name, "tests": tuple(values["tests"])})
    return found


CHIPS = read(SOURCE.read_text(encoding="utf-8"))
USUAL = next(iter(CHIPS.values()))


def named(name: str) -> ChipParameters:
    """Return the configuration of a name.

    Raises:
        ConfigurationError: there is none.
    """
    if name not in CHIPS:
        raise ConfigurationError(f"given {name!r}, allowed {', '.join(CHIPS)}")
    return CHIPS[name]


def for_limits(limits: Limits) -> ChipParameters:
    """Return the first configuration that can run what was compiled for some limits.

    Raises:
        ConfigurationError: there is none.
    """
    for chip in CHIPS.values():
        if chip.array_dim == limits.array_dim and chip.narrow_formats >= limits.narrow_formats:
            return chip
    raise ConfigurationError(
        f"given an array of {limits.array_dim} with narrow formats {limits.narrow_formats}, "
        f"allowed {', '.join(CHIPS)}"
    )
