# SPDX-License-Identifier: Apache-2.0
"""Rotations as config.json says them: rope_parameters, or rope_theta and rope_scaling before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weights.architecture import Config
from weights.checkpoint import CheckpointShape
from weights.rotation import KINDS, Rotation

ROPE_THETA = 10000.0
"""The base of rotary embeddings where config.json gives none."""
MAPS = ("rope_parameters", "rope_scaling")
"""Fields with options: what transformers 5 writes, and what earlier versions wrote."""
ORIGINAL = "original_max_position_embeddings"
COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
"""Options of every kind."""
MORE = {
    "default": {"factor"},
    "dynamic": {ORIGINAL},
    "linear": {ORIGINAL},
    "yarn": {"mscale", "mscale_all_dim", "finetuned"},
    "longrope": {"factor"},
}
"""Options that a rotation does not keep: they give others, or change nothing."""
BETAS = {"beta_fast": 32, "beta_slow": 1}
"""What yarn has where nothing is given."""


def rotation(
    config: Config,
    head_dim: int,
    context: int,
    *,
    theta: float = ROPE_THETA,
    share: float | None = None,
    theta_field: str = "rope_theta",
    share_field: str = "partial_rotary_factor",
    maps: Mapping[str, object] | None = None,
    original: int | None = None,
    names: Mapping[str, str] | None = None,
) -> Rotation:
    """Return the rotation that config.json gives.

    Args:
        config: of the model.
        head_dim: lanes of a head.
        context: positions.
        theta: the base where config.json gives none.
        share: how much of a head is turned where it does not say it; None: always all.
        theta_field: what the base is called outside maps.
        share_field: what the share is called outside maps.
        maps: options by what messages call their place; None: those of MAPS.
        original: the original context where none stands beside the maps; None: as they say.
        names: kinds by other names than those of KINDS.

    Raises:
        CheckpointError: a kind or an option that is not known or makes no rotation.
    """
    if maps is None:
        maps = {field: config.content.get(field) for field in MAPS}
    given = {
        place: _map(config, place, value, names or {})
        for place, value in maps.items()
        if value is not None
    }
    base = _one(config, theta_field, "rope_theta", given, _base)
    default = 1.0 if share is None else share
    part = _one(config, share_field, "partial_rotary_factor", given, _share)
    if share is None and part not in (None, 1):
        raise config.refusal(_place(share_field, "partial_rotary_factor", given), "1", part)
    lanes = int(head_dim * (default if part is None else part))
    if lanes % 2:
        place = _place(share_field, "partial_rotary_factor", given)
        raise config.refusal(
            place, f"an even number of {head_dim} lanes", default if part is None else part
        )
    found = Rotation(theta if base is None else base, lanes)
    beside = config.content.get(ORIGINAL, original)
    scaled = [
        _scaled(config, place, options, found, context, beside) for place, options in given.items()
    ]
    others = [one for one in scaled if one.kind != "default"]
    if any(one != others[0] for one in others):
        raise config.refusal(MAPS[1], f"the same as in {MAPS[0]}, or one of both alone")
    return others[0] if others else found


def rotated(
    shape: CheckpointShape, rotations: Sequence[Rotation], tables: tuple[int, ...] = ()
) -> CheckpointShape:
    """Return a shape with rotations, of which `tables` has one by layer, said briefly."""
    by_layer = [rotations[number] for number in tables] or [rotations[0]]
    kept = tuple(one for one in dict.fromkeys(rotations) if one in by_layer)
    plain = kept == (Rotation(kept[0].theta, shape.head_dim),)
    return replace(
        shape,
        rope=True,
        rope_theta=kept[0].theta,
        rotations=() if plain else kept,
        tables=tuple(map(kept.index, by_layer)) if len(kept) > 1 else (),
    )


def parameters(one: Rotation, head_dim: int, *, share: bool = False) -> dict[str, object]:
    """Return a rotation as rope_parameters of config.json has it, with the share if asked."""
    said = {
        name: list(value) if isinstance(value, tuple) else value for name, value in one.said.items()
    }
    part = {"partial_rotary_factor": one.lanes / head_dim} if share else {}
    return {"rope_theta": one.theta, "rope_type": one.kind, **part, **said}


def _map(config: Config, place: str, value: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a map of options whose kind is known, under one key."""
    if not isinstance(value, dict):
        raise config.refusal(place, "null or a map", value)
    keys = [key for key in ("rope_type", "type") if value.get(key) is not None] or ["rope_type"]
    given = [value.get(key, "default") for key in keys]
    kinds = [names.get(one, one) if isinstance(one, str) else one for one in given]
    for key, kind, one in zip(keys, kinds, given, strict=True):
        if not isinstance(kind, str) or kind not in KINDS or kind != kinds[0]:
            raise config.refusal(f"{place}.{key}", " or ".join(map(repr, KINDS)), one)
    kind = kinds[0]
    known = COMMON | set(KINDS[kind]) | MORE.get(kind, set())
    for key in sorted(value.keys() - known):
        raise config.refusal(f"{place}.{key}", f"no options but {sorted(known)}", value[key])
    return {key: one for key, one in value.items() if one is not None} | {"rope_type": kind}


def _place(field: str, key: str, maps: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a message calls an option: the first map that has it, or the field outside."""
    return next((f"{place}.{key}" for place, options in maps.items() if key in options), field)


def _one(
    config: Config,
    field: str,
    key: str,
    maps: Mapping[str, Mapping[str, Any]],
    check: Callable[[Config, str, object], float],
) -> float | None:
    """Return what the places that give an option agree on, None if none does."""
    places = {f"{place}.{key}": options[key] for place, options in maps.items() if key in options}
    if config.content.get(field) is not None:
        places[field] = config.content[field]
    found = {check(config, place, value) for place, value in places.items()}
    if len(found) > 1:
        raise config.refusal(field, "one value throughout config.json", sorted(found))
    return found.pop() if found else None


def _number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _base(config: Config, place: str, value: Any) -> float:  # noqa: ANN401
    if not _number(value) or value <= 1:
        raise config.refusal(place, "a number above 1", value)
    return float(value)


def _share(config: Config, place: str, value: Any) -> float:  # noqa: ANN401
    if not _number(value) or not 0 <= value <= 1:
        raise config.refusal(place, "a number from 0 to 1", value)
    return float(value)


def _scaled(
    config: Config,
    place: str,
    options: Mapping[str, Any],
    plain: Rotation,
    context: int,
    original: int | None,
) -> Rotation:
    """Return a rotation with the scaling of a map of options."""
    kind = options["rope_type"]

    def number(name: str, default: float | None = None, least: float = 0.0) -> float:
        value = options.get(name, default)
        if not _number(value) or value < least or value == 0:
            allowed = f"a number of at least {least:g}" if least else "a number above 0"
            raise config.refusal(f"{place}.{name}", allowed, value)
        return float(value)

    def factors(name: str) -> tuple[float, ...]:
        value, count = options.get(name), plain.lanes // 2
        given = value if isinstance(value, list) else []
        if len(given) != count or not all(_number(one) and one > 0 for one in given):
            raise config.refusal(f"{place}.{name}", f"{count} numbers above 0", value)
        return tuple(map(float, given))

    length = int(number(ORIGINAL, original or context, 1)) if kind != "default" else context
    if kind != "default" and original not in (None, length):
        raise config.refusal(f"{place}.{ORIGINAL}", f"{original}, as beside it", length)
    if kind == "default" and options.get("factor", 1) != 1:
        raise config.refusal(f"{place}.factor", "1", options["factor"])
    if kind == "dynamic" and length < context:
        allowed = f"at least {context}, the positions of the model: beyond it they would depend"
        raise config.refusal(f"{place}.{ORIGINAL}", f"{allowed} on the length", length)
    if kind in ("linear", "dynamic"):
        factor = number("factor", least=1)
        return plain if factor == 1 else replace(plain, kind=kind, options=(factor,))
    if kind == "llama3":
        low = number("low_freq_factor")
        high = number("high_freq_factor")
        if high <= low:
            raise config.refusal(f"{place}.high_freq_factor", f"more than {low:g}", high)
        return replace(plain, kind=kind, options=(number("factor", least=1), low, high, length))
    if kind == "yarn":
        factor = number("factor", context / length, 1)
        given = number("attention_factor", _yarn_attention(factor, options))
        betas = [number(name, value) for name, value in BETAS.items()]
        truncate = options.get("truncate", True)
        if not isinstance(truncate, bool):
            raise config.refusal(f"{place}.truncate", "True or False", truncate)
        return replace(plain, kind=kind, options=(factor, length, given, *betas, truncate))
    if kind == "longrope":
        factor = number("factor", context / length)
        usual = math.sqrt(1 + math.log(max(factor, 1)) / math.log(length)) if length > 1 else 1.0
        given = number("attention_factor", usual)
        both = factors("short_factor"), factors("long_factor")
        return replace(plain, kind=kind, options=(*both, length, given))
    return plain


def _yarn_attention(factor: float, options: Mapping[str, Any]) -> float:
    """Return what q and k are multiplied by where it is not given."""

    def of(scale: Any) -> float:  # noqa: ANN401
        return 0.1 * scale * math.log(factor) + 1 if _number(scale) else math.nan

    if options.get("mscale") and options.get("mscale_all_dim"):
        return of(options["mscale"]) / of(options["mscale_all_dim"])
    return of(1)
