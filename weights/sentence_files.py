# SPDX-License-Identifier: Apache-2.0
"""What sentence-transformers writes beside the config.json of an encoder of text.

modules.json says what becomes of the rows of a sentence, sentence_bert_config.json and
config_sentence_transformers.json what becomes of its letters before they are tokens. A field that
changes vectors is read or refused: one that is passed over makes vectors of another model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weights.architecture import Config
from weights.checkpoint import CheckpointError
from weights.encoder import EncoderShape, Pool, Pooling, TextForm
from weights.stored.folder import read_json

MODULES, SENTENCES = "modules.json", "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
OLD_SENTENCES = tuple(
    f"sentence_{name}_config.json"
    for name in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""What sentence_bert_config.json was called before; the first that says anything counts."""
TOKENIZER = "tokenizer_config.json"
SENTENCE_FILES = (MODULES, SENTENCES, *OLD_SENTENCES, PROMPTS, "*_Pooling/config.json")
POOLS: dict[str, Pool] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
}
SHORT = {"cls": "cls_token", "lasttoken": "lasttoken"}
"""What values of pooling_mode are called as fields, where that is not NAME_tokens."""
ORDERS = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
READ = ("max_seq_length", "do_lower_case")
"""Fields of sentence_bert_config.json that are read."""
NEUTRAL: dict[str, tuple[object, ...]] = {
    "transformer_task": ("feature-extraction", None),
    "module_output_name": ("token_embeddings", None),
    "unpad_inputs": (False,),
}
"""Others, and the values with which they change nothing; what is unknown must be empty."""
HARMLESS = ("add_pooling_layer", "attn_implementation", "dtype", "torch_dtype", "trust_remote_code")
"""Of model_args: how rows are computed, not what they are."""


def pooling_of(folder: Path, source: str, shape: EncoderShape) -> Pooling | None:
    """Return what modules.json says, None without one.

    Raises:
        CheckpointError: it, or a file that it names, has what is not computed.
    """
    if not (folder / MODULES).is_file():
        return None
    modules = _modules(folder, source)
    kinds = [kind for kind, _ in modules]
    if kinds not in ORDERS or modules[0][1]:
        raise CheckpointError(
            f"{source}: {MODULES}: given {', '.join(kinds) or 'no modules'}, allowed Transformer "
            "at the path '', Pooling and Normalize, in this order, the last or none"
        )
    pool = _pool(folder, modules[1][1], source)
    return Pooling(pool, "Normalize" in kinds, _longest(folder, source, shape))


def text_form(folder: Path, source: str) -> TextForm:
    """Return what a sentence becomes before it is tokens.

    Raises:
        CheckpointError: a field of sentence_bert_config.json or config_sentence_transformers.json
            is unknown, or not what it may be.
    """
    return TextForm(
        _sentences(folder, source).flag("do_lower_case", False), _prompt(folder, source)
    )


def _modules(folder: Path, source: str) -> list[tuple[str, str]]:
    """Return kind and path of each module."""
    try:
        given = json.loads((folder / MODULES).read_text(encoding="utf-8-sig"))
        found = [(str(one["type"]).rpartition(".")[2], str(one["path"])) for one in given]
    except (ValueError, OSError, TypeError, KeyError, RecursionError):
        raise CheckpointError(
            f"{source}: {MODULES}: given what is no list of modules, allowed maps with type and "
            "path"
        ) from None
    for kind, path in found:
        if kind not in ORDERS[-1] or ".." in Path(path).parts:
            raise CheckpointError(
                f"{source}: {MODULES}: given {kind} at {path!r}, allowed Transformer, Pooling and "
                "Normalize inside the folder"
            )
    return found


def _pool(folder: Path, path: str, source: str) -> Pool:
    """Return how rows become one; pooling_mode, where it is set, replaces the other fields."""
    place = f"{path}/config.json"
    config = _config(folder / path / "config.json", source, place)
    given = config.content
    modes = [key for key, value in given.items() if key.startswith("pooling_mode_") and value]
    named: Any = given.get("pooling_mode")
    if named is not None:
        names = named if isinstance(named, list) else [named]
        modes = [f"pooling_mode_{SHORT.get(str(one), f'{one}_tokens')}" for one in names]
    if len(modes) != 1 or modes[0] not in POOLS:
        raise CheckpointError(
            f"{source}: {place}: given {', '.join(modes) or 'no mode'}, allowed one of "
            f"{', '.join(POOLS)}"
        )
    if _prompt(folder, source):
        config.fixed("include_prompt", True)
    return POOLS[modes[0]]


def _longest(folder: Path, source: str, shape: EncoderShape) -> int:
    """Return the tokens that a sentence may have; the tokenizer says it where nothing else does."""
    given = _sentences(folder, source).optional_size("max_seq_length", None)
    if given is None and (folder / TOKENIZER).is_file():
        of_tokenizer = read_json(folder / TOKENIZER, source).get("model_max_length")
        # Without a limit it has a number of thirty digits there.
        given = of_tokenizer if type(of_tokenizer) is int and of_tokenizer > 0 else None
    return min(given or shape.context, shape.context)


def _sentences(folder: Path, source: str) -> Config:
    """Return sentence_bert_config.json by whatever name, of no fields without one."""
    for name in (SENTENCES, *OLD_SENTENCES):
        if not (folder / name).is_file():
            continue
        config = _config(folder / name, source, name)
        if config.content:
            _check_sentences(config)
            return config
    return _config(None, source, SENTENCES)


def _check_sentences(config: Config) -> None:
    """Refuse what changes vectors and is not read."""
    for field, given in config.content.items():
        if field in NEUTRAL:
            config.fixed(field, *NEUTRAL[field])
        elif field == "model_args" and isinstance(given, dict):
            odd = [name for name, value in given.items() if value and name not in HARMLESS]
            if odd:
                raise config.refusal(field, f"none but {', '.join(HARMLESS)}")
        elif field == "modality_config" and isinstance(given, dict):
            text = given.get("text")
            output = text.get("method_output_name") if isinstance(text, dict) else None
            if list(given) != ["text"] or output != "last_hidden_state":
                raise config.refusal(field, "text alone, with method_output_name last_hidden_state")
        elif field not in READ and given not in (None, False, "", [], {}):
            raise config.refusal(field, f"none but {', '.join((*READ, *NEUTRAL, 'model_args'))}")


def _prompt(folder: Path, source: str) -> str:
    """Return what is put before each sentence; other prompts are for those who ask for them."""
    path = folder / PROMPTS
    config = _config(path if path.is_file() else None, source, PROMPTS)
    config.fixed("model_type", "SentenceTransformer", None)
    config.fixed("truncate_dim", None)
    name = config.content.get("default_prompt_name")
    if name is None:
        return ""
    given = config.content.get("prompts")
    prompts: dict[str, Any] = given if isinstance(given, dict) else {}
    found = prompts.get(name) if isinstance(name, str) else None
    if not isinstance(found, str):
        raise config.refusal("default_prompt_name", f"the name of a text in prompts, {[*prompts]}")
    return found


def _config(path: Path | None, source: str, place: str) -> Config:
    """Return the content of a file, of no fields without one, whose messages name it."""
    return Config({} if path is None else read_json(path, source), source, file=place)
