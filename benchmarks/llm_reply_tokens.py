"""How many tokens a judge's model has to write for the verdicts of one answer, by the form of the reply.

    python -m benchmarks.llm_reply_tokens [--ms-per-token 8] [--claims 8] [--json PATH]

The replies are those that a model would write that keeps to the prompt, in every form that ``judge.llm`` can
ask for, and in one that asks for quotes instead of numbers of sentences. Three quarters of the claims are
SUPPORTED, the others CONTRADICTED, UNSUPPORTED and PARTIALLY_SUPPORTED. Tokens are o200k_base's where
tiktoken and a copy of its vocabulary are installed (``benchmarks/peers-requirements.txt``), else estimated.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.peers_tokens import Tokenize, tokenizer
from guardrail.events import ClaimPart
from guardrail.judges import Verdict
from guardrail.judges.llm import LlmJudgeSettings, ReplyForm
from guardrail.judges.llm.prompt import Prompts, sample
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import PromptFiles, Reasoning

# What a model says of four claims: sentence, verdict, reason, and the claim as two statements.
_SAID: Final = (
    (
        "Refunds are paid within 14 days of the cancellation to the card that was charged.",
        Verdict.SUPPORTED,
        "The document says that refunds are paid within 14 days to the same card.",
        ("Refunds are paid within 14 days.", "Refunds go to the card that was charged."),
    ),
    (
        "The basic plan costs $49 a month and includes three users.",
        Verdict.SUPPORTED,
        "Price and number of users are those of the document.",
        ("The basic plan costs $49 a month.", "The basic plan includes three users."),
    ),
    (
        "Support answers on weekdays from 9 to 17, Central European Time.",
        Verdict.SUPPORTED,
        "The opening hours are given as stated.",
        (),
    ),
    (
        "Plans can be cancelled at the end of every month.",
        None,
        "The document says the end of every month, the claim says any day.",
        (),
    ),
)
_OTHERS: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIALLY_SUPPORTED)


def _members(claims: int) -> Iterator[dict[str, Any]]:
    """What could be said of each claim; a form takes of it what it has."""
    for number in range(claims):
        quote, verdict, reason, parts = _SAID[number % len(_SAID)]
        given = verdict or _OTHERS[(number // len(_SAID)) % len(_OTHERS)]
        found = given is not Verdict.UNSUPPORTED
        sentence = 12 + 3 * number
        yield {
            "id": f"c{number + 1}",
            "evidence": ([sentence, sentence + 1] if number % 4 == 0 else [sentence]) if found else [],
            "quotes": [{"document": f"d{1 + number % 5}", "quote": quote}] if found else [],
            "parts": [{"text": part, "verdict": given.value} for part in parts],
            "verdict": given.value,
            "confidence": 0.95,
            "against": [],
            "contradicted_by": [],
            "reasoning": reason,
        }


def _reply(form: ReplyForm, claims: int) -> str:
    return form.write([_answer(each) for each in _members(claims)])


def _answer(said: dict[str, Any]) -> Answer:
    return Answer(
        said["id"],
        Verdict(said["verdict"]),
        said["confidence"],
        tuple(said["evidence"]),
        tuple(said["against"]),
        said["reasoning"],
        tuple(ClaimPart(text=part["text"], verdict=Verdict(part["verdict"])) for part in said["parts"]),
    )


def _object(names: Sequence[str], reasoning: Reasoning, said: dict[str, Any]) -> dict[str, Any]:
    silent = reasoning is Reasoning.NOT_SUPPORTED and said["verdict"] == "SUPPORTED"
    return {name: "" if name == "reasoning" and silent else said[name] for name in names}


def _with_quotes(reasoning: Reasoning, claims: int) -> str:
    """The form of before: quotes and ids of documents, and blanks between the parts."""
    names = ("id", "quotes", "verdict", "confidence", "contradicted_by", "reasoning")
    return json.dumps({"verdicts": [_object(names, reasoning, said) for said in _members(claims)]})


def _replies(claims: int) -> Iterator[tuple[str, str]]:
    for reasoning in (Reasoning.NOT_SUPPORTED, Reasoning.AFTER, Reasoning.NONE):
        yield f"compact, reasoning {reasoning.value}", _reply(ReplyForm(reasoning), claims)
    yield "objects, quotes, reasoning not_supported", _with_quotes(Reasoning.NOT_SUPPORTED, claims)
    yield "objects, reasoning before", _reply(ReplyForm(Reasoning.BEFORE), claims)
    yield "objects, decomposed, reasoning not_supported", _reply(ReplyForm(decompose=True), claims)


def _first(reply: str, tokenize: Tokenize) -> int:
    """Tokens until the first verdict has closed, of which the last may hold more than its end."""
    *_, end = re.finditer(r'",(?="c2\b)|\},\s?(?=\{"id"\s?:\s?"c2")', reply)
    tokens = tokenize(reply)
    length = count = 0
    while length < end.start() + 1:
        length += len(tokens[count])
        count += 1
    return count


def _prompt_tokens(tokenize: Tokenize) -> dict[str, int]:
    """What the instructions cost, which providers hold in their prefix caches."""
    request, fence = sample()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as none:
        none.write("[]")
        none.flush()
        without = Prompts(LlmJudgeSettings(prompts=PromptFiles(examples=Path(none.name))))
    texts = {
        "instructions with examples": Prompts(LlmJudgeSettings()),
        "instructions without examples": without,
        "instructions, reasoning before": Prompts(LlmJudgeSettings(reasoning=Reasoning.BEFORE)),
        "instructions, decomposed": Prompts(LlmJudgeSettings(decompose=True)),
    }
    return {
        name: len(tokenize(prompts.build(request, fence).messages[0]["content"]))
        for name, prompts in texts.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Tokens that a judge's model writes, by the form of the reply."
    )
    parser.add_argument("--claims", type=int, default=8, help="claims of the answer (%(default)s)")
    parser.add_argument("--ms-per-token", type=float, default=8.0, help="of the model (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    name, tokenize = tokenizer()
    rows = []
    print(f"{options.claims} claims, {options.ms_per_token:g} ms a token, tokens by {name}\n")
    print(f"{'form of the reply':<46}{'tokens':>8}{'a claim':>9}{'all, ms':>9}{'first, ms':>11}")
    for form, reply in _replies(options.claims):
        tokens, first = len(tokenize(reply)), _first(reply, tokenize)
        row = {
            "form": form,
            "tokens": tokens,
            "tokens_per_claim": round(tokens / options.claims, 1),
            "all_ms": round(tokens * options.ms_per_token),
            "first_ms": round(first * options.ms_per_token),
        }
        rows.append(row)
        print(f"{form:<46}{tokens:>8}{row['tokens_per_claim']:>9}{row['all_ms']:>9}{row['first_ms']:>11}")
    prompts = _prompt_tokens(tokenize)
    print()
    for prompt, tokens in prompts.items():
        print(f"{prompt:<46}{tokens:>8}")
    if options.json:
        figures = {"tokenizer": name, "claims": options.claims, "replies": rows, "prompts": prompts}
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
