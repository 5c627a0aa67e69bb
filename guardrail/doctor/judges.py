"""Whether the judges can be built here, and what they say of a right and of a wrong claim."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Final

from guardrail.doctor.checks import Area, Check, detail_and_remedy
from guardrail.errors import GuardrailError
from guardrail.events import ClaimVerdict, Context, Response, Verdict
from guardrail.guard import Guard
from guardrail.judges.base import Judge
from guardrail.judges.factory import (
    all_kinds,
    build_judge,
    check_files,
    check_judge,
    check_time,
    of_kind,
    uses_local,
)
from guardrail.policy import Policy
from guardrail.printable import shorten

if TYPE_CHECKING:
    from guardrail.config import Settings
    from guardrail.judges.settings import JudgeSettings

_JUDGE: Final = Area("judge")
QUESTION: Final = "What does the standard plan cost, and where is the company's office?"
CONTEXT: Final = "The standard plan costs $20 per month. The company's office is in Lisbon."
SUPPORTED: Final = "You will find the company's office in Lisbon."
CONTRADICTED: Final = "The standard plan costs $95 a month."
WITHOUT_FIGURE: Final = "The company has its office in Madrid."
"""Wrong as well, and nothing that a comparison of figures finds."""

_LOOK: Final = "look after its server or program, then run this again"
_MOST_CHARS: Final = 500
_CLAIM_TIMEOUT_MS: Final = 60_000
"""Longer than a policy would wait: a model that is loaded for this is slow once."""


async def check_judges(settings: Settings) -> AsyncIterator[Check]:
    """Every judge that runs by ``settings``, each asked once about three claims; with a language model that
    is a call that costs something."""
    policies = tuple(settings.policies.values())
    try:
        check_judge(settings.judge, policies)
        check_files(settings.judge, policies)
        for short in check_time(settings.judge, settings.policies):
            yield _JUDGE.warn("time", *detail_and_remedy(short))
    except GuardrailError as error:
        yield _JUDGE.error("settings", error)
        return
    every = all_kinds(settings.judge, policies)
    if any(map(uses_local, every)) and settings.judge.local.verifier.enabled:
        yield await asyncio.to_thread(_of_model, settings.judge)
    # Each judge of a cascade by itself: the second is asked only where the first is unsure. And no answer of
    # yesterday's out of a cache.
    kinds = sorted(frozenset().union(*(each.kinds() for each in every)) - {"cascade"})
    fresh = settings.judge.model_copy(
        update={"cache": settings.judge.cache.model_copy(update={"ttl_seconds": 0.0})}
    )
    for kind in kinds:
        each = of_kind(fresh, kind)
        try:
            judge = await asyncio.to_thread(build_judge, each)
        except (GuardrailError, OSError) as error:
            yield _JUDGE.error(each.kind, error)
            continue
        try:
            for check in await ask(judge, each, min(policy.claim_timeout_ms for policy in policies)):
                yield check
        finally:
            await judge.aclose()


def _of_model(settings: JudgeSettings) -> Check:
    """The checksums of the local judge's files against their manifest."""
    from guardrail.judges.local.combiner import packaged_folder
    from guardrail.judges.model import read_folder

    try:
        folder = settings.local.verifier.path or packaged_folder()
        if folder is None:
            return _JUDGE.warn("local model", "none is packaged", "install the package again")
        manifest, *_ = read_folder(folder)
    except GuardrailError as error:
        return _JUDGE.error("local model", error)
    return _JUDGE.ok("local model", f"{manifest.name}: its checksums are right")


async def ask(judge: Judge, settings: JudgeSettings, claim_timeout_ms: int) -> list[Check]:
    """What ``judge`` says of the three claims, and how long it took, which should be less than the least
    ``claim_timeout_ms``.
    """
    about = settings.kind
    policy = Policy(name="doctor", mode="observe", claim_timeout_ms=_CLAIM_TIMEOUT_MS)
    response = Response(
        response_id="guardrail-doctor",
        question=QUESTION,
        contexts=(Context(id="doctor", text=CONTEXT),),
        answer=f"{SUPPORTED} {CONTRADICTED} {WITHOUT_FIGURE}",
    )
    begun = time.monotonic()
    try:
        async with Guard(judge, policy=policy) as guard:
            verdict = await guard.check_event(response)
    except GuardrailError as error:
        return [_JUDGE.error(about, error)]
    took_ms = (time.monotonic() - begun) * 1000
    took = f"{took_ms:,.0f} ms for three claims"
    usage = verdict.usage
    if usage.input_tokens or usage.output_tokens:
        took += f", {usage.input_tokens + usage.output_tokens:,} tokens"
    name = f"{judge.name}: " if judge.name != about else ""
    late = _JUDGE.warn(
        about,
        f"{took}: more than the {claim_timeout_ms:,} ms that a policy gives a claim (claim_timeout_ms)",
        "run this again, since a first call may be slow; then raise claim_timeout_ms, or name a faster model",
    )
    return _misjudged(about, verdict.claims) or [
        *([late] if took_ms > claim_timeout_ms else []),
        _JUDGE.ok(about, f"{name}it tells a right claim from a wrong one, {took}"),
    ]


def _misjudged(about: str, claims: Iterable[ClaimVerdict]) -> list[Check]:
    found = {claim.text.strip(): claim for claim in claims}
    checks = []
    for text, wanted in (
        (SUPPORTED, {Verdict.SUPPORTED}),
        (CONTRADICTED, {Verdict.CONTRADICTED, Verdict.UNSUPPORTED}),
        (WITHOUT_FIGURE, {Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIALLY_SUPPORTED}),
    ):
        claim = found.get(text)
        if claim is None or claim.verdict is Verdict.UNVERIFIED:
            why = "" if claim is None else shorten(claim.reasoning, _MOST_CHARS)
            detail, remedy = detail_and_remedy(why or "it gave no reason")
            checks.append(_JUDGE.fail(about, f"no verdict: {detail}", remedy or _LOOK))
            break  # the others will say the same
        if claim.verdict not in wanted:
            checks.append(
                _JUDGE.fail(
                    about,
                    f"it calls a {'right' if text == SUPPORTED else 'wrong'} claim {claim.verdict}",
                    "this judge can't be relied on: try another model, or its settings",
                )
            )
    return checks
