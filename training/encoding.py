"""Pairs of claim and premise -> the arrays that the verifier reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guardrail.judges.model import SpecialTokens


def encode(tokenizer: Any, pairs: Sequence[tuple[str, str]], max_tokens: int) -> dict[str, Any]:
    """``input_ids``, ``attention_mask``, ``token_type_ids``; int64 ``[pairs, longest]``, padded with 0.

    ``tokenizer`` is a ``tokenizers.Tokenizer`` without truncation and padding of its own. What is longer
    than ``max_tokens`` loses the end of its premise, and where the claim alone is longer, of the claim. A
    special token that stands in a text is text, as it is to the judge.
    """
    closing = tokenizer.num_special_tokens_to_add(True)
    special = SpecialTokens(tokenizer)
    rows = []
    for claim, premise in pairs:
        first = special.encode(claim)
        second = special.encode(premise)
        first.truncate(max_tokens - closing)
        second.truncate(max(0, max_tokens - closing - len(first.ids)))
        rows.append(tokenizer.post_process(first, second))
    shape = (len(rows), max((len(row.ids) for row in rows), default=0))
    arrays = {
        name: np.zeros(shape, dtype=np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for n, row in enumerate(rows):
        arrays["input_ids"][n, : len(row.ids)] = row.ids
        arrays["attention_mask"][n, : len(row.ids)] = 1
        arrays["token_type_ids"][n, : len(row.ids)] = row.type_ids
    return arrays
