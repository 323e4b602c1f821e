# SPDX-License-Identifier: Apache-2.0
"""The encoders that are imported, one module each; a new module here is all that one needs."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from weights.architecture import Architecture

ENCODERS: dict[str, Architecture] = {
    found.family: found
    for module in iter_modules(__path__)
    for found in import_module(f"{__name__}.{module.name}").ENCODERS
}
"""By model_type, in the order of the names of modules."""
