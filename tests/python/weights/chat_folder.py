# SPDX-License-Identifier: Apache-2.0
"""A model that ships, with a tokenizer of bytes that has a chat template."""

from __future__ import annotations

import shutil
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

START = 1
"""Id of the special token that goes before every text, and before every conversation."""
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ message.role }}: {{ message.content }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def chat_tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose ids are bytes, but for START."""
    letters = bytes_to_unicode() | {START: "<s>"}
    tokenizer = Tokenizer(models.BPE({letters[byte]: byte for byte in range(256)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = TemplateProcessing(
        single=["<s>", "$A"], special_tokens=[("<s>", START)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", chat_template=template
    )


def chat_folder(model: Path, folder: Path, template: str | None = TEMPLATE) -> Path:
    """Copy a model of 256 tokens and give it the tokenizer."""
    shutil.copytree(model, folder)
    chat_tokenizer(template).save_pretrained(folder)
    return folder
