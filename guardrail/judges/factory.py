"""Makes judges from settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from guardrail.errors import ConfigError
from guardrail.judges.base import Judge
from guardrail.judges.gathering import GatheringAround
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import UsageLedger

if TYPE_CHECKING:
    from guardrail.judges.spending import Budget, PriceTable
    from guardrail.policy import JudgeKind, Policy


def build_judge(settings: JudgeSettings, *, ledger: UsageLedger | None = None) -> Judge:
    """The judge that ``settings.kind`` names. Raises ConfigError if its settings are incomplete.

    A judge with its own model loads it here, which takes seconds. Language models book their usage in
    ``ledger``, for callers that want to read it; without one the judge makes its own and logs it.

    Each kind is imported on first use: the local judge needs no HTTP client, and the LLM judge none of the
    local one's tables.
    """
    if not isinstance(settings, JudgeSettings):
        raise TypeError(
            f"settings: give a guardrail.JudgeSettings, as load_settings(FILE).judge is, not a "
            f"{type(settings).__name__}"
        )
    return _Builder(settings, ledger).build(settings.kind)


@dataclass(frozen=True, slots=True)
class MissingJudge:
    """A judge to build, and the settings to build it from."""

    kind: JudgeKind
    settings: JudgeSettings


class JudgeSet:
    """The judges of one process: the one that ``kind`` names, and those that policies name.

    They share prices, budgets and the ledger. A judge keeps the settings that it was built with, until all
    are closed.
    """

    def __init__(
        self, settings: JudgeSettings, policies: Iterable[Policy] = (), *, ledger: UsageLedger | None = None
    ) -> None:
        """Builds the judges, like ``build_judge``. Raises ConfigError."""
        policies = tuple(policies)
        self._builder = _Builder(settings, ledger, has_budget=have_budgets(policies))
        self._built: dict[str, Judge] = {settings.kind: self._builder.build(settings.kind)}
        self.add(self.missing(policies))

    @property
    def default(self) -> Judge:
        """The judge for policies that name none."""
        return self._built[self.settings.kind]

    @property
    def by_kind(self) -> Mapping[str, Judge]:
        """All judges built so far."""
        return dict(self._built)

    @property
    def settings(self) -> JudgeSettings:
        """The settings that the judges are built with."""
        return self._builder.settings

    def missing(
        self, policies: Iterable[Policy], settings: JudgeSettings | None = None
    ) -> tuple[MissingJudge, ...]:
        """What ``add`` has to build for these policies, given the current ``settings``.

        Parts of the settings that no judge uses yet count as they are now, the others as they were. Raises
        ConfigError like ``check_judge``.
        """
        policies = tuple(policies)
        after = self.settings if settings is None else self._settings_after(settings)
        check_judge(after, policies)
        kinds = dict.fromkeys(policy.judge for policy in policies if policy.judge is not None)
        return tuple(MissingJudge(kind, after) for kind in kinds if kind not in self._built)

    def add(self, missing: Iterable[MissingJudge], *, budgets: bool = False) -> None:
        """Build these judges. Takes seconds, in any thread. Raises ConfigError; judges built earlier stay.

        ``budgets``: some policies have their own.
        """
        for each in missing:
            if each.kind not in self._built:
                self._builder.has_budget |= budgets
                self._builder.settings = each.settings
                self._built[each.kind] = self._builder.build(each.kind)

    def fixed(self, settings: JudgeSettings, policies: Iterable[Policy]) -> list[str]:
        """The parts of ``settings`` and ``policies`` that need a restart: settings by their paths."""
        found = [
            f"judge.{name}"
            for name in sorted(self._used())
            if getattr(settings, name) != getattr(self.settings, name)
        ]
        if self._builder.lacks_fallback:
            # Until then claims over budget are UNVERIFIED.
            found += [f"policies.{policy.name}.budget" for policy in policies if policy.budget is not None]
        return found

    async def aclose(self) -> None:
        """Close all; the first error is raised at the end."""
        async with AsyncExitStack() as stack:
            for judge in self._built.values():
                stack.push_async_callback(judge.aclose)

    def _settings_after(self, settings: JudgeSettings) -> JudgeSettings:
        free = JudgeSettings.model_fields.keys() - self._used()
        return self.settings.model_copy(update={name: getattr(settings, name) for name in free})

    def _used(self) -> frozenset[str]:
        return frozenset({"kind", "calibration"}).union(
            *(_parts(kind, self.settings) for kind in self._built)
        )


def _parts(kind: str, settings: JudgeSettings) -> frozenset[str]:
    """The parts of the settings that a judge of this kind uses."""
    if kind == "cascade":
        both = (settings.cascade.first, settings.cascade.second)
        return frozenset({"cascade", "max_wait_ms"}).union(*(_parts(each, settings) for each in both))
    if kind == "local":
        return frozenset({"local"})
    if kind == "llm":
        paid = {"llm", "prices", "budgets", "cache", "self_judging", "max_wait_ms"}
        return frozenset(paid | {"local"} if settings.budgets.on_budget == "local" else paid)
    return frozenset({kind, "cache"})


def have_budgets(policies: Iterable[Policy]) -> bool:
    """Whether any of the policies limits what a response may consume."""
    return any(policy.budget is not None for policy in policies)


def check_judge(settings: JudgeSettings, policies: Iterable[Policy] = ()) -> None:
    """Checks settings without building the judge: opens no file, loads no model, needs no key. Also checks
    the judges that ``policies`` name.

    Raises ConfigError for a judge that ``build_judge`` would refuse because of a missing setting.
    """
    policies = tuple(policies)
    in_usd = any(policy.budget is not None and policy.budget.usd is not None for policy in policies)
    _check_one(settings, in_usd)
    for policy in policies:
        if policy.judge is not None:
            try:
                _check_one(of_kind(settings, policy.judge), in_usd)
            except ConfigError as error:
                raise ConfigError(f"policies.{policy.name}.judge: {policy.judge}: {error}") from None


def of_kind(settings: JudgeSettings, kind: str) -> JudgeSettings:
    """The same settings with another judge running."""
    return settings.model_copy(update={"kind": kind})


def all_kinds(settings: JudgeSettings, policies: Iterable[Policy]) -> list[JudgeSettings]:
    """The settings for each judge that runs: the one that ``kind`` names, and those that policies name."""
    kinds = dict.fromkeys((settings.kind, *(policy.judge for policy in policies if policy.judge is not None)))
    return [of_kind(settings, kind) for kind in kinds]


def _check_one(settings: JudgeSettings, in_usd: bool) -> None:
    kinds = settings.kinds()
    if "command" in kinds and not settings.command.argv and settings.command.url is None:
        raise ConfigError(
            "judge.command: neither argv nor url is set; name the program to run or the endpoint to ask"
        )
    if "classifier" in kinds and settings.classifier.model is None:
        raise ConfigError(
            "judge.classifier.model is not set; give an id on the Hugging Face hub or a folder, or a preset"
        )
    if "llm" in kinds and (in_usd or settings.budgets.needs_prices):
        from guardrail.judges.spending import PriceTable

        prices = PriceTable(settings.prices)
        for llm in (settings.llm, settings.alternative_llm()):
            for each in () if llm is None else llm.models():
                if prices.price(each.model) is None:
                    raise _unpriced(each.model)


def check_files(settings: JudgeSettings, policies: Iterable[Policy] = ()) -> None:
    """Checks existing files without loading a model; ignores missing ones.

    Raises ConfigError where ``build_judge`` would, for instance for parameters that don't fit their verifier.
    """
    if settings.calibration is not None and settings.calibration.exists():
        from guardrail.judges.calibrated import read_calibrations

        read_calibrations(settings.calibration)
    if any(uses_local(each) for each in all_kinds(settings, policies)):
        from guardrail.judges.local.check import check_files as check_local_files

        check_local_files(settings.local)


def uses_local(settings: JudgeSettings) -> bool:
    """Whether the local judge is built: on its own, or to answer when a budget is used up."""
    return "local" in settings.kinds() or (settings.kind == "llm" and _falls_back(settings))


def _falls_back(settings: JudgeSettings) -> bool:
    return settings.budgets.bounded and settings.budgets.on_budget == "local"


def check_time(settings: JudgeSettings, policies: Mapping[str, Policy]) -> list[str]:
    """One line for each policy that leaves the cascade's second judge no time, so that it is never asked.

    Raises ConfigError if that is so for every policy.
    """
    policies = {
        name: policy for name, policy in policies.items() if (policy.judge or settings.kind) == "cascade"
    }
    cascade = settings.cascade
    needed = cascade.reserve_ms + cascade.least_call_ms
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

    def __init__(
        self, settings: JudgeSettings, ledger: UsageLedger | None, *, has_budget: bool = False
    ) -> None:
        """``has_budget``: responses have budgets, whatever the settings say."""
        self.settings = settings
        self._ledger = ledger
        self.has_budget = has_budget
        self._prices: PriceTable | None = None
        self._budget: Budget | None = None
        self._alone_without_fallback = False

    @property
    def lacks_fallback(self) -> bool:
        """Whether there is an LLM judge without another judge to answer when a budget is used up."""
        return self._alone_without_fallback

    def build(self, kind: str) -> Judge:
        path = self.settings.calibration
        if path is None:
            return self._uncalibrated(kind)
        from guardrail.judges.calibrated import CalibratedJudge, read_calibrations

        calibrations = read_calibrations(path)
        return CalibratedJudge(self._uncalibrated(kind), calibrations)

    def _uncalibrated(self, kind: str) -> Judge:
        if kind != "cascade":
            return self._one(kind, alone=True)
        from guardrail.judges.cascade import CascadeJudge

        cascade = self.settings.cascade
        return CascadeJudge(
            self._one(cascade.first, alone=False),
            self._one(cascade.second, alone=False),
            cascade,
            max_wait_ms=self.settings.max_wait_ms,
        )

    def _one(self, kind: str, *, alone: bool) -> Judge:
        settings = self.settings
        if kind == "llm":
            return self._llm(alone=alone)
        if kind in ("hhem", "classifier"):
            from guardrail.judges.model import ClassifierJudge

            return self._cached("classifier", ClassifierJudge(settings.classifier), settings.classifier)
        if kind == "command":
            from guardrail.judges.command.judge import CommandJudge

            return self._cached(kind, CommandJudge(settings.command), settings.command)
        from guardrail.judges.local.judge import LocalJudge

        return LocalJudge(settings.local)

    def _llm(self, *, alone: bool) -> Judge:
        """The LLM judge with its budgets, its cache and the self-judging policy.

        ``alone``: not in a cascade, where the first judge's verdict already exists.
        """
        from guardrail.judges.llm.judge import LlmJudge
        from guardrail.judges.llm.settings import LlmJudgeSettings
        from guardrail.judges.self_judging import SelfJudgingGuard
        from guardrail.judges.spending import Budget, MeteredJudge, PriceTable

        settings = self.settings
        prices = self._prices = self._prices or PriceTable(settings.prices)
        budget = self._budget = self._budget or Budget(settings.budgets)
        if self._ledger is None:
            self._ledger = UsageLedger()
        ledger = self._ledger
        bounded = self.has_budget or settings.budgets.bounded
        wanted = alone and settings.budgets.on_budget == "local"
        local_answers = wanted and bounded
        self._alone_without_fallback |= wanted and not bounded

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
            if local_answers:
                from guardrail.judges.local.judge import LocalJudge
                from guardrail.judges.spending import BudgetFallback

                judge = BudgetFallback(judge, LocalJudge(settings.local))
            # In a cascade the claims have gathered when they come.
            wait_ms = llm.max_wait_ms if settings.max_wait_ms is None else settings.max_wait_ms
            max_wait_s = wait_ms / 1000 if alone else 0.0
            return self._cached("llm", judge, llm, max_wait_s), llm.model

        judge, model = paid(settings.llm)
        alternative = settings.alternative_llm()
        return SelfJudgingGuard(
            judge,
            model,
            settings.self_judging,
            alternative=None if alternative is None else paid(alternative),
        )

    def _cached(self, kind: str, judge: Judge, settings: BaseModel, max_wait_s: float = 0.0) -> Judge:
        cache = self.settings.cache
        if not cache.enabled:
            return GatheringAround(judge, max_wait_s) if max_wait_s else judge
        from guardrail.judges.cache import CachedJudge
        from guardrail.judges.fingerprint import fingerprint

        shared = None
        if cache.redis_url is not None:
            from guardrail.judges.redis_cache import RedisCache

            shared = RedisCache(cache)
        return CachedJudge(judge, fingerprint(kind, settings), cache, max_wait_s=max_wait_s, shared=shared)
