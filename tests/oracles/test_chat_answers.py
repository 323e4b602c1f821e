# SPDX-License-Identifier: Apache-2.0
"""What a published chat model says next, as integers, along the answers of transformers in float32.

Greedy answers of their own would be compared by luck: where float32 hardly prefers one token to the
next, as "The" to "L" at the beginning of the first answer, rounding decides. So both read float32's
answers, and their distributions over the vocabulary are compared token by token.

Its activations are measured for minutes once and kept in the cache of the user. Needs torch (the
optional group `oracles`) and the group `published`.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModelForCausalLM

from golden import decoder
from spec.paths import REPORTS
from tests.published_model import published
from tests.python.plans.campaign_reports import into_report
from weights.chat import Question, prompt_ids
from weights.importer import load_checkpoint
from weights.quantize import quantize_loaded
from weights.sink import behind_sink
from weights.tokenizer import load_tokenizer

Reals = npt.NDArray[np.float64]

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
    "What is the largest planet?",
    "Explain gravity in one sentence.",
    "List three animals.",
    "What is the opposite of hot?",
    "Who painted the Mona Lisa?",
    "Write a poem about rain.",
    "What is 7 times 8?",
    "Why is the sky blue?",
    "What is Python?",
    "Name a fruit that is yellow.",
)
FIRM, ANSWER = QUESTIONS[1], "The capital of Japan is Tokyo."
"""An answer none of whose tokens float32 hardly prefers."""
REPORT = REPORTS / "chat_answers.json"
TOKENS, COMPARED = 24, 12
"""Tokens of an answer, and those that make one equal."""
END = 2
"""The token <|im_end|>."""
ALIKE, LOST, DOUBT, EQUAL = 0.88, 0.03, 1.5, 5
"""Of all tokens, those that both prefer; nats of divergence, their mean; and the largest lead, in
nats, with which float32 prefers a token that the integers don't; answers that are equal."""


def test_integers_say_what_float32_says() -> None:
    """The same next tokens in int8; transformers reads the file by itself."""
    path = published()
    checkpoint = load_checkpoint(path)
    tokenizer, model = load_tokenizer(path, checkpoint.shape.vocab), quantize_loaded(checkpoint)
    assert model.sink is not None
    floats = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    lost, alike, doubts, equal = [], [], [0.0], 0
    for question in QUESTIONS:
        ids = prompt_ids(tokenizer, Question(question))
        said = floats.generate(
            torch.tensor([ids]),
            max_new_tokens=TOKENS,
            do_sample=False,
            eos_token_id=END,
            pad_token_id=END,
        )
        text = said[0].tolist()
        read = behind_sink(text, model.sink.token)
        with torch.no_grad():
            wanted = _answer(floats(said).logits[0].double().numpy(), len(text) - len(ids))
        units = decoder.forward(model, read).astype(np.float64)
        found = _answer(units * model.scales["logits"], len(text) - len(ids))
        assert (wanted.argmax(axis=-1) == text[len(ids) :]).all()
        best = found.argmax(axis=-1)
        hits = best == text[len(ids) :]
        lost.append((np.exp(wanted) * (wanted - found)).sum(axis=-1))
        alike.append(hits)
        doubts.extend((wanted.max(axis=-1) - wanted[np.arange(len(best)), best])[~hits])
        if question == FIRM:
            assert tokenizer.decode(best) == ANSWER
        first = sum(1 for _ in takewhile(bool, hits))
        equal += bool(same := first >= min(COMPARED, len(hits)))
        figures = {question: {"alike": first, "equal": same, "says": tokenizer.decode(best)}}
        into_report(REPORT, {"format": "int8"}, "answers", figures)
    measured = {
        "equal": equal,
        "tokens": int(np.concatenate(alike).size),
        "alike": float(np.concatenate(alike).mean()),
        "nats": float(np.concatenate(lost).mean()),
        "doubt": float(max(doubts)),
    }
    into_report(REPORT, {"format": "int8"}, "answers", {"all": measured})
    assert measured["tokens"] > 300
    assert measured["alike"] >= ALIKE
    assert measured["nats"] <= LOST
    assert measured["doubt"] <= DOUBT
    assert equal >= EQUAL


def _answer(logits: Reals, tokens: int) -> Reals:
    """Return the logarithms of the probabilities that an answer's tokens have, (tokens, V)."""
    rows = logits[-tokens - 1 : -1]
    rows = rows - rows.max(axis=-1, keepdims=True)
    logarithms: Reals = rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))
    return logarithms
