# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, with bytes and with a tokenizer in the folder."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from random import Random

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.python.weights.chat_folder import chat_tokenizer
from weights.chat import Question, prompt_ids
from weights.importer import HUB_FILES
from weights.tokenizer import (
    ByteTokenizer,
    StoppingStream,
    TextStream,
    TokenizerError,
    end_tokens,
    load_tokenizer,
)

TEXT = "naïve 日本 — 🙂!"


def _word_folder(folder: Path) -> Path:
    """Save a tokenizer of whole words in a folder."""
    words = {"<end>": 0, "the": 1, "bus": 2, "is": 3, "full": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    return folder


def test_bytes_round_trip() -> None:
    """Ids are the bytes of UTF-8."""
    tokenizer = load_tokenizer(None, 256)
    assert tokenizer.encode(TEXT) == list(TEXT.encode())
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.end is None


def test_tokenizer_of_the_folder(tmp_path: Path) -> None:
    """A folder with a tokenizer is read by AutoTokenizer, whatever the size of the vocabulary."""
    tokenizer = load_tokenizer(_word_folder(tmp_path), 5)
    assert tokenizer.encode("the bus is full") == [1, 2, 3, 4]
    assert tokenizer.decode([2, 4]) == "bus full"
    assert tokenizer.end == 0


def test_tokens_stand_for_bytes(tmp_path: Path) -> None:
    """Also where a character is of several, and half of one is none."""
    assert load_tokenizer(None, 256).size("é!".encode()[:-2]) == 1
    tokenizer = load_tokenizer(_blank_folder(tmp_path), 5)
    assert tokenizer.size(tokenizer.encode("the bus is")) == len("the bus is")
    assert tokenizer.size([0]) == 0


def test_folder_without_tokenizer(tmp_path: Path) -> None:
    """Without a tokenizer only bytes make sense."""
    assert isinstance(load_tokenizer(tmp_path, 256), ByteTokenizer)
    with pytest.raises(TokenizerError, match=r"50257 token ids, allowed .* 256 ids, the bytes"):
        load_tokenizer(tmp_path, 50257)


def test_damaged_tokenizer(tmp_path: Path) -> None:
    """A file that is no tokenizer is refused by the name of its folder."""
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match=rf"{tmp_path}: the tokenizer cannot be read"):
        load_tokenizer(tmp_path, 256)


def test_empty_prompt() -> None:
    """A prompt has at least one token."""
    with pytest.raises(TokenizerError, match="given an empty text"):
        ByteTokenizer().encode("")


def test_text_appears_in_whole_characters() -> None:
    """Pieces join to the text; no piece holds half a character."""
    stream = TextStream(ByteTokenizer())
    pieces = [stream.push([byte]) for byte in TEXT.encode()]
    assert "".join(pieces) + stream.finish() == TEXT
    assert "\ufffd" not in "".join(pieces)
    assert sum(map(bool, pieces)) == len(TEXT)


def test_bytes_that_are_no_text() -> None:
    """What never becomes a character is given out at the end, marked."""
    stream = TextStream(ByteTokenizer())
    assert stream.push(list(b"a\xff")) == "a"
    assert stream.finish() == "\ufffd"
    stream = TextStream(ByteTokenizer())
    assert stream.push(list(b"a\xffb")) == "a\ufffdb"


def _blank_folder(folder: Path) -> Path:
    """Save a tokenizer whose words carry the blank before them, as SentencePiece has it."""
    words = {"<end>": 0, "\u2581the": 1, "\u2581bus": 2, "\u2581is": 3, "\u2581.": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", clean_up_tokenization_spaces=True
    )
    fast.save_pretrained(folder)
    return folder


def test_text_goes_on_from_the_prompt(tmp_path: Path) -> None:
    """The blank before the first word is there, and nothing given out is taken back."""
    tokenizer = load_tokenizer(_blank_folder(tmp_path), 5)
    prompt = tokenizer.encode("the bus")
    assert prompt == [1, 2]
    stream = TextStream(tokenizer, prompt)
    assert [stream.push([one]) for one in (3, 1, 4, 1)] == [" is", " the", " .", " the"]
    assert stream.finish() == ""
    stream = TextStream(tokenizer, prompt)
    assert (stream.push([3, 0]), stream.finish()) == (" is", "")
    stream = TextStream(ByteTokenizer(), list(b"na\xc3"))
    assert (stream.push(list(b"\xaf\xff")), stream.finish()) == ("\u00ef", "\ufffd")


@pytest.mark.parametrize("seed", range(40))
def test_stop_strings(seed: int) -> None:
    """A text ends before what completes first; nothing given out is of a stop string."""
    random = Random(seed)
    words = ["".join(random.choices("abé", k=random.randint(1, 4))) for _ in range(3)]
    text = "".join(random.choices("abé", k=30)).encode() + random.choice([b"", b"\xc3", b"\xff"])
    end = random.choice([None, ord("b")])
    stream = StoppingStream(ByteTokenizer(), ends=[] if end is None else [end], stops=words)
    expected, taken = text.decode("utf-8", "replace"), len(text)
    for length in range(1, len(text) + 1):
        so_far = text[:length].decode("utf-8", "ignore")
        stops = [so_far.index(word) for word in words if word in so_far]
        if text[length - 1] == end or stops:
            ended = so_far[:-1] if text[length - 1] == end else so_far[: min(stops)]
            expected, taken = ended, length
            break
    pieces, at = [], 0
    while at < len(text):
        step = random.randint(1, 5)
        pieces.append(stream.push(text[at : at + step]))
        at += step
        assert expected.startswith("".join(pieces)), (seed, words, text)
    found = "".join(pieces) + stream.finish()
    assert (found, len(stream.taken)) == (expected, taken), (seed, words, text)
    assert (stream.push(b"abc"), stream.finish()) == ("", "") or taken == len(text)


def test_text_is_held_back_no_longer_than_it_may_be_a_stop_string() -> None:
    """What cannot begin one is given out at once."""
    stream = StoppingStream(ByteTokenizer(), stops=["stop", "tin"])
    pieces = [stream.push([byte]) for byte in b"as st-t"]
    assert pieces == ["a", "", "s ", "", "", "st-", ""]
    assert (stream.finish(), stream.over) == ("t", False)


def test_half_a_character_has_no_bytes() -> None:
    """What stands for a byte of a command line is that byte."""
    assert ByteTokenizer().ids("a\udcff") == [97, 255]
    with pytest.raises(TokenizerError, match=r"letter 2: given '\\ud800', allowed is UTF-8 text"):
        ByteTokenizer().ids("a\ud800")


def conversations(tmp_path: Path, template: str | None) -> list[int]:
    """Return the ids of a question by a template."""
    chat_tokenizer(template).save_pretrained(tmp_path)
    return prompt_ids(load_tokenizer(tmp_path, 256), Question("Why?"))


def test_template_as_published_ones_are(tmp_path: Path) -> None:
    """Blanks of blocks are trimmed; time, JSON, and what the sandbox forbids are there."""
    template = """{{- bos_token }}
    {%- for one in messages %}
        {%- if one['role'] not in ['user', 'system'] %}
            {{- raise_exception('role ' + one['role']) }}
        {%- endif %}
{{ one | tojson }}
    {%- endfor %}
{{- strftime_now('%%') }}
"""
    ids = conversations(tmp_path, template)
    assert bytes(ids[1:]) == b'{"role": "user", "content": "Why?"}%'


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (None, r"chat template: given none by the tokenizer \w+, allowed a tokenizer with one"),
        ("{{ raise_exception('no turns') }}", r"given messages of user, allowed .*raises: no turn"),
        ("{% for", r"given messages of user, allowed what the template takes; it raises: "),
        ("{{ messages.append(1) }}", r"given messages of user.*: .*append.* not safe|: access to"),
        ("{{ ''.__class__.__mro__ }}{{ 1 / 0 }}", r"given messages of user, allowed what the te"),
        ("{{ '' }}", r"prompt: given '', which has no tokens"),
    ],
)
def test_template_that_does_not_work(tmp_path: Path, template: str | None, said: str) -> None:
    """One line says what it was given and what it says itself."""
    with pytest.raises(TokenizerError, match=said) as caught:
        conversations(tmp_path, template)
    assert "\n" not in str(caught.value)


def test_questions_that_are_refused() -> None:
    """An empty one, and any to bytes."""
    with pytest.raises(TokenizerError, match="prompt: given an empty text"):
        prompt_ids(ByteTokenizer(), Question(""))
    with pytest.raises(TokenizerError, match="chat template: given none by the tokenizer bytes"):
        prompt_ids(ByteTokenizer(), Question("Why?", "Say."))


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        (None, None, [0]),
        (3, None, [3]),
        (3, 2, [2]),
        (3, [4, 2], [4, 2]),
        (None, [4, 0, 2], [0, 4, 2]),
        (99, None, []),
        (None, [99, 1], [1]),
        ([2, 2], None, [2]),
    ],
)
def test_end_tokens(tmp_path: Path, config: object, generation: object, ends: list[int]) -> None:
    """The configuration names the ends; the tokenizer's own goes first where it is one of them."""
    tokenizer = load_tokenizer(_word_folder(tmp_path), 5)
    for name, given in (("config.json", config), ("generation_config.json", generation)):
        (tmp_path / name).write_text(json.dumps({"eos_token_id": given}))
    assert end_tokens(tmp_path, tokenizer, 5) == ends


@pytest.mark.parametrize(
    ("generation", "ends"), [(None, [4, 0]), (0, [4, 0]), ([4, 0], [4, 0]), ([0, 3], [4, 0, 3])]
)
def test_end_that_only_the_chat_template_has(
    tmp_path: Path, generation: object, ends: list[int]
) -> None:
    """A turn ends there, also where every configuration has the end of a text alone."""
    folder = _word_folder(tmp_path)
    fast = PreTrainedTokenizerFast.from_pretrained(folder, extra_special_tokens=["full"])
    fast.chat_template = "{% for one in messages %}{{ one.content + 'full\n' }}{% endfor %}"
    fast.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": generation}))
    tokenizer = load_tokenizer(folder, 5)
    assert (tokenizer.end, tokenizer.turn_end) == (0, 4)
    assert end_tokens(folder, tokenizer, 5) == ends


def test_no_end_token(tmp_path: Path) -> None:
    """Bytes without a configuration never end."""
    assert end_tokens(None, ByteTokenizer(), 256) == []
    assert end_tokens(tmp_path, ByteTokenizer(), 256) == []
    (tmp_path / "config.json").write_text('{"eos_token_id": 0}')
    assert end_tokens(tmp_path, ByteTokenizer(), 256) == [0]


@pytest.mark.parametrize("given", ["two", [1, "2"], {"a": 1}, 1.5, True])
def test_bad_end_token(tmp_path: Path, given: object) -> None:
    """What is no id is refused by file and field."""
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": given}))
    with pytest.raises(TokenizerError, match=r"generation_config.json eos_token_id: given .* allo"):
        end_tokens(tmp_path, ByteTokenizer(), 256)


def test_tokenizer_is_fetched_from_the_hub(tmp_path: Path) -> None:
    """Whatever a tokenizer saves is on the list of what is fetched with a checkpoint."""
    _blank_folder(tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    names += ["tokenizer.model", "vocab.json", "merges.txt", "config.json", "model.safetensors"]
    names += ["generation_config.json", "model-00001-of-00002.safetensors"]
    assert [name for name in names if not any(fnmatch(name, one) for one in HUB_FILES)] == []
    assert not any(fnmatch("pytorch_model.bin", one) for one in HUB_FILES)


@pytest.mark.parametrize("several", [False, True])
def test_chat_template(tmp_path: Path, several: bool) -> None:
    """From a file of its own, or of several in the configuration the default; bytes have none."""
    assert ByteTokenizer().chat_template is None
    folder = _word_folder(tmp_path)
    assert load_tokenizer(folder, 5).chat_template is None
    if several:
        path = folder / "tokenizer_config.json"
        named = [{"name": name, "template": name.upper()} for name in ("tool_use", "default")]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": named}))
    else:
        (folder / "chat_template.jinja").write_text("DEFAULT")
    assert load_tokenizer(folder, 5).chat_template == "DEFAULT"
