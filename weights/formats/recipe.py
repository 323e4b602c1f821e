# SPDX-License-Identifier: Apache-2.0
"""Which format each kind of tensor of a model gets, as people write it.

    int4g32                                            all linear layers of the blocks
    qkv=mxfp6e2,up=mxfp6e2,o=int4g32,down=int4g32      kind by kind, the rest stays int8
    nf4g32,qkv=int8,head=mxfp6e2                       a word for the blocks, then exceptions

A word alone is for the blocks; the head is narrow only where it is named. A `gate` that is not
named gets what `up` gets: both read the same rows and meet in one product.

Networks have no kinds of tensors: a word alone is for all of their products, and exceptions name
operations (`NetworkRecipe`).

    int4g32,head_matmul=int8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from spec.isa import WeightFormat
from spec.isa.weight_formats import GROUPED, GROUPS, MX, MX_BLOCK, NARROW

Kind = Literal["qkv", "o", "up", "gate", "down", "head"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BODY: tuple[Kind, ...] = ("qkv", "o", "up", "gate", "down")
"""The kinds that a word alone is for."""
DEFAULT_GROUP = 32


class RecipeError(ValueError):
    """A recipe of weight formats has an unknown word or kind."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the weights of a tensor are stored.

    Attributes:
        format: None for int8.
        group: rows of a side byte, 0 where the format has none.
        ternary: of INT2, only -1, 0 and 1 are used.
    """

    format: WeightFormat | None = None
    group: int = 0
    ternary: bool = False

    def __str__(self) -> str:
        """Return the word of a recipe."""
        if self.format is None:
            return "int8"
        if self.ternary:
            return "ternary"
        return f"{self.format.asm}{self.group}" if self.format in GROUPED else self.format.asm


INT8 = Encoding()


def _words() -> dict[str, Encoding]:
    """Return every word with what it stands for."""
    words = {"int8": INT8, "ternary": Encoding(WeightFormat.INT2, ternary=True)}
    for one in NARROW:
        if one in GROUPED:
            words[one.asm] = Encoding(one, DEFAULT_GROUP)
            words |= {f"{one.asm}{group}": Encoding(one, group) for group in GROUPS}
        else:
            words[one.asm] = Encoding(one, MX_BLOCK if one in MX else 0)
    return words


WORDS = _words()


@dataclass(frozen=True, slots=True)
class WeightRecipe:
    """The encoding of every kind of tensor; int8 where none is given."""

    kinds: dict[Kind, Encoding] = field(default_factory=dict)

    def __getitem__(self, kind: Kind) -> Encoding:
        """Return the encoding of a kind."""
        return self.kinds.get(kind, INT8)

    def __str__(self) -> str:
        """Return the recipe as `parse_recipe` reads it."""
        body = {self[kind] for kind in BODY}
        head = [] if self["head"] == INT8 else [f"head={self['head']}"]
        if len(body) == 1:
            return ",".join([str(body.pop()), *head])
        return ",".join([*(f"{kind}={self[kind]}" for kind in BODY), *head])

    @property
    def narrow(self) -> bool:
        """Whether any tensor is not int8."""
        return any(self[kind] != INT8 for kind in KINDS)


INT8_WEIGHTS = WeightRecipe()
"""No tensor is narrow."""


def parse_recipe(text: str) -> WeightRecipe:
    """Return the recipe that a text stands for.

    Raises:
        RecipeError: an unknown word or kind, or one that is given twice; says what is allowed.
    """
    base, given = _parts(text, "the blocks", "KIND")
    named: dict[Kind, Encoding] = {}
    for name, encoding in given.items():
        kind = next((one for one in KINDS if one == name), None)
        if kind is None:
            raise RecipeError(
                f"weights: given the tensor kind {name!r} in {text!r}, allowed {', '.join(KINDS)}"
            )
        named[kind] = encoding
    kinds: dict[Kind, Encoding] = {} if base is None else dict.fromkeys(BODY, base)
    if "up" in named:
        kinds["gate"] = named["up"]
    return WeightRecipe(kinds | named)


@dataclass(frozen=True, slots=True)
class NetworkRecipe:
    """The encoding of the weights of a network's products.

    Attributes:
        base: of those that are not named.
        named: of an operation, of a kind of operation, or of an operation in the file.
    """

    base: Encoding = INT8
    named: Mapping[str, Encoding] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the recipe as `parse_network_recipe` reads it."""
        return ",".join([str(self.base), *(f"{name}={one}" for name, one in self.named.items())])

    @property
    def encodings(self) -> set[Encoding]:
        """All that it asks for."""
        return {self.base, *self.named.values()}

    @property
    def narrow(self) -> bool:
        """Whether any weights are not int8."""
        return self.encodings != {INT8}


INT8_NETWORK = NetworkRecipe()
"""No product is narrow."""


def parse_network_recipe(text: str) -> NetworkRecipe:
    """Return the recipe of a network that a text stands for.

    Raises:
        RecipeError: an unknown word, or a name that is given twice; says what is allowed.
    """
    base, named = _parts(text, "all products", "NAME")
    return NetworkRecipe(base or INT8, named)


def _parts(text: str, whole: str, part: str) -> tuple[Encoding | None, dict[str, Encoding]]:
    """Return the word that stands alone, None without one, and the words by name."""
    base: Encoding | None = None
    named: dict[str, Encoding] = {}
    for piece in text.split(","):
        left, equals, right = (one.strip() for one in piece.rpartition("="))
        if not equals:
            if base is not None or named:
                raise RecipeError(
                    f"weights: given {right!r} in {text!r}, allowed one word for {whole}, first, "
                    f"and then {part}=WORD"
                )
            base = _encoding(right)
            continue
        if left in named:
            raise RecipeError(f"weights: given {left!r} twice in {text!r}, allowed once")
        named[left] = _encoding(right)
    return base, named


def _encoding(word: str) -> Encoding:
    """Return the encoding of a word."""
    if word not in WORDS:
        raise RecipeError(f"weights: given the format {word!r}, allowed {', '.join(sorted(WORDS))}")
    return WORDS[word]
