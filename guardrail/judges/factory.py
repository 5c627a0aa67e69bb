"""Settings -> judge."""

from __future__ import annotations

from guardrail.judges.base import Judge
from guardrail.judges.settings import JudgeSettings


def build_judge(settings: JudgeSettings) -> Judge:
    """The judge that ``settings.kind`` names. Raises ConfigError when its own settings don't suffice.

    A judge with a model of its own loads it here, which takes seconds.

    Each kind is imported when it is asked for: the local judge needs no HTTP client, and the LLM judge none
    of the local one's tables.
    """
    if settings.kind == "llm":
        from guardrail.judges.llm.judge import LlmJudge

        return LlmJudge(settings.llm)
    if settings.kind in ("hhem", "classifier"):
        from guardrail.judges.classifier.judge import ClassifierJudge

        chosen = settings.hhem if settings.kind == "hhem" else settings.classifier
        return ClassifierJudge(chosen, section=f"judge.{settings.kind}")
    if settings.kind == "command":
        from guardrail.judges.command.judge import CommandJudge

        return CommandJudge(settings.command)
    from guardrail.judges.local.judge import LocalJudge

    return LocalJudge(settings.local)
