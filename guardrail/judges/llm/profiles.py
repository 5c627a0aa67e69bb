"""Open models that were trained to judge: what each is sent, and what its reply says.

Such a model knows one prompt, word for word, and answers in its own form; the instructions of ``prompts/``
would only confuse it. A profile is that form. The words themselves come from the model's card, in files that
``judge.llm.profile`` names, except for Granite Guardian, whose chat template has them.

Texts stand in these prompts without fences, since the models know none. Only the tokens by which chat
templates separate roles are defused. A reply that can't be read, or has anything beside its form, is an
error, never a verdict: what stands there may take the verdict back.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import Template
from typing import Any, Final

import openai

from guardrail.claims.model import Claim
from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Evidence, Span, Usage, Verdict
from guardrail.judges.base import JudgeRequest, Meter
from guardrail.judges.llm.chat import Chat
from guardrail.judges.llm.endpoint import Prices, Question, Spent, usage_of
from guardrail.judges.llm.prompt import Fence, Sentences, closest_passages, fences, select
from guardrail.judges.llm.reply import Answer, WholeReply
from guardrail.judges.llm.settings import LlmJudgeSettings, ProfileName, ProfileSettings, read_profile_prompt
from guardrail.judges.llm.verdicts import PARTIAL, support_of, uncovered, without_contexts
from guardrail.judges.spending import BudgetExhausted
from guardrail.judges.streams import closing, told
from guardrail.printable import shorten
from guardrail.verdicts import Judgement, less, unverified

CONFIDENCE: Final = 0.8
"""Of verdicts of models that don't say how sure they are; ``tune --calibration`` fits it to labels."""
_REASON_CHARS: Final = 1_000
_MOST_SPANS: Final = 200
_NUMBER: Final = re.compile(r"^\[\d+\] ", re.MULTILINE)
_THOUGHTS: Final = re.compile(r"<think>(?:(?!</?think>).)*</think>\s*", re.DOTALL)
_FENCED: Final = re.compile(r"```\w*\s(.*)```", re.DOTALL)
_SCORE: Final = re.compile(r"<score>\s*(yes|no)\s*</score>", re.IGNORECASE)
_WORD: Final = re.compile(r"[\"'*]*(yes|no)[.!]?[\"'*]*", re.IGNORECASE)
# Lynx writes lists of its own: in single quotes, or in none, with quotes and apostrophes in them. No brace,
# bracket or further member can stand in what is read so.
_LINES: Final = r"""(?:(?!["']\s*:)[^{}\[\]])*"""
_LOOSE_PASS: Final = re.compile(
    rf"""\{{\s*(["'])REASONING\1\s*:\s*(\[{_LINES}\]|"{_LINES}"|'{_LINES}')\s*,"""
    r"""\s*(["'])SCORE\3\s*:\s*(["']?)(PASS|FAIL)\4\s*\}"""
)
_PASS: Final = frozenset({"REASONING", "SCORE"})
_SCORE_TOLD: Final = r"\bSCORE\b|\b(?i:score\W{1,8}(?:pass|fail))\b"
_SPANS: Final = "hallucinated_spans"
_SPAN: Final = frozenset({"text", "category", "subcategory", "explanation"})
_ADDITIONS: Final = frozenset({"fabricated_reference", "unsupported_addition"})


@dataclass(frozen=True, slots=True)
class SpanAnswer(Answer):
    """An answer that names words of the claim: code points of its prose."""

    spans: tuple[Span, ...] = ()


Read = Callable[[str, Mapping[str, str]], list[SpanAnswer]]
"""Reads a whole reply, given the claims' texts by their short ids. Raises JudgeReplyError if it can't."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model is asked. ``whole``: one call for all claims that are ready, as the text of an answer; else
    one call a claim."""

    read: Read
    whole: bool = False


# ------------------------------------------------------------------------------------------ what replies say


def _one(texts: Mapping[str, str], supported: bool, reason: str = "") -> list[SpanAnswer]:
    (label,) = texts
    verdict = Verdict.SUPPORTED if supported else Verdict.UNSUPPORTED
    return [
        SpanAnswer(label, verdict, CONFIDENCE, reasoning=shorten(" ".join(reason.split()), _REASON_CHARS))
    ]


def _said(reply: str, *, thoughts: bool = False) -> str:
    """What a reply says, without white space and one code fence around it and, where ``thoughts`` are of the
    model's form, without one block of them ahead of it.
    """
    said = reply.strip()
    block = _THOUGHTS.match(said) if thoughts else None
    said = said[block.end() :] if block else said
    fenced = _FENCED.fullmatch(said)
    return fenced[1].strip() if fenced else said


def _object(said: str, members: frozenset[str]) -> dict[str, Any]:
    """The JSON object that ``said`` is, which has exactly ``members``."""
    try:
        found = json.loads(said, object_pairs_hook=_once, strict=False)
    except (ValueError, RecursionError):
        raise JudgeReplyError("the reply is not one JSON object") from None
    if not isinstance(found, dict) or found.keys() != members:
        raise JudgeReplyError(f"the reply is no object of {' and '.join(sorted(members))} alone")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose members have different names: of two, the last would count, whatever the first says."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise JudgeReplyError("the reply has a member twice")
    return found


def _read_word(reply: str, texts: Mapping[str, str]) -> list[SpanAnswer]:
    """MiniCheck: Yes if the document has all of it, or No."""
    found = _WORD.fullmatch(_said(reply))
    if found is None:
        raise JudgeReplyError("the reply is neither Yes nor No")
    return _one(texts, found[1].lower() == "yes")


def _read_score(reply: str, texts: Mapping[str, str]) -> list[SpanAnswer]:
    """Granite Guardian: whether there is a risk, yes or no, between tags; its thoughts come before."""
    found = _SCORE.fullmatch(_said(reply, thoughts=True))
    if found is None:
        raise JudgeReplyError("the reply is not one <score> of yes or no")
    return _one(texts, found[1].lower() == "no")


def _read_pass(reply: str, texts: Mapping[str, str]) -> list[SpanAnswer]:
    """Lynx: PASS or FAIL as SCORE of an object, with its REASONING, which need not be JSON."""
    said = _said(reply)
    loose = _LOOSE_PASS.fullmatch(said)
    try:
        found = _object(said, _PASS)
    except JudgeReplyError:
        if loose is None:
            raise
        found = {"REASONING": loose[2], "SCORE": loose[5]}
    score, reasoning = found["SCORE"], found["REASONING"]
    lines = reasoning if isinstance(reasoning, list) else [reasoning]
    if score not in ("PASS", "FAIL") or not all(isinstance(line, str) for line in lines):
        raise JudgeReplyError("the reply has no SCORE of PASS or FAIL, or no text as REASONING")
    reason = " ".join(lines)
    other = "FAIL" if score == "PASS" else "PASS"
    if re.search(rf"{_SCORE_TOLD}|\b{other}\b", reason):
        raise JudgeReplyError("the REASONING tells a score too")
    return _one(texts, score == "PASS", "" if score == "PASS" else reason)


def _read_spans(reply: str, texts: Mapping[str, str]) -> list[SpanAnswer]:
    """LettuceDetect v2: the words of the answer without support, each with its category.

    A claim with words of the category contradiction is CONTRADICTED; with others, it is UNSUPPORTED if they
    are at least half of it, else PARTIALLY_SUPPORTED. If words stand in no claim, nobody knows which they
    are, and claims without words of their own get no verdict.
    """
    spans = _object(_said(reply), frozenset({_SPANS}))[_SPANS]
    if not isinstance(spans, list) or len(spans) > _MOST_SPANS:
        raise JudgeReplyError("the reply has no list hallucinated_spans, or one that is too long")
    found: dict[str, list[tuple[Span, str, str]]] = {label: [] for label in texts}
    lost = False
    for each in spans:
        if not isinstance(each, dict) or not each.keys() <= _SPAN:
            raise JudgeReplyError("the reply has a span that is not of its form")
        words, category = each.get("text"), each.get("category")
        if not isinstance(words, str) or not words.strip():
            raise JudgeReplyError("the reply has a span without text")
        places = [(label, at) for label, text in texts.items() if (at := text.find(words)) >= 0]
        lost |= not places
        known = category if category == "contradiction" or category in _ADDITIONS else "unsupported"
        for label, at in places:
            said = each.get("explanation")
            found[label].append(((at, at + len(words)), str(known), said if isinstance(said, str) else ""))
    return [_of_spans(label, texts[label], named, lost=lost) for label, named in found.items()]


def _of_spans(label: str, text: str, named: Sequence[tuple[Span, str, str]], *, lost: bool) -> SpanAnswer:
    if not named:
        if lost:
            return SpanAnswer(label, problem="the reply names words that stand in no claim")
        return SpanAnswer(label, Verdict.SUPPORTED, CONFIDENCE)
    spans = _merged([span for span, _, _ in named])
    covered = sum(end - start for start, end in spans)
    if any(category == "contradiction" for _, category, _ in named):
        verdict = Verdict.CONTRADICTED
    else:
        verdict = Verdict.UNSUPPORTED if 2 * covered >= len(text) else Verdict.PARTIALLY_SUPPORTED
    kinds = ", ".join(dict.fromkeys(category.replace("_", " ") for _, category, _ in named))
    reasons = " ".join(dict.fromkeys(reason for *_, reason in named if reason))
    told = shorten(" ".join(f"{kinds}. {reasons}".split()), _REASON_CHARS)
    return SpanAnswer(label, verdict, CONFIDENCE, reasoning=told, spans=spans)


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


PROFILES: Final[Mapping[ProfileName, Profile]] = {
    "granite-guardian": Profile(_read_score),
    "minicheck": Profile(_read_word),
    "lynx": Profile(_read_pass),
    "lettucedetect": Profile(_read_spans, whole=True),
}


# ------------------------------------------------------------------------------------------------- the judge


@dataclass(frozen=True, slots=True)
class _Call:
    """What one call asks: claims by short ids, their texts, and the request."""

    claims: Mapping[str, Claim]
    texts: Mapping[str, str]
    messages: tuple[dict[str, str], ...]
    extra_body: Mapping[str, Any]
    evidence: Mapping[str, tuple[Evidence, ...]]
    partial: bool
    """Whether the documents are not all of the contexts."""


class ProfileJudge:
    """Asks a model that was trained to judge, in the form that it knows.

    These models say nothing of evidence: a verdict's is the closest passage, so that people can look there.
    """

    def __init__(
        self,
        settings: LlmJudgeSettings,
        client: openai.AsyncOpenAI | None = None,
        prices: Prices | None = None,
    ) -> None:
        """``settings.profile`` says which. The caller closes a given ``client``.

        Raises ConfigError if there is no key, or a prompt can't be read any more.
        """
        if settings.profile is None:
            raise ConfigError("judge.llm.profile: name the profile of the model; there is none")
        self._settings = settings
        self._kind: ProfileName = settings.profile.kind
        self._profile = PROFILES[self._kind]
        self._prompts = _templates(settings.profile)
        self._chat = Chat(settings, client, prices)
        self._fence = fences()

    @property
    def name(self) -> str:
        return f"{self._kind}:{self._settings.model}"

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """A judgement on each claim as its call ends. Raises JudgeError if no call gave any."""
        if not request.claims:
            return
        request.meter.add(Usage())
        if not any(context.text.strip() for context in request.evidence.contexts):
            for claim_id in request.claims:
                yield without_contexts(claim_id, self.name)
            return
        deadline = asyncio.get_running_loop().time() + request.deadline - time.monotonic()
        calls, not_asked = await asyncio.to_thread(self._calls, request)
        async with closing(told(partial(self._ask_all, request, calls, deadline))) as judgements:
            async for judgement in judgements:
                yield judgement
        for judgement in uncovered(not_asked, self.name):
            yield judgement

    async def aclose(self) -> None:
        await self._chat.aclose()

    async def _ask_all(
        self,
        request: JudgeRequest,
        calls: Sequence[_Call],
        deadline: float,
        tell: Callable[[Judgement], None],
    ) -> None:
        failed: list[tuple[_Call, JudgeError]] = []

        async def ask(call: _Call) -> None:
            try:
                await self._ask(request, call, deadline, tell)
            except JudgeError as error:
                failed.append((call, error))

        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(ask(call))
        if failed and len(failed) == len(calls):
            raise failed[0][1]
        for _, error in failed:
            if isinstance(error, BudgetExhausted):
                raise error  # another judge may answer for what is left
        for call, error in failed:
            for claim in call.claims:
                tell(unverified(claim, self.name, f"{type(error).__name__}: {error}"))

    async def _ask(
        self, request: JudgeRequest, call: _Call, deadline: float, tell: Callable[[Judgement], None]
    ) -> None:
        if asyncio.get_running_loop().time() >= deadline:
            raise JudgeUnavailable("the deadline has passed before the first call")
        meter, spent, counted = Meter(request.meter), Spent(), Usage()

        def changed() -> None:
            nonlocal counted
            before, counted = counted, usage_of(spent)
            meter.add(less(counted, before), self._settings.model)

        spent.changed = changed
        labels = {f"c{number}": claim_id for number, claim_id in enumerate(call.claims, 1)}
        answers = await self._chat.ask(
            Question(
                call.messages,
                None,
                lambda: WholeReply(lambda reply: list(self._profile.read(reply, call.texts))),
                lambda _: None,
                spent,
                request.response_id,
                meter.admit,
                tuple(call.claims),
                call.extra_body,
                whole_only=True,
            ),
            deadline,
        )
        speaker = spent.answered_by or self.name
        for number, answer in enumerate(answers):
            judgement = self._settled(labels[answer.label], answer, call, speaker)
            # The call's usage is booked with its first claim: calls have no shares.
            used = meter.usage if number == 0 else Usage()
            tell(
                replace(
                    judgement, attempts=max(1, meter.attempts), degraded_from=tuple(spent.models), usage=used
                )
            )

    def _settled(self, claim_id: str, answer: Answer, call: _Call, speaker: str) -> Judgement:
        name = self.name if speaker.startswith("llm:") else speaker
        if answer.problem:
            return unverified(claim_id, name, answer.problem)
        notes = [answer.reasoning.encode("utf-8", "replace").decode()] if answer.reasoning else []
        if call.partial:
            notes.append(PARTIAL)
        return Judgement(
            claim_id,
            answer.verdict,
            answer.confidence,
            support_of(answer.verdict, answer.confidence),
            name,
            call.evidence[claim_id],
            reasoning=" ".join(notes),
            unsupported_spans=answer.spans if isinstance(answer, SpanAnswer) else (),
        )

    def _calls(self, request: JudgeRequest) -> tuple[list[_Call], set[str]]:
        """CPU work: which passages are sent where contexts are too long, and the texts; and the claims for
        which no passage fits, so that nobody is asked about them.
        """
        groups = [request.claims] if self._profile.whole else [{k: v} for k, v in request.claims.items()]
        fence = self._fence(request.response_id)
        limit = self._settings.max_context_chars
        contexts = [context.text for context in request.evidence.contexts if context.text.strip()]
        if sum(map(len, contexts)) <= limit:
            documents = [fence.defuse(text) for text in contexts]
            return [self._call(request, dict(claims), documents, fence) for claims in groups], set()
        sentences = request.evidence.kept(Sentences, lambda: Sentences(request.evidence.contexts))
        calls, not_asked = [], set[str]()
        for claims in groups:
            chosen = select(request.evidence, sentences, dict(claims), limit)
            documents = [fence.defuse(_NUMBER.sub("", each.text)) for each in chosen.shown]
            not_asked |= chosen.uncovered
            asked = {name: claim for name, claim in claims.items() if name not in chosen.uncovered}
            if asked:
                calls.append(self._call(request, asked, documents, fence, partial=chosen.partial))
        return calls, not_asked

    def _call(
        self,
        request: JudgeRequest,
        claims: dict[str, Claim],
        documents: Sequence[str],
        fence: Fence,
        *,
        partial: bool = False,
    ) -> _Call:
        texts = {f"c{number}": each.prose.text for number, each in enumerate(claims.values(), 1)}
        said = [_with_lead_in(claim) for claim in claims.values()]
        # A span is looked for in what was sent, less the lead-in, which is not judged.
        values = {
            "document": "\n\n".join(documents),
            "question": fence.defuse(request.question),
            "claim": fence.defuse(" ".join(said)),
        }
        evidence = {
            claim_id: tuple(
                Evidence(context_id=p.context_id, quote=p.text, span=(p.start, p.end))
                for p in closest_passages(request.evidence, claim, 1)
            )
            for claim_id, claim in claims.items()
        }
        if self._prompts is None:
            messages, extra = _for_granite(values, documents)
        else:
            messages, extra = _filled(self._prompts, values), {}
        return _Call(claims, texts, messages, extra, evidence, partial)


def _with_lead_in(claim: Claim) -> str:
    return f"{claim.lead_in} {claim.prose.text}" if claim.lead_in else claim.prose.text


def _templates(settings: ProfileSettings) -> tuple[Template | None, Template] | None:
    if settings.user is None:
        return None
    try:
        system = None if settings.system is None else read_profile_prompt(settings.system, is_user=False)
        return system, read_profile_prompt(settings.user, is_user=True)
    except ValueError as error:
        raise ConfigError(f"judge.llm.profile: {error}") from None


def _filled(
    prompts: tuple[Template | None, Template], values: Mapping[str, str]
) -> tuple[dict[str, str], ...]:
    system, user = prompts
    asked = {"role": "user", "content": user.substitute(values)}
    if system is None:
        return (asked,)
    return {"role": "system", "content": system.substitute(values)}, asked


def _for_granite(
    values: Mapping[str, str], documents: Sequence[str]
) -> tuple[tuple[dict[str, str], ...], dict[str, Any]]:
    """Its chat template has the words: it gets documents, and the criterion that the answer is held to."""
    body = {
        "documents": [{"doc_id": str(number), "text": text} for number, text in enumerate(documents)],
        "chat_template_kwargs": {"guardian_config": {"criteria_id": "groundedness"}, "think": False},
    }
    asked = {"role": "user", "content": values["question"]}
    said = {"role": "assistant", "content": values["claim"]}
    return ((asked, said) if values["question"] else (said,)), body
