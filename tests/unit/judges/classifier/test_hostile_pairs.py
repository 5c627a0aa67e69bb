"""Whatever stands in contexts and claims: no special token gets through, nothing is cut, spans hold."""

from __future__ import annotations

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
from guardrail.judges.classifier.labels import Scores
from guardrail.judges.classifier.pairs import Pair, PairForm
from guardrail.judges.classifier.preparing import Prepared, Preparer
from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.classifier.verdicts import settle
from tests.unit.judges.classifier.tiny import SPECIAL, write_tokenizer

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
    settings = ClassifierSettings(
        max_length=96, template="premise : {premise} hypothesis : {hypothesis}" if templated else None
    )
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    form = PairForm(tokenizer, settings)
    index = EvidenceIndex([Context(id="d0", text=context)])
    request = JudgeRequest(
        "r", "", {"c0": Claim(0, 0, claim, 0, len(claim), Severity.NORMAL)}, index, time.monotonic() + 60
    )
    prepared = dict(Preparer(form, settings, "j").prepare(request, threading.Event()))["c0"]
    if not isinstance(prepared, Prepared):
        assert "too long" in prepared.reasoning
        return
    marks = {tokenizer.token_to_id(token) for token in SPECIAL} - {tokenizer.token_to_id("[UNK]")}
    expected = sum(number in marks for number in tokenizer.encode("a", "b").ids) if not templated else 2
    for pair, tokens in zip(prepared.pairs, form.encode(prepared.pairs), strict=True):
        assert len(tokens) <= settings.max_length
        assert sum(number in marks for number in tokens.ids) == expected
        assert len(pair.text) == len(context)
    covered = {at for window in prepared.windows for at in range(window.start, window.end)}
    starts, ends = form.offsets(form.plain(context))
    assert all(at in covered for start, end in zip(starts, ends, strict=True) for at in range(start, end))
    if prepared.windows:
        scores = [Scores(0.9, 0.0)] * len(prepared.windows)
        judgement = settle("c0", claim, prepared.windows, scores, index, settings, "j", "")
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
