# SPDX-License-Identifier: Apache-2.0
"""What a model goes on with: a plain text, or a question in the form of its chat template."""

from __future__ import annotations

from dataclasses import dataclass

from weights.tokenizer import Tokenizer, TokenizerError


@dataclass(frozen=True)
class Question:
    """One turn of a user.

    Attributes:
        text: what the user says.
        system: what the model is told before, None for nothing.
    """

    text: str
    system: str | None = None


Prompt = str | Question


def prompt_ids(tokenizer: Tokenizer, prompt: Prompt) -> list[int]:
    """Return the ids of a text, or those of a question up to where its answer starts.

    Raises:
        TokenizerError: the text is empty, there is no chat template, or it raises.
    """
    if isinstance(prompt, str):
        return tokenizer.encode(prompt)
    if not prompt.text:
        raise TokenizerError("prompt: given an empty text, allowed at least one character")
    given = {"system": prompt.system, "user": prompt.text}
    return tokenizer.conversation(
        [{"role": role, "content": text} for role, text in given.items() if text is not None]
    )
