"""Settings of the LLM judge: which models it asks, how it reaches them, and what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any, ClassVar, Final, Literal, cast

import yaml
from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from guardrail.errors import ConfigError, said_wrong
from guardrail.frozen import Frozen
from guardrail.judges.http import OPENAI_BASE_URL, BaseUrl, ModelHeaders, PaidModelSettings
from guardrail.leaves import mapped
from guardrail.secrets import MASK, Secret, wants_all

# ------------------------------------------------------------------------------------- how a model is reached


# What the judge sends itself, and what to do instead. A member of the same name would silently replace it:
# another model would judge, or other texts be judged, or nothing would hold the reply to its form.
_OWN: Final = {
    "model": "set model",
    "messages": "write prompts of your own and set prompts",
    "stream": "leave it to the judge, which learns whether the server streams",
    "stream_options": "leave it to the judge, which learns whether the server streams",
    "response_format": "leave it to the judge, which learns what the server takes",
    "max_completion_tokens": "set max_output_tokens",
}


def _checked_body(body: dict[str, Any]) -> dict[str, Any]:
    for name, remedy in _OWN.items():
        if name in body:
            raise ValueError(f"{name!r} would override what the judge sends itself; take it out and {remedy}")
    return body


def _serialized_body(value: dict[str, Any], info: Any) -> Any:
    """The members by name. Numbers, true and false are shown; texts are masked, since any may be a key."""
    if wants_all(info):
        return value
    return mapped(
        value, lambda leaf: leaf.value if isinstance(leaf.value, bool | int | float | None) else MASK
    )


ExtraBody = Annotated[
    dict[str, Any],
    AfterValidator(_checked_body),
    PlainSerializer(_serialized_body, return_type=dict[str, Any], when_used="json"),
]
"""Extra members of the body. As JSON their texts are masked."""


class ChatModelSettings(Frozen):
    """A model and how it is reached: the judge's own, and each that is asked when the ones before it fail.

    What a fallback leaves out is as for the first model, whose key and headers go to its own server only, and
    its body to no other model.
    """

    model: Annotated[str, Field(min_length=1)] = Field(description="Model to ask.")
    base_url: BaseUrl | None = Field(
        default=None, description="Root of the API; if omitted, the first model's server."
    )
    api_key: Secret | None = Field(
        default=None,
        description="Key of the API, like judge.llm.api_key; if omitted, the first model's on the "
        "same server.",
    )
    extra_headers: ModelHeaders | None = Field(
        default=None, description="HTTP headers to add; if omitted, the first model's on the same server."
    )
    extra_body: ExtraBody = Field(
        default_factory=dict,
        repr=False,
        description="Members to add to the body of every call: reasoning_effort, seed, temperature, a "
        "server's own options; none that the judge itself sends. max_tokens replaces "
        "max_output_tokens.",
    )


# ---------------------------------------------------------------------------------- prompts of the user's own

PromptName = Literal["system", "user"]


_VARIABLES: Final[Mapping[PromptName, tuple[frozenset[str], frozenset[str]]]] = {
    "system": (
        frozenset({"reply_form", "marker"}),
        frozenset({"verdict_rules", "examples"}),
    ),
    "user": (frozenset({"documents", "claims", "asked", "notice"}), frozenset({"question"})),
}
"""The variables of a prompt: those without which the model lacks something it must know, and others."""


def prompt_of(name: PromptName, text: str) -> Template:
    """The prompt of a text. Raises ValueError, which names unknown and missing variables."""
    template = Template(text.strip())
    if not template.is_valid():
        raise ValueError("a $ is not followed by the name of a variable; write $$ for the character itself")
    required, optional = _VARIABLES[name]
    used = set(template.get_identifiers())
    unknown = sorted(used - required - optional)
    missing = sorted(required - used)
    if unknown or missing:
        wrong = [
            f"{kind} variable{'s'[: len(names) > 1]} {', '.join(f'${n}' for n in names)}"
            for kind, names in (("unknown", unknown), ("missing", missing))
            if names
        ]
        there_are = ", ".join(f"${n}" for n in sorted(required | optional))
        raise ValueError(f"{' and '.join(wrong)} in the {name} prompt; there are {there_are}")
    return template


MOST_EXAMPLES: Final = 20
_Text = Annotated[str, Field(min_length=1, max_length=2_000)]
_Numbers = tuple[Annotated[int, Field(ge=1)], ...]
_Verdict = Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"]


class ExamplePart(Frozen):
    """One statement of a claim that contains several."""

    text: _Text
    verdict: _Verdict
    evidence: _Numbers = ()


class ExampleClaim(Frozen):
    """A claim and the verdict on it. ``evidence`` and ``against`` number the example's sentences from 1."""

    text: _Text
    verdict: _Verdict
    evidence: _Numbers = ()
    against: _Numbers = ()
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.97
    reasoning: str = ""
    parts: tuple[ExamplePart, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> ExampleClaim:
        if self.verdict == "UNSUPPORTED" and self.evidence:
            raise ValueError(
                "a claim that is UNSUPPORTED has evidence; leave evidence out, or correct the verdict"
            )
        if self.verdict != "UNSUPPORTED" and not self.evidence:
            raise ValueError(
                f"a claim that is {self.verdict} has no evidence; give the numbers of its sentences"
            )
        if self.against and self.verdict not in {"SUPPORTED", "PARTIALLY_SUPPORTED"}:
            raise ValueError(f"a claim that is {self.verdict} has against; leave it out")
        if self.parts and self.verdict != together(part.verdict for part in self.parts):
            raise ValueError(
                f"the parts of a claim don't add up to {self.verdict}; correct the parts or the verdict"
            )
        return self


class Example(Frozen):
    """Sentences of a document, claims about them, and their verdicts."""

    sentences: tuple[_Text, ...]
    question: str = ""
    claims: tuple[ExampleClaim, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Example:
        if not self.sentences or not self.claims:
            raise ValueError("an example has no sentences or no claims; give it at least one of each")
        for number, claim in enumerate(self.claims, 1):
            beyond = [n for n in (*claim.evidence, *claim.against) if n > len(self.sentences)]
            if beyond:
                raise ValueError(
                    f"claim {number} names sentence {beyond[0]} of {len(self.sentences)}; "
                    "sentences are numbered from 1 in the order they stand"
                )
        return self


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a claim from those on its parts, of which there is at least one."""
    given = set(verdicts)
    if "CONTRADICTED" in given:
        return "CONTRADICTED"
    return given.pop() if len(given) == 1 else "PARTIALLY_SUPPORTED"


def examples_from(found: object) -> tuple[Example, ...]:
    """The examples of a list of mappings. Raises ValueError."""
    try:
        return _EXAMPLES.validate_python(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where + ': ' if where else ''}{said_wrong(first)}") from None


_EXAMPLES: Final = TypeAdapter(Annotated[tuple[Example, ...], Field(max_length=MOST_EXAMPLES)])


def _read(name: str, path: Path) -> Any:
    """The prompt, or the examples, in a file. Raises ValueError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        remedy = "guardrail config show --prompt system --template prints one to begin from"
        if name == "examples":
            remedy = "name a file with a list of examples"
        raise ValueError(f"{path} can't be read ({why}); {remedy}") from None
    if name != "examples":
        return prompt_of(cast("PromptName", name), text)
    try:
        return examples_from(yaml.safe_load(text))
    except yaml.YAMLError:
        raise ValueError(f"{path} is not YAML; write a list of examples") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _readable(name: str) -> AfterValidator:
    def validate(path: Path) -> Path:
        _read(name, path)
        return path

    return AfterValidator(validate)


class PromptFiles(Frozen):
    """Files that replace the package's prompts; read and checked when the settings load."""

    system: Annotated[Path, _readable("system")] | None = Field(
        default=None,
        description="The instructions. Required variables: $reply_form and $marker. Optional: "
        "$verdict_rules and $examples.",
    )
    user: Annotated[Path, _readable("user")] | None = Field(
        default=None,
        description="The data. Required variables: $documents, $claims, $asked and $notice. Optional: "
        "$question. Put first what changes least, because providers cache what many calls "
        "have in common.",
    )
    examples: Annotated[Path, _readable("examples")] | None = Field(
        default=None,
        description="YAML file with a list of at most 20 example verdicts, for $examples; [] for none.",
    )

    _given: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Prompts and examples that an application gives without a file; not a setting."""

    def given(self, texts: Mapping[str, Any]) -> PromptFiles:
        """These, but for ``texts``: prompts, and ``examples`` as a list of mappings. Raises ValueError, which
        begins with the name of what is wrong.
        """
        made = self.model_copy()
        for name, text in texts.items():
            try:
                own = examples_from(text) if name == "examples" else prompt_of(cast("PromptName", name), text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            made._given = {**made._given, name: own}
        return made

    def own(self, name: str) -> Any:
        """The prompt of this name, or the examples, in place of the package's; None for those.

        Raises ConfigError if the file has become unusable since the settings were loaded.
        """
        path = getattr(self, name)
        if name in self._given or path is None:
            return self._given.get(name)
        try:
            return _read(name, path)
        except ValueError as error:
            raise ConfigError(f"judge.llm.prompts.{name}: {error}") from None


# -------------------------------------------------------------------------------------------------- the judge


class LlmJudgeSettings(PaidModelSettings, ChatModelSettings):
    """Which model judges, how to reach it, and what it may cost in time and tokens."""

    section: ClassVar[str] = "judge.llm"
    temperature: ClassVar[float] = 0.0
    """The same claims are to get the same verdicts. Models that refuse it are sent none, which is learned."""
    ask_again: ClassVar[bool] = True
    """Ask once more, for those alone, when a reply lacks verdicts that were asked for and there is time left.
    Models drop a claim now and then, and one short call costs less than an answer that is blocked for it."""
    whole_context_chars: ClassVar[int] = 24_000
    """Contexts of up to so many characters are sent whole in each call of a response, in the same words, so
    that a prefix cache serves them. Of longer ones the passages closest to each claim cost less even where
    the server caches (docs/llm-judge.md)."""
    stall_s: ClassVar[float] = 10.0
    """Longest silence in a streamed reply; after that the call ends, and its complete verdicts are used.
    Comments that keep a connection open count as silence."""
    first_token_share: ClassVar[float] = 0.5
    """The share of its time that a call waits for the first token, if that is longer: a small machine may
    read a long prompt for a minute. The rest is for a retry or a fallback where the server hangs."""

    model: Annotated[str, Field(min_length=1)] = Field(
        default="gpt-4.1-mini",
        description="Model to ask; preferably not the one that writes the answers.",
    )
    base_url: BaseUrl = Field(
        default=OPENAI_BASE_URL,
        description="Root of an OpenAI-compatible API (OpenAI, vLLM, llama.cpp, Ollama, …), including "
        "/v1. A query (Azure's ?api-version=…) is sent with every call; the URL is shown, "
        "so don't put a key in it.",
    )
    max_output_tokens: Annotated[int, Field(ge=64)] = Field(
        default=4_096, description="Most tokens in one reply; verdicts complete by then are used."
    )
    max_concurrency: Annotated[int, Field(gt=0)] = Field(
        default=64,
        description="Most concurrent calls; fewer if the server turns out to take fewer. Further "
        "calls wait their turn, within their deadline.",
    )
    fallbacks: Annotated[tuple[ChatModelSettings, ...], Field(max_length=8)] = Field(
        default=(),
        description="Models to ask, in this order, when the first one fails or its circuit breaker is open.",
    )

    reasoning: Literal["none", "not_supported"] = Field(
        default="not_supported",
        description="not_supported: ask for a short reason where a claim is not supported. With none "
        "replies are shorter, and verdicts come sooner.",
    )
    decompose: bool = Field(
        default=False,
        description="Split claims of several statements and resolve pronouns in the same call. The "
        "claim's verdict is then computed from the verdicts on its parts. Evaluations whose scores "
        "count statements do so unless false is written here.",
    )
    prompts: PromptFiles = Field(
        default_factory=PromptFiles, description="Prompts and examples of your own, in files."
    )

    _transport: Any = PrivateAttr(None)
    """What answers in place of the server, as the client's HTTP library has it; not a setting."""

    def models(self) -> tuple[LlmJudgeSettings, ...]:
        """The settings of each model in the order of asking: this one, then its fallbacks."""
        return (self, *(self.model_copy(update=self._changes(fallback)) for fallback in self.fallbacks))

    def _changes(self, fallback: ChatModelSettings) -> dict[str, Any]:
        """The values that differ for a fallback."""
        changed: dict[str, Any] = {"model": fallback.model, "extra_body": fallback.extra_body}
        same_server = fallback.base_url in {None, self.base_url}
        if not same_server:
            changed["base_url"] = fallback.base_url
        if fallback.api_key is not None or not same_server:
            changed["api_key"] = fallback.api_key
        if fallback.extra_headers is not None or not same_server:
            changed["extra_headers"] = fallback.extra_headers or {}
        return changed
