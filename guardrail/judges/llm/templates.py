"""The words of the prompt: files with named variables, those of the package or your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from guardrail.errors import ConfigError

Name = Literal["system", "user"]


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a prompt. Without a required one, the model could not know what it must."""

    required: frozenset[str]
    optional: frozenset[str]


VARIABLES: Final[Mapping[Name, Variables]] = {
    "system": Variables(
        frozenset({"reply_form", "member_rules", "marker"}), frozenset({"verdict_rules", "examples"})
    ),
    "user": Variables(frozenset({"documents", "claims", "asked", "notice"}), frozenset({"question"})),
}


def check(name: Name, text: str) -> Template:
    """The template that ``text`` is. Raises ValueError, which names unknown and missing variables."""
    template = Template(text)
    if not template.is_valid():
        raise ValueError("a $ is not followed by the name of a variable; write $$ for the character itself")
    used = set(template.get_identifiers())
    known = VARIABLES[name]
    unknown = sorted(used - known.required - known.optional)
    missing = sorted(known.required - used)
    if unknown or missing:
        wrong = [
            f"{kind} variable{'s'[: len(names) > 1]} {', '.join(f'${n}' for n in names)}"
            for kind, names in (("unknown", unknown), ("missing", missing))
            if names
        ]
        there_are = ", ".join(f"${n}" for n in sorted(known.required | known.optional))
        raise ValueError(f"{' and '.join(wrong)} in the {name} prompt; there are {there_are}")
    return template


def _read(name: Name, path: Path) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ValueError(
            f"{path} can't be read ({reason}); guardrail prompts show --template prints one to begin from"
        ) from None
    return check(name, text.strip())


def _valid(name: Name) -> AfterValidator:
    def validate(path: Path) -> Path:
        _read(name, path)
        return path

    return AfterValidator(validate)


class PromptFiles(BaseModel):
    """Files to take the prompts from, instead of the package's; read and checked when settings load."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: Annotated[Path, _valid("system")] | None = Field(
        default=None,
        description="The instructions. Variables: $reply_form, $member_rules and $marker, which must be "
        "there, $verdict_rules and $examples.",
    )
    user: Annotated[Path, _valid("user")] | None = Field(
        default=None,
        description="The data. Variables: $documents, $claims, $asked and $notice, which must be there, and "
        "$question. What changes least should come first: providers cache what is the same in many calls.",
    )


@cache
def shipped(name: Name) -> Template:
    """The prompt of the package."""
    return Template(_shipped_text(f"{name}.md").strip())


@cache
def rules() -> dict[str, Any]:
    """The rules that settings choose among, by name."""
    loaded: dict[str, Any] = yaml.safe_load(_shipped_text("rules.yaml"))
    return loaded


def template(name: Name, chosen: PromptFiles) -> Template:
    """The prompt that is used. Raises ConfigError when its file is not what it was when settings loaded."""
    path: Path | None = getattr(chosen, name)
    if path is None:
        return shipped(name)
    try:
        return _read(name, path)
    except ValueError as error:
        raise ConfigError(f"judge.llm.prompts.{name}: {error}") from None


def _shipped_text(file: str) -> str:
    return (files("guardrail.judges.llm") / "prompts" / file).read_text(encoding="utf-8")
