"""Settings that published fact-checking models are to be used with: their prompt, labels and layout."""

from __future__ import annotations

from typing import Any, Final, Literal

PresetName = Literal[
    "hhem", "minicheck-flan-t5-large", "minicheck-roberta-large", "minicheck-deberta-v3-large"
]

_LABEL_1_SUPPORTS: Final = {"0": "unsupported", "1": "supported"}

PRESETS: Final[dict[str, dict[str, Any]]] = {
    # The prompt, and the use of the first token's two logits, are those of the model's own code; its
    # repository has no tokenizer and no configuration of the T5 encoder in it, so both come from the base.
    "hhem": {
        "model": "vectara/hallucination_evaluation_model",
        "tokenizer": "google/flan-t5-base",
        "architecture": "hhem",
        "template": "<pad> Determine if the hypothesis is true given the premise?\n\n"
        "Premise: {premise}\n\nHypothesis: {hypothesis}",
        "labels": _LABEL_1_SUPPORTS,
        "max_length": 512,
    },
    # Tang, Laban and Durrett, "MiniCheck", EMNLP 2024. The T5 writes "0" or "1"; its tokenizer takes "0"
    # apart into a word boundary (3) and the digit, so that the first token decides between 3 and 209.
    "minicheck-flan-t5-large": {
        "model": "lytang/MiniCheck-Flan-T5-Large",
        "architecture": "seq2seq",
        "template": "predict: {premise}</s>{hypothesis}",
        "labels": {"3": "unsupported", "209": "supported"},
        "max_length": 1024,
    },
    "minicheck-roberta-large": {
        "model": "lytang/MiniCheck-RoBERTa-Large",
        "template": "{premise}</s>{hypothesis}",
        "labels": _LABEL_1_SUPPORTS,
        "max_length": 512,
    },
    "minicheck-deberta-v3-large": {
        "model": "lytang/MiniCheck-DeBERTa-v3-Large",
        "template": "{premise}[SEP]{hypothesis}",
        "labels": _LABEL_1_SUPPORTS,
        "max_length": 512,
    },
}
"""Values of ``ClassifierSettings`` by preset; what the operator sets himself wins."""
