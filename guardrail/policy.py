"""Score and rules -> decision.

A policy is plain, frozen data that operators write in configuration. Rules are tried in order on every claim,
and the first that matches decides the claim's segment. Thresholds on the score decide the response. The
stricter of the two decisions wins.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from guardrail.claims.segmenter import DEFAULT_MAX_SEGMENT_CHARS
from guardrail.claims.severity import SEVERITY_REASONS, SeverityRules
from guardrail.errors import ConfigError
from guardrail.events import (
    LEFT_OPEN,
    CitationBacking,
    ClaimVerdict,
    Decision,
    Finding,
    PolicyRef,
    Probability,
    SegmentKind,
    Severity,
    Verdict,
)
from guardrail.frozen import Frozen
from guardrail.limits import ResponseBudget
from guardrail.messages import Message, checked_message, message_in
from guardrail.scoring import DEFAULT_CREDITS, DEFAULT_WEIGHTS, Formula

Mode = Literal["hold", "stream", "observe"]
JudgeKind = Literal["local", "llm", "decisions", "hhem", "classifier", "custom", "http", "cascade"]
"""The judges that can be set up under ``judge``."""


class FailPolicy(StrEnum):
    """What happens to a claim that the judge could not check."""

    FAIL_CLOSED = "fail_closed"
    FAIL_OPEN = "fail_open"
    FLAG = "flag"


class OnIncomplete(StrEnum):
    """What happens to a response whose text ends early: aborted, timed out, or with a gap."""

    BLOCK = "block"
    FLAG = "flag"
    RELEASE = "release"


_COMPARISON: Final = re.compile(
    r"(?P<field>[a-z_]+)\s*(?P<op>>=|<=|==|>|<|is\b|in\b|)\s*(?P<value>.+)", re.IGNORECASE
)
_OR: Final = re.compile(r"\s(?:or|\|\|)\s", re.IGNORECASE)
RULE_HELP: Final = (
    "write it as 'verdict CONTRADICTED and severity >= major: block'; conditions: verdict A|B, "
    "finding NAME|NAME, citation other|none, severity [>=|<=|==] minor|normal|major|critical, support < 0.3, "
    "contradiction >= 0.8, confidence >= 0.8, reason NAME|NAME; actions: release, flag, redact, block; "
    "a name may stand in front: 'wrong price: verdict CONTRADICTED and reason price: block'"
)


PROBABILITIES: Final = ("support", "contradiction", "confidence")
_LISTED: Final[Mapping[str, Callable[[str], str]]] = {
    "verdict": str.upper,
    "finding": str.lower,
    "citation": str.lower,
    "reason": str,
}
"""Conditions that name alternatives, and how a line may write them."""


class Rule(Frozen):
    """One rule on a claim. All given conditions must hold; an omitted condition always holds."""

    name: str = Field(
        default="", description="Name that decisions report; derived from the conditions if empty."
    )
    verdict: tuple[Verdict, ...] = Field(default=(), description="Any of these verdicts.")
    finding: tuple[Finding, ...] = Field(default=(), description="Any of these findings.")
    citation: tuple[CitationBacking, ...] = Field(
        default=(),
        description="The claim has citations, and its citation_backing is one of these: cited, other, "
        "none, unknown.",
    )
    min_severity: Severity = Field(default=Severity.MINOR, description="This severity or a higher one.")
    max_severity: Severity = Field(default=Severity.CRITICAL, description="This severity or a lower one.")
    support_below: Probability | None = Field(
        default=None, description="A probability of support below this."
    )
    min_support: Probability | None = Field(
        default=None, description="A probability of support of at least this."
    )
    contradiction_below: Probability | None = Field(
        default=None, description="A probability of contradiction below this."
    )
    min_contradiction: Probability | None = Field(
        default=None,
        description="A probability of contradiction of at least this. If a judge gives none, the rule "
        "uses its confidence for CONTRADICTED and 0 for any other verdict.",
    )
    min_confidence: Probability | None = Field(
        default=None, description="A confidence of the judge of at least this."
    )
    confidence_below: Probability | None = Field(
        default=None, description="A confidence of the judge below this."
    )
    reason: tuple[str, ...] = Field(
        default=(), description="Any of these severity reasons (price, dosage, …)."
    )
    action: Decision = Field(description="What happens to the segment that contains the claim.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return parse_rule(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _satisfiable(self) -> Rule:
        for name in PROBABILITIES:
            least, under = self.bounds(name)
            if least is not None and under is not None and least >= under:
                raise ValueError(
                    f"{name} is never {least:g} or more and under {under:g}; lower the first or raise "
                    "the second"
                )
        if self.min_severity.rank > self.max_severity.rank:
            raise ValueError(
                f"severity is never {self.min_severity} or more and {self.max_severity} or less; swap the two"
            )
        return self

    @model_validator(mode="after")
    def _named(self) -> Rule:
        if not self.name:
            object.__setattr__(self, "name", self._describe())
        return self

    def _describe(self) -> str:
        return f"{' and '.join(self.conditions) or 'always'}: {self.action}"

    @cached_property  # asked of every claim
    def decides_open(self) -> bool:
        """Whether it decides claims that a judge left open, too: it names a finding or their verdict, or has
        no condition and does not release, since what nobody checked is never clean."""
        always = not self.conditions and self.action is not Decision.RELEASE
        return bool(self.finding) or Verdict.UNVERIFIED in self.verdict or always

    @property
    def for_open(self) -> bool:
        """Whether it names the verdict of claims that a judge left open, or a finding of theirs."""
        named = not self.verdict or Verdict.UNVERIFIED in self.verdict
        return named and (bool(self.verdict) or not LEFT_OPEN.isdisjoint(self.finding))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions as a line has them."""
        listed = {name: f"{name} {'|'.join(named)}" for name in _LISTED if (named := getattr(self, name))}
        reason = listed.pop("reason", None)
        parts = list(listed.values())
        if self.min_severity is not Severity.MINOR:
            parts.append(f"severity >= {self.min_severity}")
        if self.max_severity is not Severity.CRITICAL:
            parts.append(f"severity <= {self.max_severity}")
        for name in PROBABILITIES:
            for op, bound in zip((">=", "<"), self.bounds(name), strict=True):
                if bound is not None:
                    parts.append(f"{name} {op} {_written(bound)}")
        return tuple(parts if reason is None else [*parts, reason])

    @property
    def line(self) -> str:
        """The rule as one line, with its name if it was given one."""
        told = self._describe()
        return told if self.name == told else f"{self.name}: {told}"

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        """The least value of one of ``PROBABILITIES``, and the one that it is under; None where unbounded."""
        return getattr(self, f"min_{name}"), getattr(self, f"{name}_below")

    def matches(self, claim: ClaimVerdict) -> bool:
        """Whether every condition holds. Conditions on ``support`` fail if there is no support."""
        if self.verdict and claim.verdict not in self.verdict:
            return False
        if self.finding and not (claim.findings and any(each in claim.findings for each in self.finding)):
            return False
        if self.citation and claim.citation_backing not in self.citation:
            return False
        if not self.min_severity.rank <= claim.severity.rank <= self.max_severity.rank:
            return False
        return (
            _holds(claim.support, self.min_support, self.support_below)
            and _holds(contradiction_of(claim), self.min_contradiction, self.contradiction_below)
            and _holds(claim.confidence, self.min_confidence, self.confidence_below)
            and (not self.reason or any(reason in claim.severity_reasons for reason in self.reason))
        )


def _written(bound: float) -> str:
    """A bound in as few digits as give it again."""
    short = f"{bound:g}"
    return short if float(short) == bound else repr(bound)


def _holds(value: float | None, least: float | None, under: float | None) -> bool:
    if value is None:
        return least is None and under is None
    return (least is None or value >= least) and (under is None or value < under)


def contradiction_of(claim: ClaimVerdict) -> float:
    """The probability of contradiction that rules use.

    A judge without such a probability (LLM judges, custom judges) still says CONTRADICTED and how sure it is
    of that: its confidence stands in for the probability, and for any other verdict the probability is 0.
    """
    if claim.contradiction is not None:
        return claim.contradiction
    return claim.confidence if claim.verdict is Verdict.CONTRADICTED else 0.0


def parse_rule(text: str) -> dict[str, Any]:
    """Parse a one-line rule into the fields of Rule. Raises ValueError with the remedy."""
    before, colon, action = text.rpartition(":")
    if not colon:
        raise ValueError(f"rule {text!r} has no action; {RULE_HELP}")
    name, colon, conditions = before.rpartition(":")
    named = {"name": name.strip()} if colon else {}
    if named and _has_conditions(name):
        raise ValueError(f"rule {text!r} has conditions in the place of its name; {RULE_HELP}")
    return {"action": action.strip().lower()} | named | _conditions(conditions)


def _has_conditions(text: str) -> bool:
    try:
        _conditions(text)
    except ValueError:
        return False
    return True


def _conditions(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for condition in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        if condition.lower() == "always":
            continue
        if _OR.search(condition):
            raise ValueError(
                f"condition {condition!r} has an 'or', which rules don't know; write two rules, one for each "
                "side; for any of several values of one condition: verdict A|B"
            )
        match = _COMPARISON.fullmatch(condition.strip())
        if match is None:
            raise ValueError(f"condition {condition!r} can't be read; {RULE_HELP}")
        _add_condition(fields, match["field"].lower(), match["op"].lower(), match["value"].strip(), condition)
    return fields


def _add_condition(fields: dict[str, Any], name: str, op: str, value: str, condition: str) -> None:
    alternatives = tuple(part.strip() for part in value.split("|"))
    equals = op in {"", "is", "in", "=="}
    new: dict[str, Any]
    if name in _LISTED and equals:
        new = {name: tuple(map(_LISTED[name], alternatives))}
    elif name == "severity" and (equals or op in {">=", "<="}):
        bound = value.lower()
        new = ({} if op == "<=" else {"min_severity": bound}) | (
            {} if op == ">=" else {"max_severity": bound}
        )
    elif name in PROBABILITIES and op in {"<", ">="}:
        new = {f"{name}_below" if op == "<" else f"min_{name}": value}
    else:
        raise ValueError(f"condition {condition!r} can't be read; {RULE_HELP}")
    twice = new.keys() & fields.keys()
    if twice:
        raise ValueError(
            f"condition {condition!r} sets {', '.join(sorted(twice))} a second time; {RULE_HELP}"
        )
    fields.update(new)


# The line between "confident" and "unsure", in one place. docs/tune.md has what was found on real answers.
CONFIDENT_CONTRADICTION: Final = 0.85
"""A contradiction of this probability stops the answer. Not above the 0.9 that LLM judges assume unasked."""
NEARLY_SUPPORTED: Final = 0.5
"""From this probability of support on, a critical claim that is partly supported needs no reviewer."""
INVENTED: Final = 0.15
"""Below this probability of support a critical figure that stands in no source is taken out."""
FLAG_BELOW: Final = 0.55
BLOCK_BELOW: Final = 0.0

# The guard withholds text for what it knows, never for mere doubt: a confident contradiction or another
# figure for the same thing stops the answer, and one that no source has is redacted where it is critical,
# a contact or contradicted. The rest is shown, and flagged for reviewers.
DEFAULT_RULES: Final = (
    "contradicted: "
    f"verdict CONTRADICTED and severity >= major and contradiction >= {CONFIDENT_CONTRADICTION}: block",
    "other figure: finding figure_conflict and severity >= major: block",
    "critical figure not found: "
    f"finding figure_absent and severity >= critical and support < {INVENTED}: redact",
    f"contact not found: finding figure_absent and support < {INVENTED} and reason contact: redact",
    "wrong figure: "
    f"verdict CONTRADICTED and finding figure_absent and severity >= major and support < {INVENTED}: redact",
    "doubtful figure: finding figure_absent|figure_conflict and severity >= major: flag",
    "not supported: verdict CONTRADICTED|UNSUPPORTED and severity >= normal: flag",
    "partly supported: "
    f"verdict PARTIALLY_SUPPORTED and severity >= critical and support < {NEARLY_SUPPORTED}: flag",
    "ambiguous: finding figure_ambiguous|other_thing|contexts_disagree: flag",
    "left open: finding calculation_unchecked|language_uncovered|judge_refused|judge_unclear"
    "|too_many_claims: flag",
    "link or look-alike: finding link_absent|display_mismatch: flag",
    "checked in part: finding checked_in_part and severity >= normal: flag",
)

SCORE_BELOW: Final = "score < "
"""How the names of the rules begin that are about the score."""
ON_UNVERIFIED: Final = "on_unverified: "
"""How the names of the rules begin that are about claims without a verdict."""
LEFT_OPEN_RULE: Final = "left open"
"""What holds for a claim that a judge left open where no rule names its finding: it is never clean."""

WITHHELD: Final = "This answer was withheld because it could not be verified against the source documents."
UNAVAILABLE: Final = "This answer was withheld because it could not be checked. Please try again later."


NAMES_A_POLICY: Final = "names a policy"
"""Marks the fields of settings that hold the name of a policy."""
RULE_LISTS: Final = ("rules_before", "rules", "rules_after")
"""The settings of a policy that hold rules, in the order in which they are tried."""
_Rules = Annotated[
    tuple[Rule, ...],
    WithJsonSchema({"type": "array", "items": {"type": "string", "description": f"{RULE_HELP}."}}),
]


class Policy(Frozen):
    """Thresholds, weights, rules and mode; chosen by route, tenant or generator model."""

    score_after_claims: ClassVar[int] = 4
    """In stream mode ``block_below`` applies to the running score only after this many checked claims: else
    the first doubtful sentence of any answer would block it. At the end, and in hold mode, it always applies.
    """
    max_segment_chars: ClassVar[int] = DEFAULT_MAX_SEGMENT_CHARS
    """Text without a sentence end is cut at about this many characters."""

    name: Annotated[str, Field(min_length=1)] = Field(
        default="default",
        description="Reported in every verdict; in a configuration file it is the policy's key.",
    )
    version: Annotated[str, Field(min_length=1)] = Field(
        default="1",
        description="Change it with the policy: it is part of every verdict and of output ids.",
    )
    extends: Annotated[Annotated[str, Field(min_length=1)] | None, NAMES_A_POLICY] = Field(
        default=None,
        description="In a configuration file: the policy that provides the settings omitted here. "
        "Mappings are merged, lists replaced. null: the built-in defaults.",
    )
    mode: Mode = Field(
        default="stream",
        description="hold: nothing is released before the last verdict, then the whole answer, with "
        "redactions as the rules say, or nothing. stream: each segment is released when its "
        "claims pass. observe: everything is released at once, and verdicts follow.",
    )
    rules: _Rules = Field(
        default_factory=lambda: tuple(Rule.model_validate(rule) for rule in DEFAULT_RULES),
        description="Tried in order on every checked claim, and those with a finding on claims that the "
        "judge left open; the first that matches decides its segment. Each is a line, "
        "CONDITION and CONDITION: ACTION (docs/policies.md). Replaces all rules of the policy that this one "
        "extends.",
    )
    rules_before: _Rules = Field(
        default=(), description="Rules to try before all others, including inherited ones."
    )
    rules_after: _Rules = Field(
        default=(), description="Rules to try after all others, including inherited ones."
    )
    judge: JudgeKind | None = Field(
        default=None,
        description="Which of the judges configured under judge gives the verdicts; null: judge.kind.",
    )
    budget: ResponseBudget | None = Field(
        default=None,
        description="What the LLM judge may consume for a response; null: no bound.",
    )
    flag_below: Probability = Field(
        default=FLAG_BELOW, description="Flag a response whose score is below this."
    )
    block_below: Probability = Field(
        default=BLOCK_BELOW, description="Block a response whose score is below this."
    )
    score: Formula = Field(
        default=Formula.SEVERITY_WEIGHTED,
        description="How claims count in the score. severity_weighted: by their probability of "
        "support. credits: by their verdict, 1 for SUPPORTED, 0.5 for PARTIALLY_SUPPORTED, 0 else. The two "
        "need different thresholds.",
    )
    weights: dict[Severity, Annotated[float, Field(ge=0)]] = Field(
        default_factory=lambda: dict(DEFAULT_WEIGHTS), description="Weight of each severity in the score."
    )
    on_unverified: FailPolicy = Field(
        default=FailPolicy.FAIL_CLOSED,
        description="What happens if the judge can't decide a claim in time: fail_closed blocks, "
        "fail_open releases, flag releases and flags.",
    )
    on_incomplete: OnIncomplete = Field(
        default=OnIncomplete.BLOCK,
        description="What happens if the text ends early (aborted, timed out, gap): block, or judge "
        "what arrived and flag or release it.",
    )
    claim_timeout_ms: Annotated[int, Field(gt=0)] = Field(
        default=10_000,
        description="Longest wait for a claim's verdict. While the judge is working on earlier claims "
        "of the same response, the time counts from their latest verdict.",
    )
    incomplete_timeout_ms: Annotated[int, Field(gt=0)] = Field(
        default=60_000, description="A response is incomplete if no event arrives for this long."
    )
    segment_kinds: dict[SegmentKind, Decision] = Field(
        default_factory=dict,
        description="What happens to segments of a kind, whatever their claims say, e.g. {code: flag}.",
    )
    fallback_message: Message = Field(
        default=WITHHELD,
        description="What the user sees in place of a blocked response: a text, or a text for each of "
        "the response's languages, {default: TEXT, de: TEXT}.",
    )
    unavailable_message: Message | None = Field(
        default=None,
        description="What the user sees if the block says nothing about the answer: the judge gave no "
        "verdict, the text ended early, or the guard had no room. A text, or texts by "
        "language. null: fallback_message if that is set, else a built-in text.",
    )
    redaction_text: Message = Field(
        default="[removed: not backed by the sources]",
        description="What replaces a redacted segment: a text, or texts by language.",
    )
    severity: SeverityRules = Field(
        default_factory=SeverityRules, description="Your own severity patterns and keywords."
    )

    @model_validator(mode="after")
    def _not_extending(self) -> Self:
        if self.extends is not None:
            raise ValueError(
                "extends is for configuration files; in Python, copy a policy: base.model_copy(update={…})"
            )
        return self

    @model_validator(mode="after")
    def _rules_joined(self) -> Self:
        if self.rules_before or self.rules_after:
            object.__setattr__(self, "rules", (*self.rules_before, *self.rules, *self.rules_after))
            object.__setattr__(self, "rules_before", ())
            object.__setattr__(self, "rules_after", ())
        return self

    @model_validator(mode="after")
    def _rules_reached(self) -> Self:
        for place, rule in enumerate(self.rules):
            if rule.conditions:
                continue
            # One that releases leaves out what a judge left open.
            behind = [
                each for each in self.rules[place + 1 :] if not (each.for_open and not rule.decides_open)
            ]
            if behind:
                raise ValueError(
                    f"rules: {rule.line!r} decides every claim, and {behind[0].line!r} behind it none; move "
                    "the first behind all others (rules_after), or take out one of them"
                )
        return self

    @model_validator(mode="after")
    def _unverified_decided_once(self) -> Self:
        for rule in self.rules:
            open_alone = Verdict.UNVERIFIED in rule.verdict and not rule.finding
            if open_alone and rule.action.rank > self.decides_unanswered.rank:
                raise ValueError(
                    f"rules: {rule.line!r} never sees a claim that no judge answered, and on_unverified: "
                    f"{self.on_unverified} is milder; set on_unverified: fail_closed, or name what a judge "
                    f"left open: finding {'|'.join(sorted(LEFT_OPEN))}"
                )
        return self

    @field_validator("fallback_message", "unavailable_message", "redaction_text", mode="before")
    @classmethod
    def _text_or_texts(cls, value: Any) -> Any:
        return value if value is None else checked_message(value)

    @field_validator("weights")
    @classmethod
    def _all_weights(cls, value: dict[Severity, float]) -> dict[Severity, float]:
        weights = {**DEFAULT_WEIGHTS, **value}
        if not any(weights.values()):
            raise ValueError("all are 0, so that no claim counts in the score; give one of them a weight")
        return weights

    @model_validator(mode="after")
    def _ordered(self) -> Policy:
        if self.block_below > self.flag_below:
            raise ValueError(
                f"block_below ({self.block_below:g}) is above flag_below ({self.flag_below:g}); "
                "a response would be blocked before it is flagged: lower block_below or raise flag_below"
            )
        return self

    @model_validator(mode="after")
    def _reasons_exist(self) -> Policy:
        disabled = self.severity.disabled_reasons
        own = dict.fromkeys(pattern.reason for pattern in self.severity.patterns)
        given = {name: None for name in SEVERITY_REASONS if name not in disabled} | own
        for name in (name for rule in self.rules for name in rule.reason):
            if name not in given:
                raise ValueError(f"rules: no claim ever has the reason {name!r}; {_one_of(name, given)}")
        for name in sorted(disabled):
            if name not in SEVERITY_REASONS:
                remedy = _one_of(name, SEVERITY_REASONS)
                raise ValueError(f"severity.disabled_reasons: there is no reason {name!r}; {remedy}")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, which are not validated."""
        copied = super().model_copy(update=update, deep=deep)
        for derived in ("ref", "_rules_for"):  # they would be the original's
            copied.__dict__.pop(derived, None)
        return copied

    @cached_property
    def ref(self) -> PolicyRef:
        """How verdicts identify the policy; ``digest`` distinguishes policies with different content.

        It is over everything but the name, and the constants that decide too, as canonical JSON without
        nulls, so that adding a setting later changes no digest.
        """
        content = self.model_dump(
            mode="json", exclude={"name", "extends", "rules_before", "rules_after"}, exclude_none=True
        )
        content |= {
            "credits": dict(DEFAULT_CREDITS),
            "score_after_claims": self.score_after_claims,
            "max_segment_chars": self.max_segment_chars,
        }
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        digest = blake2b(canonical.encode(), digest_size=6).hexdigest()
        return PolicyRef(name=self.name, version=self.version, digest=digest)

    def blocked_message(self, language: str | None, *, technical: bool) -> str:
        """What the user sees in place of a blocked response; ``technical`` if the block says nothing about
        the answer itself.
        """
        message: Message = self.fallback_message
        if technical and self.unavailable_message is not None:
            message = self.unavailable_message
        elif technical and message == WITHHELD:
            message = UNAVAILABLE
        return message_in(message, language)

    def redaction(self, language: str | None = None) -> str:
        """What replaces a redacted segment."""
        return message_in(self.redaction_text, language)

    @property
    def decides_unanswered(self) -> Decision:
        """What happens to a claim on which no judge could say anything."""
        return _UNVERIFIED[self.on_unverified]

    @property
    def unverified_rule(self) -> str:
        """The name of the rule that decides a claim on which no judge could say anything."""
        return f"{ON_UNVERIFIED}{self.on_unverified}"

    def decide_claim(self, claim: ClaimVerdict) -> tuple[Decision, str]:
        """What happens to this claim's segment, and the rule that decided it."""
        left_open = claim.verdict is Verdict.UNVERIFIED
        if left_open and claim.unanswered:
            return self.decides_unanswered, self.unverified_rule
        for rule in self._rules_for[claim.verdict, bool(claim.findings)]:
            if rule.matches(claim):
                return rule.action, rule.name
        return (Decision.FLAG, LEFT_OPEN_RULE) if left_open else (Decision.RELEASE, "no rule matched")

    @cached_property
    def _rules_for(self) -> dict[tuple[Verdict, bool], tuple[Rule, ...]]:
        """In order, the rules that a claim may meet with this verdict, and with any finding or none."""
        return {
            (verdict, found): tuple(
                rule
                for rule in self.rules
                if (not rule.verdict or verdict in rule.verdict)
                and (found or not rule.finding)
                and (rule.decides_open or verdict is not Verdict.UNVERIFIED)
            )
            for verdict in Verdict
            for found in (True, False)
        }

    def decide_score(self, score: float | None) -> tuple[Decision, str]:
        """The decision by the score alone."""
        if score is None:
            return Decision.RELEASE, "nothing to check"
        if score < self.block_below:
            return Decision.BLOCK, f"{SCORE_BELOW}block_below {self.block_below:g}"
        if score < self.flag_below:
            return Decision.FLAG, f"{SCORE_BELOW}flag_below {self.flag_below:g}"
        return Decision.RELEASE, "score and rules passed"


NO_CONTEXTS: Final = "no contexts"
"""The rule that decides a claim of an answer whose documents are missing."""


@dataclass(frozen=True)  # without slots: adapters read the defaults off the class
class MissingContexts:
    """What happens to the claims of an answer that came without documents; what states nothing passes.

    ``refuse`` blocks the answer and shows ``message`` in its place, ``flag`` shows and flags it. Raises
    ConfigError for anything else.
    """

    action: Literal["refuse", "flag"] = "refuse"
    message: str = (
        "This answer was withheld because the documents that it should rest on were not given, so that it "
        "could not be checked."
    )

    def __post_init__(self) -> None:
        if self.action not in {"refuse", "flag"}:
            raise ConfigError(f"missing_contexts: {self.action!r} is unknown; write refuse or flag")

    def applied_to(self, policy: Policy) -> Policy:
        """The policy for such an answer: that claim by claim decides this, and neither rules nor score."""
        refuse = self.action == "refuse"
        return policy.model_copy(
            update={
                "rules": (Rule(name=NO_CONTEXTS, action=Decision.BLOCK if refuse else Decision.FLAG),),
                "on_unverified": FailPolicy.FAIL_CLOSED if refuse else FailPolicy.FLAG,
                "block_below": 0.0,
                "flag_below": 0.0,
                "fallback_message": self.message,
                "unavailable_message": None,
            }
        )


_UNVERIFIED: Final = {
    FailPolicy.FAIL_CLOSED: Decision.BLOCK,
    FailPolicy.FAIL_OPEN: Decision.RELEASE,
    FailPolicy.FLAG: Decision.FLAG,
}


def _one_of(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else f"write one of {', '.join(names)}"
