"""What a verdict says of the citations in its claim, from the answer to the events."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from guardrail import Context, Decision, Guard, Policy
from guardrail.claims import Citation
from guardrail.events import CitationBacking, ClaimVerdict, Finding
from guardrail.judges import Evidence, Judgement, JudgeRequest, Verdict
from guardrail.session.outputs import backing

V, B, D = Verdict, CitationBacking, Decision
HOURS, TOURS = "The museum is open from 10 to 18.", "Public guided tours last about 60 minutes."
CONTEXTS = [Context(id="kb-2213", text=HOURS), Context(id="kb-2214", text=TOURS, source="tours.pdf")]


class QuotingJudge:
    """Supports every claim by one sentence, and none that says "never"."""

    name = "quoting"

    def __init__(self, quote: str = TOURS) -> None:
        self._quote = quote

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        evidence = request.evidence.locate(self._quote)
        assert evidence is not None
        for claim_id, claim in request.claims.items():
            if "never" in claim.text:
                yield Judgement(claim_id, V.UNSUPPORTED, 0.9, 0.1, self.name)
            else:
                yield Judgement(claim_id, V.SUPPORTED, 0.9, 0.9, self.name, evidence=(evidence,))

    async def aclose(self) -> None:
        pass


async def claims_of(answer: str, policy: Policy | None = None) -> tuple[ClaimVerdict, ...]:
    async with Guard(judge=QuotingJudge(), policy=policy or Policy()) as guard:
        return (await guard.check("How long?", CONTEXTS, answer)).claims


@pytest.mark.parametrize(
    ("answer", "mark", "contexts", "worth"),
    [
        ("Guided tours last 60 minutes [kb-2214].", "[kb-2214]", ("kb-2214",), B.CITED),
        ("Guided tours last 60 minutes. [2]", "[2]", ("kb-2214",), B.CITED),
        ("Guided tours last 60 minutes. (Source: tours.pdf)", "(Source: tours.pdf)", ("kb-2214",), B.CITED),
        ("Guided tours last 60 minutes【1:0†source】.", "【1:0†source】", ("kb-2213",), B.OTHER),
        ("Guided tours last 60 minutes [7].", "[7]", (), B.OTHER),
        (
            "Guided tours last 60 minutes [2](https://elsewhere.example).",
            "[2](https://elsewhere.example)",
            (),
            B.OTHER,
        ),
        ("Guided tours never last 60 minutes [2].", "[2]", ("kb-2214",), B.NONE),
    ],
)
async def test_a_verdict_tells_what_its_claim_cites_and_what_that_is_worth(
    answer: str, mark: str, contexts: tuple[str, ...], worth: CitationBacking
) -> None:
    (claim,) = await claims_of(answer)
    (citation,) = claim.citations
    assert (citation.text, citation.contexts) == (mark, contexts)
    assert answer[slice(*citation.span)] == mark
    assert claim.citation_backing is worth
    assert (Finding.CITATION_ABSENT in claim.findings) is not bool(contexts)


async def test_a_number_that_links_to_what_a_text_names_is_a_citation_of_it() -> None:
    contexts = [*CONTEXTS, Context(id="more", text="See https://tours.example/more for the rest.")]
    async with Guard(judge=QuotingJudge()) as guard:
        answer = "Guided tours last 60 minutes [3](https://tours.example/more)."
        (claim,) = (await guard.check("How long?", contexts, answer)).claims
    assert [citation.contexts for citation in claim.citations] == [("more",)]
    assert claim.findings == ()


async def test_a_policy_can_act_on_a_citation_of_what_is_not_there() -> None:
    policy = Policy.model_validate({"rules": ["finding citation_absent: flag"]})
    async with Guard(judge=QuotingJudge(), policy=policy) as guard:
        decisions = [
            (await guard.check("How long?", CONTEXTS, f"Guided tours last 60 minutes {mark}.")).decision
            for mark in ("[1]", "[2][1]", "[2][9]", "[kb-3]", "")
        ]
    assert decisions == [D.RELEASE, D.RELEASE, D.FLAG, D.FLAG, D.RELEASE]


async def test_citations_are_placed_in_the_whole_answer() -> None:
    answer = "Guided tours last 60 minutes. [2] Tickets cost 4 euros [kb-2213]. It is open on Mondays."
    claims = await claims_of(answer)
    told = [[(answer[slice(*c.span)], c.contexts) for c in claim.citations] for claim in claims]
    assert told == [[("[2]", ("kb-2214",))], [("[kb-2213]", ("kb-2213",))], []]
    assert [claim.citation_backing for claim in claims] == [B.CITED, B.OTHER, None]


def test_what_citations_are_worth_by_the_judgement() -> None:
    cites = (Citation((0, 3), "[1]", ("a",)), Citation((4, 7), "[9]", ()))
    contexts = [Context(id=by, text=f"only {by}, and both") for by in "ab"]
    by_a, by_b = (Evidence(context_id=by, quote=f"only {by}", span=(0, 6)) for by in "ab")
    by_both = Evidence(context_id="b", quote="and both", span=(8, 16))

    def worth(verdict: Verdict, *evidence: Evidence) -> CitationBacking | None:
        return backing(Judgement("k", verdict, 0.9, 0.5, "test", evidence=evidence), cites, contexts, "")

    assert worth(V.SUPPORTED, by_b, by_a) is worth(V.PARTIALLY_SUPPORTED, by_a) is B.CITED
    assert worth(V.SUPPORTED, by_both) is B.CITED, "the cited context says the same"
    assert worth(V.SUPPORTED, by_b) is B.OTHER
    assert worth(V.CONTRADICTED, by_a) is worth(V.UNSUPPORTED) is B.NONE
    assert worth(V.UNVERIFIED) is worth(V.SUPPORTED) is B.UNKNOWN
    assert backing(Judgement("k", V.SUPPORTED, 0.9, 0.9, "test", evidence=(by_a,)), (), contexts, "") is None


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("Dogs are welcome [1], cats stay outside [2].", B.CITED),
        ("Dogs are welcome [1], cats stay outside [3].", B.OTHER),
        ("Dogs are welcome [1][3].", B.CITED),
        ("Dogs are welcome [3].", B.OTHER),
        ("Dogs are welcome.[^3]", B.UNKNOWN),
        ("[^3]: Dogs\n\nDogs are welcome.[^3]", B.CITED),
    ],
)
async def test_of_several_marks_the_worst_counts_and_of_footnotes_what_defines_them(
    text: str, worth: CitationBacking
) -> None:
    contexts = [
        Context(id="d", source="Dogs", text="Dogs are welcome."),
        Context(id="c", source="Cats", text="All cats stay outside."),
        Context(id="h", source="Hours", text="Doors open at 8."),
    ]
    async with Guard(judge=QuotingJudge("Dogs are welcome.")) as guard:
        verdict = await guard.check("Which animals?", contexts, text)
    assert [claim.citation_backing for claim in verdict.claims] == [worth]


@pytest.mark.parametrize("front", ["", "As stated in document 2, ", "According to kb-2214, "])
async def test_by_default_no_form_of_a_citation_stands_in_the_way_of_a_right_answer(front: str) -> None:
    marks = [
        "",
        " [kb-2214]",
        " [2]",
        "【2:0†source】",
        "【7:1†tours.pdf】",
        " (source: 2)",
        " [^2]",
        "<sup>2</sup>",
        "²",
    ]
    async with Guard() as guard:
        for mark in marks if not front else ["", " [2]"]:
            verdict = await guard.check(
                "?", CONTEXTS, f"{front}public guided tours last about 60 minutes{mark}."
            )
            (claim,) = verdict.claims
            assert (verdict.decision, claim.verdict) == (Decision.RELEASE, V.SUPPORTED), mark
            assert claim.citation_backing is (B.CITED if front or mark else None)


async def test_a_footnote_that_only_names_its_source_is_no_claim() -> None:
    claims = await claims_of(
        "Guided tours last 60 minutes.[^1]\n\n[^1]: tours.pdf\n[^2]: Tours cost 4 euros."
    )
    assert [claim.text for claim in claims] == ["Guided tours last 60 minutes.[^1]", "Tours cost 4 euros."]
