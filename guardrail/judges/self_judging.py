"""Keeps a model from judging its own answers: models tend to agree with themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Literal

from pydantic import Field

from guardrail.errors import JudgeUnavailable
from guardrail.events import Usage
from guardrail.frozen import Frozen
from guardrail.judges.base import Around, Judge, JudgeRequest
from guardrail.judges.streams import closing
from guardrail.log_events import EventLog
from guardrail.printable import escape_controls, shorten
from guardrail.verdicts import Judgement

_log = EventLog(__name__)
_NAME_CHARS: Final = 120


class SelfJudged(JudgeUnavailable):
    """The judge was not asked, or not believed, because its model wrote the answer."""


class SelfJudgingSettings(Frozen):
    """What happens if the judge's model also wrote the answer (``generator_model``)."""

    policy: Literal["warn", "refuse"] = Field(
        default="warn",
        description="warn: judge anyway, and log a warning once. refuse: don't ask; with kind "
        "cascade the first judge's verdict stands, with kind llm the claims are UNVERIFIED. Names are "
        "compared without the provider (openai/) and in lower case.",
    )


def same_model(one: str | None, other: str) -> bool:
    """Whether both names say the same model; ``openai/GPT-4o`` is ``gpt-4o``. False for an unknown name."""
    return bool(one) and _bare(str(one)) == _bare(other) != ""


def _bare(name: str) -> str:
    return name.strip().lower().rsplit("/", 1)[-1]


class SelfJudgingGuard(Around):
    """A Judge around the LLM judge that applies the self-judging policy."""

    def __init__(self, judge: Judge, model: str, settings: SelfJudgingSettings) -> None:
        """Judgements by other models than ``model`` (fallbacks) are recognised by their judge's name."""
        super().__init__(judge)
        self._model = model
        self._policy = settings.policy
        self._warned: set[str] = set()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judgements of models that may answer. Raises SelfJudged if none may."""
        if not self._may_judge(request.generator_model, self._model):
            request.meter.add(Usage())  # known: no call was made
            raise SelfJudged("not asked: its model wrote the answer")
        kept = refused = False
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                if self._may_judge(request.generator_model, judgement.judge.partition(":")[2]):
                    kept = True
                    yield judgement
                else:
                    refused = True
        if refused and not kept:
            raise SelfJudged("the only model that answered wrote the answer")

    def _may_judge(self, generator: str | None, model: str) -> bool:
        if not same_model(generator, model):
            return True
        if model not in self._warned:
            self._warned.add(model)
            name = shorten(escape_controls(str(generator)), _NAME_CHARS)
            _log.warning("judge.self_judging", generator_model=name, model=model, self_judging=self._policy)
        return self._policy == "warn"
