"""What a dialect is: where things stand in another gateway's request, and what its reply looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response

from consumers.gateway.answers import wrong
from consumers.gateway.refusals import Refused


class ShowableText(NamedTuple):
    """What becomes of a text, and how many characters at its end may go only if nothing more comes."""

    text: str
    held: int


@dataclass(frozen=True, slots=True)
class DialectCall:
    """One request, whatever its dialect. Without texts and completion there is nothing to judge yet."""

    rests_on: Mapping[str, Any] = field(default_factory=dict)
    """What says what the answer rests on, where a chat request says it."""
    texts: tuple[str, ...] | None = None
    """The answer, each text judged for itself."""
    completion: Mapping[str, Any] | None = None
    """The answer as a chat completion, where the product takes one back; ``rests_on`` is its request."""
    id: Any = None
    """Names the call of the model, by which an answer finds what its request said."""
    headers: Mapping[str, Any] = field(default_factory=dict)
    """Those of the product's own caller."""
    model: Any = None
    redacts: bool = False
    """The product surely shows the texts of a reply in place of the model's."""
    grows: bool = False
    """The texts are what has come so far, and the product takes back what may be shown of them."""


@dataclass(frozen=True, slots=True)
class GatewayDialect:
    """How one product asks, and how it is answered."""

    paths: tuple[str, ...]
    read: Callable[[str, Mapping[str, Any], Mapping[str, str]], DialectCall]
    """The request, by its path, body and headers. Raises Refused."""
    allow: Callable[[DialectCall, Sequence[ShowableText], Mapping[str, Any]], dict[str, Any]]
    """The reply that lets it pass, with its texts, or with its completion."""
    deny: Callable[[str, str, Mapping[str, Any]], dict[str, Any]]
    """The reply that blocks: a message, a rule, and the completion that shows the message."""
    cannot: str
    """What it can't enforce, for people."""

    def refused(self, refused: Refused) -> Response:
        """A refusal as a block: all of the products can be told to take an error for a pass, and one does."""
        return JSONResponse(self.deny(str(refused), refused.reason, {}), headers={"Connection": "close"})


def part(found: Any, name: str) -> Mapping[str, Any]:
    """An object within an object; nothing where there is none."""
    inner = found.get(name) if isinstance(found, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def texts_in(found: Any, name: str) -> tuple[str, ...]:
    """A list of texts. Raises Refused: what is no text can't be judged."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise wrong(f"{name}: give a list of texts")
    return tuple(found)
