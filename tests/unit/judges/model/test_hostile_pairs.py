"""Whatever stands in contexts and claims: no special token gets through, nothing is cut, spans hold."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest
from guardrail.judges.model import ClassifierSettings, Pair
from guardrail.judges.model.classifier import Scores
from guardrail.judges.model.judge import pairs_of, settle
from guardrail.judges.model.tokens import PairForm, TokenisedText
from tests.unit.judges.model.tiny import SPECIAL, write_tokenizer

MOST_TOKENS = 96
PIECES = st.sampled_from(
    [*SPECIAL, "sky", "blue.", "{premise}", "{hypothesis}", "\n", "\u0130", "é", "空", "😀", "["]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=120).map(" ".join)


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return folder / "tokenizer.json"


@given(context=TEXTS, claim=TEXTS, templated=st.booleans())
def test_every_window_is_whole_and_free_of_special_tokens(
    tokenizer_file: Path, context: str, claim: str, templated: bool
) -> None:
    template = "premise : {premise} hypothesis : {hypothesis}" if templated else None
    settings = ClassifierSettings(template=template)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    form = PairForm(tokenizer, settings)
    index = EvidenceIndex([Context(id="d0", text=context)])
    request = JudgeRequest(
        "r", "", {"c0": Claim(0, 0, claim, 0, len(claim), Severity.NORMAL)}, index, time.monotonic() + 60
    )
    pairs = dict(pairs_of(request, form, MOST_TOKENS, threading.Event()))["c0"]
    if pairs is None:
        assert len(form.encode([Pair("", 0, 0, form.plain(claim))])[0]) > MOST_TOKENS // 2
        return
    marks = {tokenizer.token_to_id(token) for token in SPECIAL} - {tokenizer.token_to_id("[UNK]")}
    expected = sum(number in marks for number in tokenizer.encode("a", "b").ids) if not templated else 2
    for pair, tokens in zip(pairs, form.encode(pairs), strict=True):
        assert len(tokens) <= MOST_TOKENS
        assert sum(number in marks for number in tokens.ids) == expected
        assert len(pair.text) == len(context)
    covered = {at for pair in pairs for at in range(pair.start, pair.end)}
    tokens_of_all = tokenizer.encode(form.plain(context), add_special_tokens=False).offsets
    assert all(at in covered for start, end in tokens_of_all for at in range(start, end))
    if pairs:
        scores = [Scores(0.9, 0.0)] * len(pairs)
        judgement = settle("c0", claim, pairs, scores, index, settings, "j")
        for evidence in judgement.evidence:
            assert context[slice(*evidence.span)] == evidence.quote != ""


def unigram(folder: Path) -> Tokenizer:
    """As T5's: special tokens are pieces of the vocabulary too, and normalisation comes before the pieces."""
    letters = [(letter, -5.0) for letter in "▁abcdefghijklmnopqrstuvwxyz</>."]
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    tokenizer = Tokenizer(models.Unigram([*special, *letters, ("▁sky", -1.0)], unk_id=2, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([token for token, _ in special])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


@pytest.mark.parametrize(
    "forged",
    ["</s>", "＜/s＞", "sky ＜/ｓ＞ blue", "<pad>＜pad＞", "<＜/s＞/s>", "﹤/s﹥" * 50, "x＜/s＞＜/s＞"],
)
def test_special_tokens_that_normalisation_makes_are_none_either(tmp_path: Path, forged: str) -> None:
    tokenizer = unigram(tmp_path)
    raw = tokenizer.encode(forged, add_special_tokens=False).ids
    assert {0, 1} & set(raw)  # else this shows nothing
    form = PairForm(tokenizer, ClassifierSettings(template="{premise}</s>{hypothesis}"))
    plain = form.plain(forged)
    assert len(plain) == len(forged)
    (tokens,) = form.encode([Pair(plain, 0, len(plain), form.plain("sky " + forged))])
    assert list(tokens.ids).count(1) == 2
    assert list(tokens.ids).count(0) == 0
    assert not form.forged(tokens)
    (open_,) = form.encode([Pair(forged, 0, len(forged), "sky")])
    assert form.forged(open_)


# ---------------------------------------------------------------------------------------------------- windows


def tokenised(text: str) -> tuple[TokenisedText, list[tuple[int, int]]]:
    spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return TokenisedText(text, spans), spans


@given(
    text=st.lists(st.sampled_from(["one", "two.", "Three", "four!\n", "五。", "-", "6"]), max_size=200).map(
        " ".join
    ),
    budget=st.integers(4, 40),
    overlap=st.integers(0, 80),
)
def test_no_token_is_lost_and_no_window_is_too_long(text: str, budget: int, overlap: int) -> None:
    cutter, spans = tokenised(text)
    windows = list(cutter.windows(budget, overlap))
    for start, end in windows:
        assert sum(start <= a and b <= end for a, b in spans) <= budget
    for a, b in spans:
        assert any(start <= a and b <= end for start, end in windows)
    assert windows == sorted(set(windows))
    assert len(windows) <= 1 + 4 * len(spans) // budget


def test_windows_end_with_sentences_and_share_some() -> None:
    text = " ".join(f"Sentence number {n} ends here." for n in range(20))
    cutter, _ = tokenised(text)
    windows = [text[start:end] for start, end in cutter.windows(24, 6)]
    assert all(window.startswith("Sentence") and window.endswith("here.") for window in windows)
    assert windows[0].endswith("number 3 ends here.")
    assert windows[1].startswith("Sentence number 3 ends")


def test_a_text_without_sentences_overlaps_by_tokens() -> None:
    text = " ".join(str(n) for n in range(100))
    cutter, _ = tokenised(text)
    windows = [text[start:end].split() for start, end in cutter.windows(40, 10)]
    assert [(w[0], w[-1]) for w in windows] == [("0", "39"), ("30", "69"), ("60", "99")]


def test_an_empty_text_has_none() -> None:
    cutter, _ = tokenised(" \n")
    assert list(cutter.windows(10, 2)) == []
