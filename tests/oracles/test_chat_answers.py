# SPDX-License-Identifier: Apache-2.0
"""Answers of a published chat model as integers against those of transformers in float32.

Its activations are measured for minutes once and kept in the cache of the user. Needs torch (the
optional group `oracles`) and the group `published`.
"""

from __future__ import annotations

from itertools import takewhile

import torch
from transformers import AutoModelForCausalLM

from golden import session
from spec.paths import REPORTS
from tests.published_model import published
from tests.python.plans.campaign_reports import into_report
from weights.chat import Question, prompt_ids
from weights.importer import load_checkpoint
from weights.quantize import quantize_loaded
from weights.sink import behind_sink
from weights.tokenizer import load_tokenizer

QUESTIONS = (
    "What is the capital of France?",
    "What is the capital of Japan?",
    "Name three colours.",
    "What is 2 + 3?",
    "Write a sentence about the sea.",
    "Who wrote Romeo and Juliet?",
    "What does a compiler do?",
    "Give me a synonym of happy.",
    "How many days has a week?",
    "Translate 'good morning' into French.",
)
FIRST_ANSWER = "The capital of France is Paris."
REPORT = REPORTS / "chat_answers.json"
TOKENS, COMPARED, EQUAL = 24, 12, 5
"""Tokens of an answer, those that are compared, and how many answers must be equal in them."""
END = 2
"""The token <|im_end|>."""


def test_most_answers_are_those_of_float32() -> None:
    """Greedy tokens in int8; transformers reads the file by itself."""
    path = published()
    checkpoint = load_checkpoint(path)
    tokenizer, model = load_tokenizer(path, checkpoint.shape.vocab), quantize_loaded(checkpoint)
    assert model.sink is not None
    floats = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    equal = 0
    for question in QUESTIONS:
        ids = prompt_ids(tokenizer, Question(question))
        answer = floats.generate(
            torch.tensor([ids]),
            max_new_tokens=TOKENS,
            do_sample=False,
            eos_token_id=END,
            pad_token_id=END,
        )
        expected = answer[0, len(ids) :].tolist()
        found = session.generate(model, behind_sink(ids, model.sink.token), TOKENS, END)
        pairs = zip(expected, found, strict=False)
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        same = alike >= COMPARED or expected == found
        equal += same
        figures = {question: {"alike": alike, "equal": same, "answer": tokenizer.decode(found)}}
        into_report(REPORT, {"format": "int8"}, "answers", figures)
        if question == QUESTIONS[0]:
            assert tokenizer.decode(found) == tokenizer.decode(expected) == FIRST_ANSWER
    assert equal >= EQUAL
