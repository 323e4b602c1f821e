# SPDX-License-Identifier: Apache-2.0
"""Text to token ids and back: the tokenizer in a checkpoint's folder or file, or bytes.

A folder that holds a tokenizer is read by `transformers.AutoTokenizer`, that of a GGUF file is
built of its metadata (weights.gguf_tokenizer). A checkpoint without one
must be byte-level: a vocabulary of 256 ids that are the bytes of UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from weights.checkpoint import CheckpointError
from weights.gguf_tokenizer import GgufTokenizerError, built, tokenizer_of
from weights.sentencepiece_tokenizer import MODEL, SentencePieceError, metadata_of

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""What a folder or a hub snapshot may hold of a tokenizer."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""Any one of these makes a tokenizer."""
CONFIG = "tokenizer_config.json"
CLASSES = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer")
"""Classes of tokenizers that are read from sentencepiece's files; texts begin with a token."""
END_FILES = ("generation_config.json", "config.json")
"""Where a checkpoint names its end tokens; the first that does counts."""
BYTES = 256
ANSWER = "Tessera answers"
"""What a chat template is given to see what it writes behind it."""


class TokenizerError(ValueError):
    """A text or a token has no counterpart, or a folder has no usable tokenizer."""


class Tokenizer(Protocol):
    """Both directions between text and ids."""

    @property
    def name(self) -> str:
        """What it is, for messages."""

    @property
    def begin(self) -> int | None:
        """Id of the token that texts begin with, or of the one between texts; None without."""

    @property
    def end(self) -> int | None:
        """Id of the end token, None without."""

    @property
    def chat_template(self) -> str | None:
        """How a conversation becomes a prompt, in Jinja; None if nothing says it."""

    @property
    def turn_end(self) -> int | None:
        """Id of the token that the chat template writes behind an answer, None without."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of its tokens."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a prompt.

        Raises:
            TokenizerError: the text is empty.
        """

    def ids(self, text: str) -> list[int]:
        """Return the ids of any text, of an empty one too.

        Raises:
            TokenizerError: it has no ids.
        """

    def conversation(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Return the ids of messages (`role`, `content`), up to where the answer starts.

        Raises:
            TokenizerError: there is no chat template, or it does not take them.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; bytes that are no UTF-8 become U+FFFD."""

    def size(self, ids: Sequence[int]) -> int:
        """Return the bytes of text that ids stand for."""


def _no_template(name: str) -> TokenizerError:
    return TokenizerError(
        f"chat template: given none by the tokenizer {name}, allowed a tokenizer with one; "
        "npu generate goes on with a plain text"
    )


def _half_character(text: str, at: int) -> TokenizerError:
    """Return the error for a lone surrogate, which stands for a byte that is no UTF-8."""
    return TokenizerError(f"letter {at + 1}: given {text[at]!r}, allowed is UTF-8 text")


def _said(error: Exception) -> str:
    """Return in one line what a library said."""
    return " ".join(str(error).split()) or type(error).__name__


class ByteTokenizer:
    """Ids are the bytes of UTF-8."""

    name = "bytes"
    begin = end = turn_end = None
    chat_template = None
    warnings = ()

    def encode(self, text: str) -> list[int]:
        """Return one id per byte."""
        if not text:
            raise TokenizerError("prompt: given an empty text, allowed at least one character")
        return self.ids(text)

    def ids(self, text: str) -> list[int]:
        """Return one id per byte."""
        try:
            return list(text.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError as error:
            raise _half_character(text, error.start) from error

    def conversation(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Refuse: bytes have no chat template."""
        raise _no_template(self.name)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of bytes."""
        return bytes(ids).decode("utf-8", "replace")

    def size(self, ids: Sequence[int]) -> int:
        """Return their number."""
        return len(ids)


class TransformersTokenizer:
    """A tokenizer as transformers has them."""

    warnings: tuple[str, ...] = ()

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401
        self._tokenizer = tokenizer
        self.name = type(tokenizer).__name__

    @property
    def chat_template(self) -> str | None:
        """How a conversation becomes a prompt, in Jinja; of several the default."""
        given = self._tokenizer.chat_template
        found = given.get("default") if isinstance(given, dict) else given
        return None if found is None else str(found)

    @property
    def begin(self) -> int | None:
        """Id of the token that texts begin with, or of the one between texts; None without."""
        found = self._tokenizer.bos_token_id
        return self.end if found is None else int(found)

    @property
    def end(self) -> int | None:
        """Id of the end token, None without."""
        found = self._tokenizer.eos_token_id
        return None if found is None else int(found)

    @property
    def turn_end(self) -> int | None:
        """Id of the token that the chat template writes behind an answer, None without.

        Not everything that chats says so elsewhere: the ends of Gemma's and Phi's configurations
        are often those of a text alone.
        """
        if self.chat_template is None:
            return None
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
        try:
            text = str(self._tokenizer.apply_chat_template(turns, tokenize=False))
        except Exception:  # it takes no such turns, or none at all; a conversation says why
            return None
        behind = text.rpartition(ANSWER)[2].lstrip()
        if behind == text.lstrip():
            return None
        tokens = {
            str(token): int(index)
            for index, token in self._tokenizer.added_tokens_decoder.items()
            if str(token).strip() and behind.startswith(str(token))
        }
        return tokens[max(tokens, key=len)] if tokens else None

    def encode(self, text: str) -> list[int]:
        """Return the ids of a prompt, with whatever the tokenizer puts in front of one."""
        return self._prompt(text, special=True)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self._ids(text, special=True)

    def _ids(self, text: str, *, special: bool) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _half_character(text, error.start) from error
        try:
            found = self._tokenizer.encode(text, add_special_tokens=special, verbose=False)
        except Exception as error:  # words that it does not know
            raise TokenizerError(_said(error)) from error
        return [int(i) for i in found]

    def conversation(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Return the ids of messages; the template itself has all special tokens."""
        if self.chat_template is None:
            raise _no_template(self.name)
        try:
            text = self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # the template raises, or is none
            roles = ", ".join(message["role"] for message in messages)
            raise TokenizerError(
                f"chat template: given messages of {roles}, allowed what the template takes; it "
                f"raises: {_said(error)}"
            ) from error
        return self._prompt(text, special=False)

    def _prompt(self, text: str, *, special: bool) -> list[int]:
        try:
            ids = self._ids(text, special=special)
        except TokenizerError as error:
            raise TokenizerError(f"prompt: given {text!r}: {error}") from error
        if not ids:
            raise TokenizerError(f"prompt: given {text!r}, which has no tokens")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        # Without cleaning up: it would take back blanks that a longer text does not have.
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def size(self, ids: Sequence[int]) -> int:
        """Return the bytes of text that ids stand for, without an unfinished character behind."""
        return len(self.decode(ids).rstrip("\ufffd").encode())


class FolderTokenizer(TransformersTokenizer):
    """The tokenizer that a folder brings along."""

    def __init__(self, folder: Path) -> None:
        """Load it.

        Raises:
            TokenizerError: it cannot be read, or what is there does not say what it is.
        """
        alone = (folder / MODEL).is_file() and not (folder / "tokenizer.json").is_file()
        super().__init__(_of_sentencepiece(folder) if alone else _of_transformers(folder))


def _of_transformers(folder: Path, name: str = "AutoTokenizer", **options: object) -> Any:  # noqa: ANN401
    import transformers

    try:
        kind = getattr(transformers, name)
        return kind.from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # whatever transformers makes of the user's files
        raise TokenizerError(f"{folder}: the tokenizer cannot be read: {_said(error)}") from error


def _of_sentencepiece(folder: Path) -> Any:  # noqa: ANN401
    """Return the tokenizer of a file of sentencepiece without a tokenizer.json.

    AutoTokenizer guesses the class by the architecture then, also against the configuration, and
    leaves out what the class puts in front of a text.
    """
    config = _content(folder, CONFIG)
    given = config.get("tokenizer_class")
    if given is None:
        return _of_sentencepiece_alone(folder)
    name = str(given).removesuffix("Fast")
    if name not in CLASSES:
        raise TokenizerError(
            f"{folder}: {CONFIG} tokenizer_class: given {given!r}, allowed {', '.join(CLASSES)}, "
            "or a tokenizer.json"
        )
    return _of_transformers(folder, name, add_bos_token=config.get("add_bos_token", True))


def _of_sentencepiece_alone(folder: Path) -> Any:  # noqa: ANN401
    """Return the tokenizer of a file of sentencepiece with nothing beside it but a template."""
    for name in (CONFIG, "added_tokens.json"):
        if (folder / name).is_file():
            raise TokenizerError(
                f"{folder}: {CONFIG} tokenizer_class: given none beside {name}, allowed "
                f"{', '.join(CLASSES)}, or a tokenizer.json"
            )
    try:
        return built(metadata_of(folder), f"{folder / MODEL}")[0]
    except (GgufTokenizerError, SentencePieceError) as error:
        raise TokenizerError(str(error)) from error
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{folder}: the tokenizer cannot be read: {_said(error)}") from error


class GgufTokenizer(TransformersTokenizer):
    """The tokenizer in a GGUF file.

    Attributes:
        ends: ids that the file names, or that are known, as ends of a text or a turn.
    """

    def __init__(self, path: Path) -> None:
        """Build it.

        Raises:
            TokenizerError: the file has none, or one of an unknown kind.
        """
        try:
            found, self.ends, self.warnings = tokenizer_of(path)
        except (GgufTokenizerError, CheckpointError) as error:
            raise TokenizerError(str(error)) from error
        super().__init__(found)


def has_tokenizer(place: Path) -> bool:
    """Whether a folder holds a tokenizer; a GGUF file should."""
    return place.is_file() or any((place / name).is_file() for name in TOKENIZERS)


def load_tokenizer(folder: Path | None, vocab: int) -> Tokenizer:
    """Return the tokenizer of a checkpoint.

    Args:
        folder: the checkpoint's folder, or its GGUF file; None for a model without one.
        vocab: size of the model's vocabulary.

    Raises:
        TokenizerError: the folder has none and the vocabulary is not one of bytes.
    """
    if folder is not None and has_tokenizer(folder):
        return GgufTokenizer(folder) if folder.is_file() else FolderTokenizer(folder)
    if vocab != BYTES:
        raise TokenizerError(
            f"{folder}: given no tokenizer ({', '.join(TOKENIZERS)}) and {vocab} token ids, "
            f"allowed without a tokenizer are {BYTES} ids, the bytes"
        )
    return ByteTokenizer()


def end_tokens(folder: Path | None, tokenizer: Tokenizer, vocab: int) -> list[int]:
    """Return the ids that end a text, the one to stop at first; [] for none.

    The configuration of the checkpoint names one or several, and so does a GGUF file; a tokenizer
    has at most one of its own, and a chat template writes one behind an answer. That one goes
    first, for a chat ends there and nowhere else, then the tokenizer's own where it is among
    them. Ids outside the vocabulary never come and are left out.

    Raises:
        TokenizerError: eos_token_id is no id and no list of ids.
    """
    ends = tokenizer.ends if isinstance(tokenizer, GgufTokenizer) else []
    for name in END_FILES:
        ends = ends or _configured_ends(folder, name)
    own = tokenizer.end
    if own is not None and (own in ends or not ends):
        ends = [own, *ends]
    if (turn := tokenizer.turn_end) is not None:
        ends = [turn, *ends]
    return [end for end in dict.fromkeys(ends) if 0 <= end < vocab]


def _configured_ends(folder: Path | None, name: str) -> list[int]:
    """Return eos_token_id of a JSON file, [] if there is no file or no such entry."""
    given = None if folder is None else _content(folder, name).get("eos_token_id")
    ids = given if isinstance(given, list) else [] if given is None else [given]
    if any(type(one) is not int for one in ids):
        raise TokenizerError(
            f"{folder}: {name} eos_token_id: given {given!r}, allowed an id or a list of ids"
        )
    return ids


def _content(folder: Path, name: str) -> dict[str, Any]:
    """Return the fields of a JSON file, none if there is no file or no such thing in it."""
    if not (folder / name).is_file():
        return {}
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"{folder}: {name} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


class TextStream:
    """Turns a growing list of ids into pieces of text, each given out once and never taken back.

    The ids go on from those of a prompt, whose text is not given out: what a token reads as may
    depend on the ones before it, a blank in front for one. The last characters are held back while
    they may still change: an unfinished UTF-8 sequence decodes to U+FFFD until its last byte is
    there.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt)
        self._given = tokenizer.decode(self._ids).rstrip("\ufffd") if self._ids else ""

    def push(self, ids: Sequence[int]) -> str:
        """Add ids and return the text that is now certain and new."""
        self._ids += ids
        text = self._tokenizer.decode(self._ids)
        certain = text.rstrip("\ufffd")
        if not certain.startswith(self._given):
            return ""
        new = certain[len(self._given) :]
        self._given = certain
        return new

    def finish(self) -> str:
        """Return what was held back."""
        text = self._tokenizer.decode(self._ids)
        rest = text[len(self._given) :] if text.startswith(self._given) else ""
        self._given = text
        return rest


class StoppingStream(TextStream):
    """The text of a growing list of ids up to an end token or a stop string, without either.

    What may be the beginning of a stop string is held back until that is certain.

    Attributes:
        taken: ids up to where it stopped, the last of them included.
        over: whether it stopped; more ids change nothing.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt: Sequence[int] = (),
        ends: Sequence[int] = (),
        stops: Sequence[str] = (),
    ) -> None:
        super().__init__(tokenizer, prompt)
        self._ends, self._stops = frozenset(ends), tuple(stops)
        self._held = ""
        self.taken: list[int] = []
        self.over = False

    def push(self, ids: Sequence[int]) -> str:
        """Add ids and return the text that is now certain and new."""
        text = ""
        for token in ids:
            if self.over:
                break
            self.taken.append(token)
            if token in self._ends:
                text += self.finish()
                self.over = True
            else:
                text += self._certain(super().push([token]))
        return text

    def finish(self) -> str:
        """Return what was held back."""
        if self.over:
            return ""
        text = self._certain(super().finish())
        rest, self._held = self._held, ""
        return text + rest

    def _certain(self, piece: str) -> str:
        """Add text and return what cannot be part of a stop string."""
        self._held += piece
        found = [at for at in map(self._held.find, self._stops) if at >= 0]
        self.over = bool(found)
        keep = min(found) if found else len(self._held) - self._begun()
        text, self._held = self._held[:keep], "" if found else self._held[keep:]
        return text

    def _begun(self) -> int:
        """Return how many of the last characters may be the beginning of a stop string."""
        beginnings = (stop[:length] for stop in self._stops for length in range(1, len(stop)))
        return max((len(one) for one in beginnings if self._held.endswith(one)), default=0)
