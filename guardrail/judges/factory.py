"""Settings -> judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel

from guardrail.errors import ConfigError
from guardrail.judges.base import Judge
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import UsageLedger

if TYPE_CHECKING:
    from guardrail.policy import Policy


def build_judge(settings: JudgeSettings, *, ledger: UsageLedger | None = None) -> Judge:
    """The judge that ``settings.kind`` names. Raises ConfigError when its own settings don't suffice.

    A judge with a model of its own loads it here, which takes seconds. ``ledger`` is where the usage of
    language models is booked, for who wants to read it; without one the judge makes its own, and logs it.

    Each kind is imported when it is asked for: the local judge needs no HTTP client, and the LLM judge none
    of the local one's tables.
    """
    if not isinstance(settings, JudgeSettings):
        raise TypeError(
            f"settings: give a guardrail.JudgeSettings, as load_settings(FILE).judge is, not a "
            f"{type(settings).__name__}"
        )
    return _Builder(settings, ledger).build()


def check_judge(settings: JudgeSettings) -> None:
    """What can be told without building the judge: no file is opened, no model loaded, no key needed.

    Raises ConfigError for a judge that ``build_judge`` would refuse for want of a setting.
    """
    kinds = settings.kinds()
    if "command" in kinds and not settings.command.argv and settings.command.url is None:
        raise ConfigError(
            "judge.command: neither argv nor url is set; name the program to run or the endpoint to ask"
        )
    if "classifier" in kinds and settings.classifier.model is None:
        raise ConfigError(
            "judge.classifier.model is not set; give an id on the Hugging Face hub or a folder, or a preset"
        )
    if "llm" in kinds and settings.budgets.needs_prices:
        from guardrail.judges.spending import PriceTable

        prices = PriceTable(settings.prices)
        for llm in (settings.llm, settings.alternative_llm()):
            for each in () if llm is None else llm.models():
                if prices.price(each.model) is None:
                    raise _unpriced(each.model)


def check_files(settings: JudgeSettings) -> None:
    """What files that are here can't be used for, told without loading a model; absent ones are passed over.

    Raises ConfigError where ``build_judge`` would: for parameters that their verifier doesn't fit, say.
    """
    if uses_local(settings):
        from guardrail.judges.local.check import check_files as check_local_files

        check_local_files(settings.local)


def uses_local(settings: JudgeSettings) -> bool:
    """Whether the local judge is built: as a judge of its own, or to answer once a budget is used up."""
    return "local" in settings.kinds() or (settings.kind == "llm" and _falls_back(settings))


def _falls_back(settings: JudgeSettings) -> bool:
    return settings.budgets.bounded and settings.budgets.on_budget == "local"


def check_time(settings: JudgeSettings, policies: Mapping[str, Policy]) -> list[str]:
    """A line for each policy that leaves the cascade's second judge no time, so that it is never asked.

    Raises ConfigError where every policy does.
    """
    if settings.kind != "cascade":
        return []
    needed = settings.cascade.reserve_ms + settings.cascade.least_call_ms
    short = {name: policy.claim_timeout_ms for name, policy in policies.items()}
    short = {name: timeout_ms for name, timeout_ms in short.items() if timeout_ms <= needed}
    why = (
        f"the second judge of the cascade is never asked, which needs more than {needed:,} ms of "
        "claim_timeout_ms"
    )
    lines = [f"policies.{name}: {why} ({timeout_ms:,}); raise it" for name, timeout_ms in short.items()]
    if lines and len(lines) == len(policies):
        raise ConfigError("\n".join(lines))
    return lines


def _unpriced(model: str) -> ConfigError:
    return ConfigError(
        f"judge.budgets: a budget in usd needs the price of {model!r}; add it to judge.prices, or bound "
        "tokens instead"
    )


class _Builder:
    """What the judges of one process share: prices, budget, ledger and the caches' server."""

    def __init__(self, settings: JudgeSettings, ledger: UsageLedger | None) -> None:
        self._settings = settings
        self._ledger = ledger

    def build(self) -> Judge:
        settings = self._settings
        if settings.kind != "cascade":
            return self._one(settings.kind)
        from guardrail.judges.cascade import CascadeJudge

        cascade = settings.cascade
        return CascadeJudge(self._one(cascade.first), self._one(cascade.second), cascade)

    def _one(self, kind: str) -> Judge:
        settings = self._settings
        if kind == "llm":
            return self._llm()
        if kind in ("hhem", "classifier"):
            from guardrail.judges.model import ClassifierJudge

            return self._cached("classifier", ClassifierJudge(settings.classifier), settings.classifier)
        if kind == "command":
            from guardrail.judges.command.judge import CommandJudge

            return self._cached(kind, CommandJudge(settings.command), settings.command)
        from guardrail.judges.local.judge import LocalJudge

        return LocalJudge(settings.local)

    def _llm(self) -> Judge:
        """The LLM judge within its budgets, remembered, and kept from judging its own answers."""
        from guardrail.judges.llm.judge import LlmJudge
        from guardrail.judges.llm.settings import LlmJudgeSettings
        from guardrail.judges.self_judging import SelfJudgingGuard
        from guardrail.judges.spending import Budget, MeteredJudge, PriceTable

        settings = self._settings
        prices = PriceTable(settings.prices)
        budget = Budget(settings.budgets)
        ledger = self._ledger or UsageLedger()

        def paid(llm: LlmJudgeSettings) -> tuple[Judge, str]:
            unpriced = [each.model for each in llm.models() if prices.price(each.model) is None]
            if settings.budgets.needs_prices and unpriced:
                raise _unpriced(unpriced[0])
            judge: Judge = MeteredJudge(
                LlmJudge(llm, prices=prices),
                llm.model,
                budget=budget,
                ledger=ledger,
                prices=prices,
                max_context_chars=llm.max_context_chars,
            )
            # In a cascade the first judge's verdict is there already.
            if settings.kind == "llm" and _falls_back(settings):
                from guardrail.judges.local.judge import LocalJudge
                from guardrail.judges.spending import BudgetFallback

                judge = BudgetFallback(judge, LocalJudge(settings.local))
            return self._cached("llm", judge, llm), llm.model

        judge, model = paid(settings.llm)
        alternative = settings.alternative_llm()
        return SelfJudgingGuard(
            judge,
            model,
            settings.self_judging,
            alternative=None if alternative is None else paid(alternative),
        )

    def _cached(self, kind: str, judge: Judge, settings: BaseModel) -> Judge:
        cache = self._settings.cache
        if not cache.enabled:
            return judge
        from guardrail.judges.cache import CachedJudge
        from guardrail.judges.fingerprint import fingerprint

        shared = None
        if cache.redis_url is not None:
            from guardrail.judges.redis_cache import RedisCache

            shared = RedisCache(cache)
        return CachedJudge(judge, fingerprint(kind, settings), cache, shared=shared)
