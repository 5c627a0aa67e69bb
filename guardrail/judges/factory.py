"""Makes judges from settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from guardrail.errors import ConfigError, JudgeError
from guardrail.judges.base import Judge
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import Budget, BudgetExhausted, MeteredJudge, PriceTable, UsageLedger
from guardrail.judges.streams import KEPT_SHARE, FallbackJudge, GatheringAround

if TYPE_CHECKING:
    from guardrail.judges.decisions import DecisionsSettings
    from guardrail.judges.llm.settings import LlmJudgeSettings
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
    return JudgeSet(settings, ledger=ledger).default


@dataclass(frozen=True, slots=True)
class MissingJudge:
    """A judge to build, and the settings to build it from."""

    kind: JudgeKind
    settings: JudgeSettings
    has_budget: bool = False
    """Whether a policy limits what a response may consume."""


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
        self.settings = settings
        """What the judges are built with; until one is built, its parts may change."""
        self._ledger = ledger or UsageLedger()
        self._has_budget = _have_budgets(policies)
        self._lacks_fallback = False  # for an LLM judge whose budget is used up
        self._built: dict[str, Judge] = {}
        self.add((MissingJudge(settings.kind, settings), *self.missing(policies)))

    @property
    def default(self) -> Judge:
        """The judge for policies that name none."""
        return self._built[self.settings.kind]

    @property
    def by_kind(self) -> Mapping[str, Judge]:
        """All judges built so far."""
        return dict(self._built)

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
        bounded = _have_budgets(policies)
        return tuple(MissingJudge(kind, after, bounded) for kind in kinds if kind not in self._built)

    def add(self, missing: Iterable[MissingJudge]) -> None:
        """Build these judges. Takes seconds, in any thread. Raises ConfigError; judges built earlier stay."""
        for each in missing:
            if each.kind not in self._built:
                self._has_budget |= each.has_budget
                self.settings = each.settings
                self._built[each.kind] = self._build(each.kind)

    def fixed(self, settings: JudgeSettings, policies: Iterable[Policy]) -> list[str]:
        """The parts of ``settings`` and ``policies`` that need a restart: settings by their paths."""
        found = [
            f"judge.{name}"
            for name in sorted(self._used())
            if getattr(settings, name) != getattr(self.settings, name)
        ]
        if self._lacks_fallback:
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

    # Of the settings by the time of the first LLM judge, which may be one that a policy names later.
    @cached_property
    def _prices(self) -> PriceTable:
        return PriceTable(self.settings.prices)

    @cached_property
    def _budget(self) -> Budget:
        return Budget(self.settings.budgets)

    def _build(self, kind: str) -> Judge:
        path = self.settings.calibration
        if path is None:
            return self._one(kind, alone=True)
        from guardrail.judges.calibrated import CalibratedJudge, read_calibrations

        calibrations = read_calibrations(path)  # before a model is loaded
        return CalibratedJudge(self._one(kind, alone=True), calibrations)

    def _one(self, kind: str, *, alone: bool) -> Judge:
        """``alone``: not in a cascade, where the first judge's verdict already exists."""
        settings = self.settings
        match kind:
            case "cascade":
                from guardrail.judges.cascade import CascadeJudge

                tiers = (settings.cascade.first, settings.cascade.second)
                first, second = (self._one(each, alone=False) for each in tiers)
                return CascadeJudge(first, second, settings.cascade, max_wait_ms=settings.max_wait_ms)
            case "llm":
                return self._llm(alone=alone)
            case "decisions":
                return self._decisions(alone=alone)
            case "hhem" | "classifier":
                from guardrail.judges.model import ClassifierJudge

                return self._cached("classifier", ClassifierJudge(settings.classifier), settings.classifier)
            case "http":
                from guardrail.judges.own import HttpJudge

                return self._cached("http", HttpJudge(settings.http), settings.http)
            case "custom":
                from guardrail.judges.own import make_judge

                factory = settings.factory or ""
                return self._cached("custom", make_judge(factory), factory)
            case _:
                return self._local()

    def _local(self) -> Judge:
        from guardrail.judges.local.judge import LocalJudge

        return LocalJudge(self.settings.local)

    def _llm(self, *, alone: bool) -> Judge:
        """The LLM judge with its budgets, its cache and the self-judging policy."""
        from guardrail.judges.llm.judge import LlmJudge

        llm = self.settings.llm
        return self._paid("llm", LlmJudge(llm, prices=self._prices), llm, alone=alone)

    def _decisions(self, *, alone: bool) -> Judge:
        """The decisions judge, likewise, and with the judge that answers in its place."""
        from guardrail.judges.decisions import DecisionsJudge

        settings = self.settings.decisions
        judge = DecisionsJudge(settings, prices=self._prices)
        paid = self._paid("decisions", judge, settings, alone=alone)
        if settings.reasoning == "not_supported":
            from guardrail.judges.llm import ExplainingJudge

            paid = ExplainingJudge(paid, self.settings.llm, self._budget, self._ledger, self._prices)
        if settings.fallback == "none":
            return paid
        return FallbackJudge(paid, self._one(settings.fallback, alone=False), JudgeError, KEPT_SHARE)

    def _paid(
        self, kind: str, judge: Judge, settings: LlmJudgeSettings | DecisionsSettings, *, alone: bool
    ) -> Judge:
        """A judge that is paid per token, with all that goes around one."""
        from guardrail.judges.streams import SelfJudgingGuard

        judge = MeteredJudge(
            judge,
            settings.model,
            budget=self._budget,
            ledger=self._ledger,
            prices=self._prices,
            max_context_chars=settings.max_context_chars,
        )
        if alone and self.settings.budgets.on_budget == "local":
            if self._has_budget or self.settings.budgets.bounded:
                judge = FallbackJudge(judge, self._local(), BudgetExhausted)
            else:
                self._lacks_fallback = True
        # In a cascade the claims have gathered when they come.
        wait_ms = settings.max_wait_ms if self.settings.max_wait_ms is None else self.settings.max_wait_ms
        cached = self._cached(kind, judge, settings, wait_ms / 1000 if alone else 0.0)
        return SelfJudgingGuard(cached, settings.model, self.settings.self_judging)

    def _cached(self, kind: str, judge: Judge, settings: BaseModel | str, max_wait_s: float = 0.0) -> Judge:
        cache = self.settings.cache
        if not cache.enabled:
            return GatheringAround(judge, max_wait_s) if max_wait_s else judge
        from guardrail.judges.cache import CachedJudge, fingerprint

        shared = None
        if cache.redis_url is not None:
            from guardrail.judges.redis_cache import RedisCache

            shared = RedisCache(cache)
        return CachedJudge(judge, fingerprint(kind, settings), cache, max_wait_s=max_wait_s, shared=shared)


# The parts of the settings that a judge of each kind uses, by its section or setting.
_PAID_KINDS: Final = ("llm", "decisions")
_PAID: Final = ("max_wait_ms", "prices", "budgets", "cache", "self_judging")
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "local": frozenset({"local"}),
    "llm": frozenset({"llm", *_PAID}),
    "decisions": frozenset({"decisions", *_PAID}),
    "classifier": frozenset({"classifier", "cache"}),
    "hhem": frozenset({"classifier", "cache"}),
    "custom": frozenset({"factory", "cache"}),
    "http": frozenset({"http", "cache"}),
}


def _parts(kind: str, settings: JudgeSettings) -> frozenset[str]:
    used = frozenset().union(*(_PARTS[each] for each in of_kind(settings, kind).kinds()))
    if kind == "cascade":
        return used | {"cascade", "max_wait_ms"}
    answers_too = kind in _PAID_KINDS and settings.budgets.on_budget == "local"
    return used | ({"local"} if answers_too else set())


def _have_budgets(policies: Iterable[Policy]) -> bool:
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
    if "custom" in kinds and settings.factory is None:
        raise ConfigError(
            "judge.factory is not set; write package.module:make, the function that makes your judge"
        )
    if "http" in kinds and settings.http.url is None:
        raise ConfigError("judge.http.url is not set; give the address of the endpoint that judges")
    if "classifier" in kinds and settings.classifier.model is None:
        raise ConfigError(
            "judge.classifier.model is not set; give an id on the Hugging Face hub or a folder, or a preset"
        )
    if in_usd or settings.budgets.needs_prices:
        prices = PriceTable(settings.prices)
        asked = [each.model for each in settings.llm.models()] if "llm" in kinds else []
        for model in [*asked, *([settings.decisions.model] if "decisions" in kinds else [])]:
            if prices.price(model) is None:
                raise ConfigError(
                    f"judge.budgets: a budget in usd needs the price of {model!r}; add it to "
                    "judge.prices, or bound tokens instead"
                )


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
    falls_back = settings.budgets.bounded and settings.budgets.on_budget == "local"
    return "local" in settings.kinds() or (settings.kind in _PAID_KINDS and falls_back)


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
