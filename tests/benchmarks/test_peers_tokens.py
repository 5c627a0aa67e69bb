from __future__ import annotations

import pytest

from benchmarks.peers_answers import load, pieces
from benchmarks.peers_endpoint import Pace, prompt_tokens
from benchmarks.peers_tokens import PrefixCache


def test_pieces_join_to_the_text() -> None:
    text = 'Größe: 1,250 €; "c1"\n\n  – naïve snake_case 日本'
    assert "".join(pieces(text)) == text


def test_only_full_steps_of_a_common_prefix_are_cached() -> None:
    cache = PrefixCache(minimum=8, step=4)
    prompt = [str(number) for number in range(20)]
    assert cache.cached(prompt) == 0
    cache.add(prompt)
    assert cache.cached(prompt) == 20
    assert cache.cached([*prompt[:13], "other", *prompt[14:]]) == 12
    assert cache.cached(prompt[:11]) == 8
    assert cache.cached(prompt[:7]) == 0, "shorter than the minimum"
    assert cache.cached(["other", *prompt[1:]]) == 0, "the same later on is no prefix"


def test_a_prefix_is_told_from_other_tokens_of_the_same_text() -> None:
    cache = PrefixCache(minimum=2, step=2)
    cache.add(["ab", "c"])
    assert cache.cached(["a", "bc"]) == 0


@pytest.mark.parametrize(("minimum", "step"), [(-1, 4), (8, 0)])
def test_a_cache_needs_sensible_bounds(minimum: int, step: int) -> None:
    with pytest.raises(ValueError, match="give a minimum"):
        PrefixCache(minimum, step)


def test_tokens_come_out_at_their_time() -> None:
    pace = Pace(ttft_s=0.35, token_s=0.008)
    assert pace.ready(0.349, 10) == 0
    assert pace.ready(pace.due(0), 10) == 1
    assert pace.ready(pace.due(4), 10) == 5
    assert pace.ready(99.0, 10) == 10, "never more than there are"
    assert pace.due(10) == pytest.approx(0.43), "the end: time to first token, and that of all tokens"


def test_without_a_time_per_token_all_come_at_once() -> None:
    assert Pace(ttft_s=0.1, token_s=0.0).ready(0.1, 7) == 7


def test_schemas_are_read_before_the_messages() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "response_format": {"type": "json_object"}}
    tokens = prompt_tokens(body, pieces)
    assert "".join(tokens).startswith('{"type": "json_object"}')
    assert tokens[-1] == "Hello"


def test_every_answer_has_eight_claims_and_an_error_and_evidence() -> None:
    cases = load()
    assert len(cases) == 20
    for case in cases:
        assert len(case.claims) == 8
        assert 1 <= sum(claim.bad for claim in case.claims) <= 2
        assert 350 <= sum(len(context.split()) for context in case.contexts) <= 800
        for claim in case.claims:
            assert (claim.verdict == "UNSUPPORTED") == (not claim.evidence)
            assert any(claim.evidence in context for context in case.contexts)


def test_a_copy_differs_from_the_first_words_of_its_documents_on() -> None:
    case = load()[0]
    one, other = case.copy(1), case.copy(2)
    assert one.id != other.id
    assert all(a.split()[1] != b.split()[1] for a, b in zip(one.contexts, other.contexts, strict=True))
    assert one.answer == other.answer == case.answer
