"""The cascade: who is asked what, what stands at once, and what a claim gets that could not be checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail.errors import JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.events import Finding, Severity
from guardrail.judges import Evidence, GatheringJudge, Judgement, JudgeRequest, Usage, Verdict
from guardrail.judges.cascade import DEFAULT_BANDS, Band, CascadeJudge, CascadeSettings
from guardrail.verdicts import checked_in_part
from tests.support.constants import made
from tests.support.judges import reply_of
from tests.unit.judges.doubles import ScriptedJudge, judgement, request

S, P, N, X, U = (
    Verdict.SUPPORTED,
    Verdict.PARTIALLY_SUPPORTED,
    Verdict.UNSUPPORTED,
    Verdict.CONTRADICTED,
    Verdict.UNVERIFIED,
)
MINOR, NORMAL, MAJOR, CRITICAL = Severity.MINOR, Severity.NORMAL, Severity.MAJOR, Severity.CRITICAL
LLM = "llm:m"


def local(verdict: Verdict, support: float | None, confidence: float = 0.9) -> Judgement:
    return judgement(verdict=verdict, support=support, confidence=confidence, judge="local")


SURE, UNSURE = local(S, 0.99), local(S, 0.7)


def cascade(
    first: ScriptedJudge | dict[str, Any], second: ScriptedJudge | dict[str, Any], **settings: Any
) -> tuple[CascadeJudge, ScriptedJudge]:
    """With one band for all severities unless bands are given, and no time kept back."""
    one = first if isinstance(first, ScriptedJudge) else ScriptedJudge(first, name="local", usage=Usage())
    two = second if isinstance(second, ScriptedJudge) else ScriptedJudge(second)
    band = made(Band, accept_support=0.9, reject_support=0.1)
    values = {"bands": dict.fromkeys(Severity, band), "reserve_ms": 0, "least_call_ms": 0, **settings}
    return CascadeJudge(one, two, made(CascadeSettings, **values)), two


async def test_words_without_support_are_those_of_the_judge_whose_verdict_it_is() -> None:
    marked = replace(local(N, 0.05), unsupported_spans=((0, 1),))
    unsure = replace(local(N, 0.5), unsupported_spans=((0, 1),))
    second = replace(judgement(verdict=X, support=0.1), unsupported_spans=((2, 3),))
    judge, _ = cascade(
        {"a b": marked, "b c": unsure, "c d": unsure}, {"b c": second, "c d": replace(second, confidence=7.0)}
    )
    found = (await reply_of(judge, request("a b", "b c", "c d"))).judgements
    assert [(each.judge, each.unsupported_spans) for each in found] == [
        ("local", ((0, 1),)),
        (LLM, ((2, 3),)),
        ("local", ((0, 1),)),  # the second's verdict makes no sense, so that the first's stands in
    ]


@pytest.mark.parametrize(
    ("said", "severity", "goes_on"),
    [
        (local(S, 0.90), NORMAL, False),
        (local(S, 0.89), NORMAL, True),
        (local(N, 0.10), NORMAL, False),
        (local(N, 0.11), NORMAL, True),
        (local(N, 0.95), NORMAL, True),  # whatever it says, the probability says the opposite
        (local(S, 0.05), NORMAL, True),
        (local(P, 0.50), NORMAL, True),
        (local(P, 0.05), NORMAL, False),
        (local(X, 0.05), MAJOR, False),
        (local(X, 0.20), MAJOR, True),
        (local(X, 0.00, confidence=1.0), CRITICAL, True),  # to be confirmed, however sure
        (local(U, None, confidence=0.0), MINOR, True),
        (replace(local(U, None, confidence=0.0), support=1.0), MINOR, True),
    ],
)
async def test_what_lies_between_the_limits_goes_on(
    said: Judgement, severity: Severity, goes_on: bool
) -> None:
    judge, second = cascade({"a": said}, {"a": N})
    reply = await reply_of(judge, request("a", severities=[severity]))
    assert second.asked == ([["a"]] if goes_on else [])
    (found,) = reply.judgements
    assert (found.judge, found.degraded_from) == (LLM if goes_on else "local", ())


@pytest.mark.parametrize(("severity", "goes_on"), [(MINOR, 0), (NORMAL, 0), (MAJOR, 0), (CRITICAL, 1)])
async def test_by_default_a_graver_claim_needs_more_certainty(severity: Severity, goes_on: int) -> None:
    judge, second = cascade({"a": local(S, 0.95)}, {"a": S}, bands={})
    await reply_of(judge, request("a", severities=[severity]))
    assert len(second.asked) == goes_on


async def test_the_open_claims_go_on_in_one_call_and_all_come_back_in_order() -> None:
    judge, second = cascade(
        {"a": UNSURE, "b": SURE, "c": UNSURE, "d": local(N, 0.02)}, {"a": X, "c": S, "b": X}
    )
    sent = request("a", "b", "c", "d")
    reply = await reply_of(judge, sent)
    assert second.asked == [["a", "c"]]
    assert [(j.claim_id, j.verdict, j.judge) for j in reply.judgements] == [
        ("k0", X, LLM),
        ("k1", S, "local"),
        ("k2", S, LLM),
        ("k3", N, "local"),
    ]
    assert reply.usage == second.usage
    kept = {"question", "evidence", "response_id", "generator_model", "tenant"}
    assert all(getattr(second.requests[0], name) == getattr(sent, name) for name in kept)


async def test_what_is_settled_is_told_before_the_second_judge_has_answered() -> None:
    gate = asyncio.Event()
    heard: list[tuple[str, str]] = []
    second = ScriptedJudge({"b": S, "c": N}, gate=gate, early=["b"])
    judge, _ = cascade({"a": SURE, "b": UNSURE, "c": UNSURE}, second)
    running = asyncio.create_task(
        reply_of(judge, request("a", "b", "c"), lambda j: heard.append((j.claim_id, j.judge)))
    )
    await second.started.wait()
    await asyncio.sleep(0)
    assert heard == [("k0", "local"), ("k1", LLM)]
    gate.set()
    await running
    assert heard == [("k0", "local"), ("k1", LLM), ("k2", LLM)]


async def test_what_the_first_judge_tells_early_is_passed_on_only_if_it_settles_the_claim() -> None:
    gate = asyncio.Event()
    heard: list[str] = []
    first = ScriptedJudge({"a": SURE, "b": UNSURE}, name="local", gate=gate, early=["a", "b"])
    judge, _ = cascade(first, {"b": N})
    running = asyncio.create_task(reply_of(judge, request("a", "b"), lambda j: heard.append(j.claim_id)))
    await first.started.wait()
    assert heard == ["k0"]
    gate.set()
    assert [j.verdict for j in (await running).judgements] == [S, N]


async def test_the_first_verdict_on_a_claim_stands_whatever_follows() -> None:
    class Changing(ScriptedJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            yield judgement("k0", X, 0.0)
            async for each in super().judge(request):
                yield each

    judge, _ = cascade({"a": UNSURE}, Changing({"a": S}))
    assert [j.verdict for j in (await reply_of(judge, request("a"))).judgements] == [X]


class TestSecondJudgeMissing:
    """ "Could not check" never becomes "fine": the first verdict stands with its own support, and says so."""

    @pytest.mark.parametrize(
        ("second", "why"),
        [
            (ScriptedJudge(error=JudgeUnavailable("the server is busy")), "llm:m: the server is busy"),
            (ScriptedJudge(error=JudgeReplyError("no JSON")), "llm:m: no JSON"),
            (ScriptedJudge(error=RuntimeError("a bug with SECRET text")), "llm:m: RuntimeError in the judge"),
            (ScriptedJudge({}), "llm:m: left out of the reply"),
            (
                ScriptedJudge({"a": judgement(verdict=U, support=None)}),
                "llm:m: could not verify this claim",
            ),
            (
                ScriptedJudge({"a": replace(judgement(), support=7.0)}),
                "llm:m: the judge's verdict on this claim is unusable",
            ),
        ],
    )
    async def test_the_first_verdict_stands_and_names_what_is_missing(
        self, second: ScriptedJudge, why: str
    ) -> None:
        judge, _ = cascade({"a": UNSURE}, second)
        (found,) = (await reply_of(judge, request("a", severities=[CRITICAL]))).judgements
        assert found == replace(UNSURE, claim_id="k0", degraded_from=(why,), attempts=2)

    async def test_a_contradiction_is_not_lifted_by_a_judge_that_does_not_answer(self) -> None:
        judge, _ = cascade({"a": local(X, 0.05)}, ScriptedJudge(error=JudgeUnavailable("down")))
        (found,) = (await reply_of(judge, request("a", severities=[CRITICAL]))).judgements
        assert (found.verdict, found.judge, found.degraded_from) == (X, "local", ("llm:m: down",))

    async def test_by_configuration_grave_claims_become_unverified_and_others_not(self) -> None:
        judge, _ = cascade(
            {"a": UNSURE, "b": UNSURE},
            ScriptedJudge(error=JudgeUnavailable("down")),
            on_unavailable={"critical": "unverified"},
        )
        reply = await reply_of(judge, request("a", "b", severities=[CRITICAL, MAJOR]))
        assert [(j.verdict, j.support) for j in reply.judgements] == [(U, None), (S, 0.7)]
        assert {j.degraded_from for j in reply.judgements} == {("llm:m: down",)}
        assert reply.judgements[0].judge == LLM

    async def test_one_word_holds_for_all_severities(self) -> None:
        judge, _ = cascade({"a": UNSURE}, {}, on_unavailable="unverified")
        (found,) = (await reply_of(judge, request("a", severities=[MINOR]))).judgements
        assert found.verdict is U

    @pytest.mark.parametrize("said", [{"a": local(U, None, 0.0)}, {}])
    async def test_who_was_asked_in_its_stead_is_the_one_that_is_named(self, said: dict[str, Any]) -> None:
        stood_in = replace(
            judgement(verdict=U, support=None, judge="llm:other"),
            reasoning="down",
            degraded_from=("llm:m: not asked",),
        )
        judge, _ = cascade(said, {"a": stood_in})
        (found,) = (await reply_of(judge, request("a"))).judgements
        assert found.judge == "llm:other"
        assert found.degraded_from[-2:] == ("llm:m: not asked", "llm:other: down")

    @pytest.mark.parametrize("said", [{"a": local(U, None, 0.0)}, {}])
    async def test_where_neither_could_check_it_is_unverified_and_both_are_named(
        self, said: dict[str, Any]
    ) -> None:
        judge, _ = cascade(said, ScriptedJudge(error=JudgeUnavailable("down")))
        (found,) = (await reply_of(judge, request("a"))).judgements
        assert (found.verdict, found.support) == (U, None)
        assert [name.split(":")[0] for name in found.degraded_from] == ["local", "llm"]

    @pytest.mark.parametrize("on_unavailable", ["local", "unverified"])
    @pytest.mark.parametrize(
        ("first", "open_"),
        [({"a": UNSURE}, True), (ScriptedJudge(name="local", error=RuntimeError()), False)],
    )
    async def test_a_refusal_leaves_open_only_what_the_first_has_judged(
        self, first: ScriptedJudge | dict[str, Any], open_: bool, on_unavailable: str
    ) -> None:
        refusing = ScriptedJudge(error=JudgeRefused("no"))
        judge, _ = cascade(first, refusing, on_unavailable=on_unavailable)
        (found,) = (await reply_of(judge, request("a"))).judgements
        assert found.verdict is (S if open_ and on_unavailable == "local" else U)
        assert found.findings == ((Finding.JUDGE_REFUSED,) if open_ else ())
        assert found.unanswered is not open_

    @pytest.mark.parametrize("on_unavailable", ["local", "unverified"])
    @pytest.mark.parametrize("finding", [Finding.JUDGE_REFUSED, Finding.JUDGE_UNCLEAR])
    async def test_what_the_second_leaves_open_on_purpose_stays_open(
        self, finding: Finding, on_unavailable: str
    ) -> None:
        declined = replace(local(U, None, 0.0), findings=(finding,), judge="decisions:m")
        first = {"a": replace(UNSURE, findings=(Finding.FIGURE_ABSENT,)), "b": UNSURE}
        judge, _ = cascade(first, {"a": declined, "b": S}, on_unavailable=on_unavailable)
        found, other = (await reply_of(judge, request("a", "b"))).judgements
        assert found.verdict is (S if on_unavailable == "local" else U)
        assert finding in found.findings
        assert (Finding.FIGURE_ABSENT in found.findings) is (on_unavailable == "local")
        assert not found.unanswered
        assert other.findings == ()

    @pytest.mark.parametrize("error", [JudgeUnavailable("no"), RuntimeError("bug")])
    async def test_when_the_first_fails_the_second_gets_all(self, error: Exception) -> None:
        judge, second = cascade(ScriptedJudge(name="local", error=error), {"a": S, "b": N})
        reply = await reply_of(judge, request("a", "b"))
        assert second.asked == [["a", "b"]]
        assert [(j.verdict, j.judge) for j in reply.judgements] == [(S, LLM), (N, LLM)]

    async def test_what_came_before_the_failure_stands(self) -> None:
        second = ScriptedJudge({"a": N, "b": N}, early=["a"], error=JudgeUnavailable("cut off"))
        judge, _ = cascade({"a": UNSURE, "b": UNSURE}, second)
        reply = await reply_of(judge, request("a", "b"))
        assert [(j.verdict, j.judge) for j in reply.judgements] == [(N, LLM), (S, "local")]

    async def test_what_the_failed_calls_took_is_counted(self) -> None:
        taken = Usage(judge_calls=3, input_tokens=300)
        judge, _ = cascade({"a": UNSURE}, ScriptedJudge(error=JudgeUnavailable("no"), usage=taken))
        reply = await reply_of(judge, request("a"))
        assert reply.usage.input_tokens == 300
        assert reply.judgements[0].attempts == 4

    async def test_a_hostile_reason_can_not_flood_or_forge(self) -> None:
        judge, _ = cascade({"a": UNSURE}, ScriptedJudge(error=JudgeUnavailable("\x1b[2J\n" + "x" * 9999)))
        (line,) = (await reply_of(judge, request("a"))).judgements[0].degraded_from
        assert line.isprintable()
        assert len(line) <= 200


class TestDeadline:
    async def test_the_second_judge_is_told_to_be_done_before_the_reserve(self) -> None:
        judge, second = cascade({"a": UNSURE}, {"a": S}, reserve_ms=5_000)
        sent = request("a", seconds=60)
        await reply_of(judge, sent)
        assert second.requests[0].deadline == pytest.approx(sent.deadline - 5)

    async def test_with_too_little_time_it_is_not_asked(self) -> None:
        judge, second = cascade({"a": UNSURE}, {"a": N}, reserve_ms=30_000, least_call_ms=60_000)
        (found,) = (await reply_of(judge, request("a", seconds=60))).judgements
        assert (second.asked, found.verdict, found.attempts) == ([], S, 1)
        assert found.degraded_from == ("llm:m: not asked: too little time was left",)

    async def test_a_second_judge_that_keeps_no_deadline_is_given_up_and_cancelled(self) -> None:
        second = ScriptedJudge({"a": N, "b": N}, gate=asyncio.Event(), early=["b"])
        judge, _ = cascade({"a": UNSURE, "b": UNSURE}, second, reserve_ms=59_950)
        sent = request("a", "b", seconds=60)
        reply = await reply_of(judge, sent)
        assert time.monotonic() < sent.deadline
        assert [j.verdict for j in reply.judgements] == [S, N]
        assert reply.judgements[0].degraded_from == ("llm:m: late",)
        assert second.cancelled == 1

    async def test_a_second_judge_that_ends_at_its_deadline_is_heard_out(self) -> None:
        """What it took is booked, and its own reason told."""

        class Punctual(ScriptedJudge):
            async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
                await asyncio.sleep(request.deadline - time.monotonic())
                request.meter.add(Usage(judge_calls=1, input_tokens=7))
                if request.claims:
                    raise JudgeUnavailable("no verdict within the deadline, 1 call made")
                async for each in super().judge(request):
                    yield each

        judge, _ = cascade({"a": UNSURE}, Punctual(), reserve_ms=59_900)
        reply = await reply_of(judge, request("a", seconds=60))
        assert reply.judgements[0].degraded_from == ("llm:m: no verdict within the deadline, 1 call made",)
        assert reply.usage.input_tokens == 7

    async def test_cancelling_the_request_cancels_the_call(self) -> None:
        second = ScriptedJudge({}, gate=asyncio.Event())
        judge, _ = cascade({"a": UNSURE}, second)
        running = asyncio.create_task(reply_of(judge, request("a")))
        await second.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert second.cancelled == 1


class TestCriticalContradictions:
    @pytest.mark.parametrize("says", [S, X, N])
    async def test_confirm_lets_the_second_judge_confirm_or_lift_it(self, says: Verdict) -> None:
        heard: list[Verdict] = []
        judge, _ = cascade({"a": local(X, 0.0, 0.99)}, {"a": says})
        asked = request("a", severities=[CRITICAL])
        (found,) = (await reply_of(judge, asked, lambda j: heard.append(j.verdict))).judgements
        assert (found.verdict, heard) == (says, [says])


class TestFindings:
    FOUND = (Finding.FIGURE_CONFLICT,)

    @pytest.mark.parametrize(
        ("quote", "lifted"),
        [
            ("A day pass is 12 euros.", True),
            ("A day pass is <b>1</b>2 euros.", True),
            ("A day pass is 15 euros.", False),  # the sentence that is in conflict
            ("Lockers are free.", False),
            (None, False),
        ],
    )
    async def test_only_a_judge_that_quotes_where_the_figure_stands_lifts_them(
        self, quote: str | None, lifted: bool
    ) -> None:
        proof = () if quote is None else (Evidence(context_id="c1", quote=quote, span=(0, len(quote))),)
        says = Judgement("a", S, 0.9, 0.9, "llm", evidence=proof)
        own = replace(local(X, 0.3, 0.6), findings=self.FOUND, unsupported_spans=((14, 22),))
        text = "A day pass is 12 euros from 2 May."
        judge, _ = cascade({text: own}, {text: says})
        (found,) = (await reply_of(judge, request(text))).judgements
        assert (found.verdict, found.findings) == (S, () if lifted else self.FOUND)

    async def test_that_contexts_disagree_stays_said_whatever_the_second_judge_quotes(self) -> None:
        quote = "A day pass is 12 euros."
        proof = (Evidence(context_id="c1", quote=quote, span=(0, len(quote))),)
        own = replace(
            local(X, 0.3, 0.6), findings=(Finding.CONTEXTS_DISAGREE,), conflicting_contexts=("c1", "c2")
        )
        text = "A day pass is 12 euros."
        judge, _ = cascade({text: own}, {text: Judgement("a", S, 0.9, 0.9, "llm", evidence=proof)})
        (found,) = (await reply_of(judge, request(text))).judgements
        assert (found.verdict, found.findings) == (S, (Finding.CONTEXTS_DISAGREE,))
        assert found.conflicting_contexts == ("c1", "c2")

    async def test_a_quote_that_may_be_read_either_way_lifts_nothing(self) -> None:
        quote = "A day pass is 1.200 yen."
        proof = (Evidence(context_id="c1", quote=quote, span=(0, len(quote))),)
        text = "A day pass is 1,200 yen."
        own = {text: replace(local(X, 0.3, 0.6), findings=(Finding.FIGURE_AMBIGUOUS,))}
        judge, _ = cascade(own, {text: Judgement("a", S, 0.9, 0.9, "llm", evidence=proof)})
        (found,) = (await reply_of(judge, request(text))).judgements
        assert found.findings == (Finding.FIGURE_AMBIGUOUS,)

    async def test_what_the_first_judge_leaves_open_goes_on_and_is_settled_by_the_second(self) -> None:
        left_open = replace(local(U, None, 0.0), findings=(Finding.CALCULATION_UNCHECKED,))
        judge, _ = cascade({"a": left_open, "b": left_open}, {"a": S})
        settled, kept = (await reply_of(judge, request("a", "b"))).judgements
        assert (settled.verdict, settled.findings) == (S, ())
        assert (kept.verdict, kept.findings) == (U, left_open.findings)
        assert kept.degraded_from
        assert not kept.unanswered

    async def test_that_a_claim_was_checked_in_part_is_not_said_of_the_second_judges_verdict(self) -> None:
        judge, _ = cascade({"a": checked_in_part(replace(local(S, 0.9), degraded_from=("x",)))}, {"a": S})
        (found,) = (await reply_of(judge, request("a"))).judgements
        assert (found.verdict, found.findings) == (S, ())


@pytest.mark.parametrize(("confidence", "stands"), [(0.45, N), (0.9, S)])
async def test_an_unsure_support_without_a_quote_is_worth_less_than_the_first_judges_verdict(
    confidence: float, stands: Verdict
) -> None:
    judge, _ = cascade({"a": local(N, 0.3)}, {"a": Judgement("a", S, confidence, 0.7, "llm")})
    (found,) = (await reply_of(judge, request("a"))).judgements
    assert found.verdict is stands
    assert [told.partition(":")[0] for told in found.degraded_from] == ([] if stands is S else ["llm"])


async def test_closing_closes_both_also_when_one_fails() -> None:
    class Failing(ScriptedJudge):
        async def aclose(self) -> None:
            raise RuntimeError("no")

    judge, second = cascade(Failing(name="local"), {})
    with pytest.raises(RuntimeError):
        await judge.aclose()
    assert second.closed


class TestSettings:
    def test_a_band_that_is_given_in_part_keeps_the_rest_of_the_default(self) -> None:
        settings = CascadeSettings.model_validate({"bands": {"critical": {"accept_support": 0.97}}})
        assert settings.bands[CRITICAL] == Band(accept_support=0.97)
        assert settings.bands[MINOR] == DEFAULT_BANDS[MINOR]

    def test_bands_narrow_from_chatter_to_what_is_critical(self) -> None:
        accepts = [DEFAULT_BANDS[severity].accept_support for severity in Severity]
        assert accepts == sorted(accepts)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"bands": {"critical": {"accept_support": 1.5}}}, "less than or equal to 1"),
            ({"bands": {"grave": {"accept_support": 0.5}}}, "critical"),
            ({"bands": {"critical": 0.5}}, "Band"),
            ({"first": "hhem", "second": "hhem"}, "name two different judges"),
            ({"on_unavailable": "fine"}, "unverified"),
            ({"on_unavailable": {"minor": "supported"}}, "unverified"),
        ],
    )
    def test_what_is_wrong_is_told(self, wrong: dict[str, Any], said: str) -> None:
        with pytest.raises(ValidationError, match=said):
            CascadeSettings.model_validate(wrong)


class Hurried(ScriptedJudge):
    """Sees what it is hurried with in part only."""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            if request.turn_within_s is not None:
                each = replace(each, support=0.95, degraded_from=("in part",))
            yield each


class ScriptedGathering:
    """Lets claims be put off unless they are urgent or it is ``over``; remembers what it was asked."""

    def __init__(self, known: dict[str, Judgement], *, over: bool) -> None:
        self.known = known
        self.over = over
        self.urgent: bool | None = None
        self.went = False
        self.later: list[Judgement] = []

    def may_defer(self) -> bool:
        return not self.over

    def defer(self, judgements: Sequence[Judgement], *, urgent: bool = False) -> bool:
        self.urgent = urgent
        self.went = self.over or urgent
        self.later = [] if self.went else list(judgements)
        return not self.went


class TestGathering:
    """Open claims wait for others to go to the second judge with."""

    def ask(
        self, *texts: str, known: dict[str, Judgement] | None = None, over: bool = False, **fields: Any
    ) -> tuple[JudgeRequest, ScriptedGathering]:
        """A request whose claims may be put off unless they are urgent or it is ``over``."""
        gathering = ScriptedGathering(known or {}, over=over)
        return replace(request(*texts, **fields), gathering=gathering), gathering

    async def test_open_claims_are_put_off_with_what_is_known_and_settled_ones_stand(self) -> None:
        judge, second = cascade({"a": SURE, "b": UNSURE}, {"b": X})
        heard: list[Judgement] = []
        sent, gathering = self.ask("a", "b")
        reply = await reply_of(judge, sent, heard.append)
        assert [(each.claim_id, each.judge) for each in reply.judgements] == [("k0", "local")]
        assert [(each.claim_id, each.support) for each in gathering.later] == [("k1", UNSURE.support)]
        assert heard == list(reply.judgements)
        assert not second.asked
        assert not gathering.went

    async def test_the_first_is_not_asked_again_about_what_was_put_off(self) -> None:
        first = ScriptedJudge({"a": UNSURE, "b": UNSURE, "c": SURE}, name="local", usage=Usage())
        judge, second = cascade(first, {"a": X, "b": S})
        sent, gathering = self.ask("a")
        await reply_of(judge, sent)
        (known,) = gathering.later
        sent, gathering = self.ask("a", "b", "c", known={"k0": known}, over=True)
        reply = await reply_of(judge, sent)
        assert first.asked == [["a"], ["b", "c"]]
        assert second.asked == [["a", "b"]]
        assert gathering.went
        assert not gathering.later
        assert [(j.verdict, j.judge) for j in reply.judgements] == [(X, LLM), (S, LLM), (S, "local")]

    @pytest.mark.parametrize(
        ("said", "urgent"),
        [(local(S, 0.7), False), (local(P, 0.5), False), (local(N, 0.49), True), (local(X, 0.2), True)],
    )
    async def test_a_claim_that_the_first_doubts_does_not_wait(self, said: Judgement, urgent: bool) -> None:
        judge, second = cascade({"a": said}, {"a": N})
        sent, gathering = self.ask("a")
        await reply_of(judge, sent)
        assert gathering.urgent is urgent
        assert second.asked == ([["a"]] if urgent else [])
        assert gathering.went is urgent
        assert bool(gathering.later) is not urgent

    async def test_nor_does_one_that_the_first_could_not_judge_for_that_reason_alone(self) -> None:
        first = ScriptedJudge(name="local", error=JudgeUnavailable("busy"))
        judge, second = cascade(first, {"a": S})
        sent, gathering = self.ask("a")
        await reply_of(judge, sent)
        (known,) = gathering.later
        assert (gathering.urgent, known.verdict, second.asked) == (False, U, [])

    async def test_when_many_have_gathered_they_go(self) -> None:
        judge, second = cascade(dict.fromkeys("abcd", UNSURE), dict.fromkeys("abcd", S))
        sent, gathering = self.ask("a", "b", "c")
        await reply_of(judge, sent)
        known = {each.claim_id: each for each in gathering.later}
        assert second.asked == []
        sent, gathering = self.ask("a", "b", "c", "d", known=known)
        await reply_of(judge, sent)
        assert second.asked == [["a", "b", "c", "d"]]
        assert not gathering.later

    async def test_the_first_is_hurried_where_text_is_coming_or_others_go_anyway(self) -> None:
        first = ScriptedJudge({"a": SURE}, name="local", usage=Usage())
        judge, _ = cascade(first, {"b": S})
        known = {"k1": replace(UNSURE, claim_id="k1")}
        asked = (
            self.ask("a")[0],
            self.ask("a", "b", known=known, over=True)[0],
            self.ask("a", over=True)[0],
            request("a"),
        )
        for sent in asked:
            await reply_of(judge, sent)
        within = [each.turn_within_s for each in first.requests]
        assert within == [0.02, 0.0, 0.02, None]
        assert all(each.gathering is None for each in first.requests)

    async def test_what_the_first_has_seen_in_part_does_not_stand_and_is_seen_wholly_if_the_second_fails(
        self,
    ) -> None:
        first = Hurried({"a": UNSURE, "b": SURE, "c": UNSURE}, name="local", usage=Usage())
        judge, second = cascade(first, {"c": X})
        sent, gathering = self.ask("a", "b", "c")
        await reply_of(judge, sent)
        known = {each.claim_id: each for each in gathering.later}
        assert list(known) == ["k0", "k1", "k2"]
        reply = await reply_of(judge, self.ask("a", "b", "c", known=known, over=True)[0])
        assert second.asked == [["a", "b", "c"]]
        assert first.asked == [["a", "b", "c"], ["a", "b"]]
        failed = (f"{LLM}: left out of the reply",)
        assert [(j.verdict, j.support, j.judge, j.degraded_from) for j in reply.judgements] == [
            (S, 0.7, "local", failed),
            (S, 0.99, "local", ()),
            (X, 0.1, LLM, ()),
        ]

    async def test_what_the_first_has_seen_in_part_is_seen_wholly_while_the_second_hangs(self) -> None:
        """In time: who asked gives the claims up at the request's deadline."""
        first = Hurried({"a": UNSURE, "b": SURE}, name="local", usage=Usage())
        judge, second = cascade(first, ScriptedJudge({}, gate=asyncio.Event()), reserve_ms=100)
        known = {f"k{n}": replace(UNSURE, claim_id=f"k{n}", degraded_from=("in part",)) for n in range(2)}
        sent = replace(self.ask("a", "b", known=known, over=True)[0], deadline=time.monotonic() + 0.6)
        async with asyncio.timeout(sent.deadline - time.monotonic()):
            reply = await reply_of(judge, sent)
        assert (first.asked, second.cancelled) == ([["a", "b"]], 1)
        assert [(j.support, j.judge, j.degraded_from) for j in reply.judgements] == [
            (0.7, "local", (f"{LLM}: late",)),
            (0.99, "local", ()),
        ]

    async def test_what_both_consume_at_the_same_time_is_told_together(self) -> None:
        class Telling(Hurried):
            """Counts ``tokens`` as it is asked."""

            tokens = 0

            async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
                request.meter.add(Usage(input_tokens=self.tokens))
                async for each in super().judge(request):
                    yield each

        first = Telling({"a": UNSURE}, name="local", usage=None)
        second = Telling({}, gate=asyncio.Event(), usage=None)
        first.tokens, second.tokens = 3, 100
        judge, _ = cascade(first, second, reserve_ms=100)
        known = {"k0": replace(UNSURE, claim_id="k0", degraded_from=("in part",))}
        sent = replace(self.ask("a", known=known, over=True)[0], deadline=time.monotonic() + 0.6)
        running = asyncio.create_task(reply_of(judge, sent))
        await second.started.wait()
        assert sent.meter.usage.input_tokens == 100
        assert (await running).usage.input_tokens == sent.meter.usage.input_tokens == 103

    async def test_nobody_looks_again_at_what_the_second_answers(self) -> None:
        first = Hurried({"a": UNSURE}, name="local", usage=Usage())
        judge, _ = cascade(first, {"a": X})
        known = {"k0": replace(UNSURE, claim_id="k0", degraded_from=("in part",))}
        reply = await reply_of(judge, self.ask("a", known=known, over=True)[0])
        assert ([j.verdict for j in reply.judgements], first.asked) == ([X], [])

    async def test_what_it_has_seen_in_part_is_kept_where_it_fails_too(self) -> None:
        known = {"k0": replace(UNSURE, claim_id="k0", degraded_from=("in part",))}
        judge, _ = cascade(ScriptedJudge(name="local", error=JudgeUnavailable("closed")), {})
        (found,) = (await reply_of(judge, self.ask("a", known=known, over=True)[0])).judgements
        failed = ("in part", f"{LLM}: left out of the reply")
        assert found.degraded_from == failed
        # Nobody has looked at it wholly: it is not supported by what was seen in part.
        assert (found.verdict, found.support) == (Verdict.PARTIALLY_SUPPORTED, 0.49)

    async def test_without_waiting_the_engine_is_told_so(self) -> None:
        judge = CascadeJudge(ScriptedJudge(), ScriptedJudge(), max_wait_ms=0)
        assert isinstance(judge, GatheringJudge)
        assert judge.max_wait_s == 0
        assert CascadeJudge(ScriptedJudge(), ScriptedJudge()).max_wait_s == 1.5


# ------------------------------------------------------------------------------------ whatever two judges say

TEXTS = ("a", "b", "c")
PROBABILITY = st.floats(0, 1)


@st.composite
def lines(draw: st.DrawFn, judge: str) -> dict[str, Judgement]:
    """What a judge says of some of the claims, sense or nonsense."""
    said = {}
    for text in draw(st.sets(st.sampled_from(TEXTS))):
        verdict = draw(st.sampled_from(Verdict))
        support = draw(st.one_of(st.none(), PROBABILITY, st.just(9.0), st.just(float("nan"))))
        said[text] = judgement("", verdict, support, judge=judge, confidence=draw(PROBABILITY))
    return said


@st.composite
def judges(draw: st.DrawFn, name: str) -> ScriptedJudge:
    error = draw(st.sampled_from([None, JudgeUnavailable("down"), RuntimeError("bug")]))
    early = draw(st.lists(st.sampled_from(TEXTS), unique=True))
    return ScriptedJudge(draw(lines(name)), name=name, error=error, early=early, usage=Usage())


@st.composite
def cascades(draw: st.DrawFn) -> CascadeSettings:
    bands = {}
    for severity in Severity:
        low, high = sorted([draw(PROBABILITY), draw(PROBABILITY)])
        bands[severity] = made(Band, accept_support=high, reject_support=low)
    return made(
        CascadeSettings,
        bands=bands,
        on_unavailable=draw(
            st.dictionaries(st.sampled_from(Severity), st.sampled_from(["local", "unverified"]))
        ),
        least_call_ms=draw(st.sampled_from([0, 10_000_000])),
    )


@settings(max_examples=200)
@given(
    judges("local"), judges("llm:m"), cascades(), st.lists(st.sampled_from(Severity), min_size=3, max_size=3)
)
def test_one_verdict_a_claim_given_by_a_tier_or_unverified(
    first: ScriptedJudge, second: ScriptedJudge, bounds: CascadeSettings, severities: list[Severity]
) -> None:
    asked = request(*TEXTS, severities=severities)
    reply = asyncio.run(reply_of(CascadeJudge(first, second, bounds), asked))

    assert [found.claim_id for found in reply.judgements] == list(asked.claims)
    for found in reply.judgements:
        text = asked.claims[found.claim_id].text
        said = {"local": first.script.get(text), "llm:m": second.script.get(text)}
        if found.verdict is Verdict.UNVERIFIED:
            assert found.support is None
            continue
        own = said[found.judge]
        assert isinstance(own, Judgement)
        assert (found.verdict, found.support, found.confidence) == (own.verdict, own.support, own.confidence)
