# SPDX-License-Identifier: Apache-2.0
"""How tokenizers of GGUF files cut a text into words, against llama.cpp's own expressions.

They are copied from llama-vocab.cpp and applied by the package regex as unicode_regex_split does:
one after the other, to what those before it left.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import regex

from tests.python.weights.gguf_files import tokenizer_metadata, write_gguf
from weights.gguf_tokenizer import CUTS, tokenizer_of
from weights.synthetic import random_checkpoint, shape_of

GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",)
SHORT = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATHS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = (SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST,)
QWEN2 = (SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST,)
UPPER, LOWER = r"((?=[\p{L}])([^a-z]))", r"((?=[\p{L}])([^A-Z]))"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
GPT4O = (
    rf"{BEFORE}{UPPER}*{LOWER}+{SHORT}?|{BEFORE}{UPPER}+{LOWER}*{SHORT}?|\p{{N}}{{1,3}}{PATHS}",
)
TEKKEN = (rf"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|\p{{N}}{PATHS}",)
LLAMA_CPP: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", *GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    **dict.fromkeys(("gpt-2", "phi-2", "olmo", "mpt"), GPT2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), (r"\p{N}", *GPT2)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"), LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), LLAMA3),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), QWEN2),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", *GPT2, "[0-9][0-9][0-9]"),
    "deepseek-coder": (
        *("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+"),
        *("[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
    ),
    "gpt-4o": GPT4O,
    "tekken": TEKKEN,
}
TEXTS = [
    "def main(self):\n    print(12345 + 6.5)  # it's 'done'\n\n\n",
    "Hello  world, don't I'LL naive 日本語 中文 한국어 🙂!\t\tx\r\n  y ",
    "<|im_start|>user\nWhat is 2 + 2? http://a.b/c//\n/x<=y`$1000^2~|\n",
    " 1234 ١٢٣ x1y22z333 1000000 12 camelCaseXMLParser HTTPServer's WE'VE",
    "   \n \n\n  leading, trailing   ",
]
LIKE = {"begins": ("tekken", "pixtral", "llama-bpe", "llama3", "llama-v3", "falcon3")}


def words_of(name: str, text: str) -> list[str]:
    """Return what llama.cpp cuts a text into."""
    words = [text]
    for expression in LLAMA_CPP[name]:
        found = []
        for word in words:
            at = 0
            for match in regex.finditer(expression, word):
                found += [word[at : match.start()], match[0]]
                at = match.end()
            found.append(word[at:])
        words = [one for one in found if one]
    return words


@pytest.mark.parametrize("name", CUTS)
def test_words(tmp_path: Path, name: str) -> None:
    """Every kind of cut, on code, other scripts, digits and blanks."""
    file = write_gguf(
        random_checkpoint(shape_of("llama", layers=1, vocab=60), 1),
        tmp_path / "model.gguf",
        metadata=tokenizer_metadata(pre=name, add_bos_token=None),
    )
    tokenizer, _, warnings = tokenizer_of(file)
    assert not warnings
    backend = tokenizer.backend_tokenizer
    for text in TEXTS:
        cut = backend.pre_tokenizer.pre_tokenize_str(text)
        found = [text[slice(*place)] for _, place in cut]
        assert found == words_of(name, text)
    assert (tokenizer.encode("a")[0] == 1) == (name in LIKE["begins"])


def test_a_file_that_does_not_say_how(tmp_path: Path) -> None:
    """It is cut by default, and a warning says that it was guessed."""
    cuts = []
    for pre in ("default", None):
        file = write_gguf(
            random_checkpoint(shape_of("llama", layers=1, vocab=60), 1),
            tmp_path / "model.gguf",
            metadata=tokenizer_metadata(pre=pre),
        )
        tokenizer, _, warnings = tokenizer_of(file)
        cuts.append(tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(TEXTS[3]))
        assert [one[:29] for one in warnings] == ["tokenizer.ggml.pre is missing"] * (pre is None)
    assert cuts[0] == cuts[1]
