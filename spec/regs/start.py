# SPDX-License-Identifier: Apache-2.0
"""What a start state does with its table of registers; the class itself is generated."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Self


class StartRegister(NamedTuple):
    """Where a member of the start state lies.

    Attributes:
        member: its name in `StartState`.
        element: its place in an array of registers, None for a member of its own.
        register: byte offset in the sequencer's window.
        mask: the bits that the register has.
    """

    member: str
    element: int | None
    register: int
    mask: int

    @property
    def name(self) -> str:
        """`pos`, or `bases[2]` of an array."""
        return self.member if self.element is None else f"{self.member}[{self.element}]"

    def of(self, state: object) -> int:
        """Return the register's value for a start state."""
        value = getattr(state, self.member)
        return int(value if self.element is None else value[self.element])

    @property
    def allowed(self) -> str:
        """Say which values the register holds."""
        step, limit = self.mask & -self.mask, self.mask.bit_length()
        if step > 1:
            return f"multiples of {step} < 2^{limit}"
        return f"0 to 2^{limit}-1" if limit > 1 else "0 or 1"


class StartMembers:
    """Checks, reads and writes that follow from `REGISTERS`, the members in the order of writes."""

    __slots__ = ()
    REGISTERS: ClassVar[tuple[StartRegister, ...]]

    def __post_init__(self) -> None:
        """Refuse what the registers cannot hold.

        Raises:
            ValueError: naming the member, what was given and what is allowed.
        """
        for member, size in self.sizes().items():
            given = len(getattr(self, member))
            if given != size:
                raise ValueError(f"StartState.{member}: given {given} values, allowed {size}")
        for place in self.REGISTERS:
            value = place.of(self)
            if value & ~place.mask:
                raise ValueError(
                    f"StartState.{place.name}: given {value:#x}, allowed {place.allowed}"
                )

    @classmethod
    def sizes(cls) -> dict[str, int]:
        """Return how many registers each array has, by its name."""
        return {one.member: one.element + 1 for one in cls.REGISTERS if one.element is not None}

    @classmethod
    def of_registers(cls, read: Callable[[int], int]) -> Self:
        """Return what the registers hold; `read` returns the value at a byte offset."""
        values: dict[str, list[int]] = {}
        for place in cls.REGISTERS:
            values.setdefault(place.member, []).append(read(place.register) & place.mask)
        arrays = cls.sizes()
        return cls(**{name: tuple(v) if name in arrays else v[0] for name, v in values.items()})

    def writes(self) -> list[tuple[int, int]]:
        """Return (byte offset, value) of each register in the order of a host's writes."""
        return [(place.register, place.of(self)) for place in self.REGISTERS]
