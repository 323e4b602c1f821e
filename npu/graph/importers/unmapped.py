# SPDX-License-Identifier: Apache-2.0
"""What mappings of all importers say of a form that they do not know."""


class UnmappedError(Exception):
    """A mapping does not know this form of an operator: the host executes it.

    The message is the reason, a sentence for people.
    """
