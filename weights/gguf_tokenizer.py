# SPDX-License-Identifier: Apache-2.0
"""The tokenizer in the metadata of a GGUF file, built of the parts of the package tokenizers.

Vocabularies of bytes with merges (`gpt2`) say by a name how a text is cut into words; those of
sentencepiece (`llama`) have scores instead of merges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weights.stored.gguf_header import read_header

KEY = "tokenizer.ggml."
CHAT_TEMPLATE = "tokenizer.chat_template"
CONTROL, USER = 3, 4
"""Types of tokens that are found in a text before it is cut: special ones and others."""
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
"""What names tokens that end a text, a turn or a message."""
END_TEXTS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "<｜end▁of▁sentence｜>",  # noqa: RUF001 (as DeepSeek writes it)
    "<end_of_utterance>",
    "<|eom_id|>",
)
"""Special tokens that end them by what they are called, for converters write eos_token_id alone.

llama.cpp knows the same ones (llama-vocab.cpp).
"""
DEFAULT = "default"
"""How llama.cpp cuts where a file does not say how."""
SPECIAL = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
"""Special tokens by their key and by the name that transformers gives them."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a text is cut into the words that merges see.

    Attributes:
        expressions: each cuts what the ones before it left, matches and what is between them.
        whole: a word that is a token needs no merges.
        begins: texts begin with a token where a file does not say so.
        composed: characters of several codes become one first (NFC).
    """

    expressions: tuple[str, ...]
    whole: bool = False
    begins: bool = False
    composed: bool = False


_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_LINES, _PATHS = (rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n{more}]*{_SPACES}" for more in ("", "/"))
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ONE = rf"{_SHORT}|{_BEFORE}\p{{L}}+|\p{{N}}{_LINES}"
_THREE = rf"{_SHORT}|{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}{_LINES}"
_DEFAULT = (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")
_FALCON = (r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]")
_CODER = (
    r"[\r\n]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    r"\p{N}",
)


def _cases(behind: str) -> str:
    """Return an expression of words that end where a small letter is followed by a large one."""
    start = _BEFORE + _UPPER
    return rf"{start}*{_LOWER}+{behind}|{start}+{_LOWER}*{behind}"


_KINDS: tuple[tuple[Cut, tuple[str, ...]], ...] = (
    (Cut(_DEFAULT), (DEFAULT,)),
    (Cut((_GPT2,)), ("gpt-2", "phi-2", "olmo", "mpt")),
    (Cut((r"\p{N}", _GPT2)), ("smollm", "starcoder", "refact", "command-r")),
    (
        Cut((_THREE,), whole=True, begins=True),
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"),
    ),
    (Cut((_THREE,)), ("dbrx", "smaug-bpe")),
    (Cut((_ONE,), composed=True), ("qwen2",)),
    (Cut((_ONE,)), ("stablelm2", "deepseek-r1-qwen")),
    (Cut(_FALCON), ("falcon",)),
    (Cut(_CODER), ("deepseek-coder",)),
    (Cut((_cases(f"{_SHORT}?") + r"|\p{N}{1,3}" + _PATHS,)), ("gpt-4o",)),
    (Cut((_cases("") + r"|\p{N}" + _PATHS,), whole=True, begins=True), ("tekken",)),
)
CUTS = {name: cut for cut, names in _KINDS for name in names}
"""By tokenizer.ggml.pre, as llama.cpp cuts (llama-vocab.cpp)."""


NOT_SAID = (
    f"{KEY}pre is missing: texts are cut as llama.cpp cuts them then, perhaps not as the model "
    "was trained"
)
"""What is said of a file that does not say how texts are cut; older converters wrote such."""


class GgufTokenizerError(ValueError):
    """A file has no tokenizer, or one that is not known."""


def tokenizer_of(path: Path) -> tuple[Any, list[int], tuple[str, ...]]:
    """Return the tokenizer of a file, as transformers has them, the ids that end a text, warnings.

    Raises:
        GgufTokenizerError: there is none, or one of an unknown kind; names key, given, allowed.
        CheckpointError: the header is damaged.
    """
    return built(read_header(path, str(path)).metadata, str(path))


def built(metadata: dict[str, Any], source: str) -> tuple[Any, list[int], tuple[str, ...]]:
    """Return the tokenizer that metadata says, the ids that end a text, and warnings.

    Args:
        metadata: of a file, by key.
        source: what messages call it.

    Raises:
        GgufTokenizerError: there is none, or one of an unknown kind; names key, given, allowed.
    """
    given = _Metadata(metadata, source)
    kind = given.of("model", str)
    builders: dict[str, Callable[[_Metadata], Any]] = {"gpt2": _of_bytes, "llama": _of_pieces}
    if kind not in builders:
        raise given.refusal("model", repr(kind), str(list(builders)))
    try:
        cut = CUTS.get(given.of("pre", str, ""))
        bos = kind == "llama" or (cut is not None and cut.begins)
        found = _completed(builders[kind](given), given, bos=bos)
    except GgufTokenizerError:
        raise
    except Exception as error:  # whatever the library makes of a vocabulary
        raise GgufTokenizerError(
            f"{source}: the tokenizer cannot be read: {' '.join(str(error).split())}"
        ) from error
    guessed = kind == "gpt2" and not given.has("pre")
    return found, given.ends(), (NOT_SAID,) if guessed else ()


class _Metadata:
    """The entries of a tokenizer."""

    def __init__(self, content: dict[str, Any], source: str) -> None:
        self.content, self.source = content, source
        self.tokens: list[str] = self.of("tokens", list)

    def refusal(self, key: str, given: str, allowed: str) -> GgufTokenizerError:
        return GgufTokenizerError(f"{self.source}: {KEY}{key}: given {given}, allowed {allowed}")

    def has(self, key: str) -> bool:
        return KEY + key in self.content

    def of(self, key: str, kind: type[Any], usual: Any = None) -> Any:  # noqa: ANN401
        """Return an entry of a type, or what is usual without one."""
        found: Any = self.content.get(KEY + key, usual)
        if type(found) is not kind:
            given = "none" if found is None else type(found).__name__
            raise self.refusal(key, given, kind.__name__)
        if key.endswith("_token_id") and not 0 <= found < len(self.tokens):
            raise self.refusal(key, str(found), f"0 to {len(self.tokens) - 1}, a token")
        return found

    def by_token(self, key: str, usual: Any = None) -> list[Any]:  # noqa: ANN401
        """Return a list with an entry for each token."""
        found: list[Any] = self.of(key, list, usual)
        if len(found) != len(self.tokens):
            raise self.refusal(key, f"{len(found)} entries", f"{len(self.tokens)}, as tokens")
        return found

    def vocabulary(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    def kinds(self) -> list[Any]:
        """Return the type of each token."""
        return self.by_token("token_type", [1] * len(self.tokens))

    def ends(self) -> list[int]:
        """Return the ids that end a text, a turn or a message: those named, then those known."""
        named = [self.of(key, int) for key in END_KEYS if self.has(key)]
        special = {
            token: index
            for index, (token, kind) in enumerate(zip(self.tokens, self.kinds(), strict=True))
            if kind in (CONTROL, USER)
        }
        known = [special[text] for text in END_TEXTS if text in special]
        return list(dict.fromkeys(named + known))

    def special(self, name: str) -> str | None:
        """Return the text of a special token."""
        key = f"{name}_token_id"
        return self.tokens[self.of(key, int)] if self.has(key) else None


def _of_bytes(given: _Metadata) -> Any:  # noqa: ANN401
    """Return a tokenizer of bytes that merges make tokens of."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    name = given.of("pre", str, DEFAULT)
    if name not in CUTS:
        raise given.refusal("pre", repr(name), str(list(CUTS)))
    cut = CUTS[name]
    merges = [tuple(one.split(" ")) for one in given.of("merges", list)]
    wrong = next((one for one in merges if len(one) != 2), None)
    if wrong is not None:
        raise given.refusal("merges", repr(" ".join(wrong)), "two tokens with a blank between")
    found = Tokenizer(models.BPE(given.vocabulary(), merges, ignore_merges=cut.whole))
    if cut.composed:
        found.normalizer = normalizers.NFC()
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(one), "isolated") for one in cut.expressions),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    found.decoder = decoders.ByteLevel()
    return found


def _of_pieces(given: _Metadata) -> Any:  # noqa: ANN401
    """Return a tokenizer of sentencepiece: of two pieces that make one the best scored first."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers.tokenization_utils_base import generate_merges

    vocabulary, scores = given.vocabulary(), given.by_token("scores")
    merges = generate_merges(vocabulary, dict(zip(given.tokens, scores, strict=True)))
    unknown = given.special("unknown")
    model = models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    found = Tokenizer(model)
    blank, before = normalizers.Replace(" ", "▁"), given.of("add_space_prefix", bool, True)
    found.normalizer = normalizers.Sequence([normalizers.Prepend("▁")] * before + [blank])
    found.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            *[decoders.Strip(" ", 1, 0)] * before,
        ]
    )
    return found


def _completed(found: Any, given: _Metadata, *, bos: bool) -> Any:  # noqa: ANN401
    """Return a tokenizer with its special tokens and the chat template.

    A prompt goes on, so nothing is put behind it, whatever add_eos_token says.
    """
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    kinds = given.kinds()
    for kind, special in ((CONTROL, True), (USER, False)):
        found.add_tokens(
            [
                AddedToken(token, special=special, normalized=False)
                for token, one in zip(given.tokens, kinds, strict=True)
                if one == kind
            ]
        )
    first = given.special("bos")
    if first is not None and given.of("add_bos_token", bool, bos):
        found.post_processor = TemplateProcessing(
            single=[first, "$A"], special_tokens=[(first, given.of("bos_token_id", int))]
        )
    names = {theirs: given.special(ours) for ours, theirs in SPECIAL.items()}
    template = given.content.get(CHAT_TEMPLATE)
    return PreTrainedTokenizerFast(
        tokenizer_object=found,
        chat_template=template if isinstance(template, str) else None,
        **{name: token for name, token in names.items() if token is not None},
    )
