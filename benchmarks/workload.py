"""Answers and token streams for benchmarks, made here, the same for the same arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from guardrail.events import Context, Event, Response, ResponseCompleted, ResponseDelta, ResponseStarted

DELTA_CHARS: Final = 4
"""Of a token, where there are no real ones."""
_SUBJECTS = ("The basic plan", "The warranty", "A refund", "The ticket", "Your account", "The device")
_VERBS = ("costs", "covers", "includes", "allows", "requires", "replaces")
_OBJECTS = (
    "two bags of up to 23 kg on every flight",
    "$49 a month for up to five users",
    "damage by water within the first 24 months",
    "a written notice of thirty days before the end of the term",
    "support by e-mail on working days between 9 AM and 5 PM",
    "one dose of 400 mg every eight hours with food",
)
_FACTS = (
    ("The {name} plan costs ${price} a month.", "You pay ${price} every month for the {name} plan."),
    (
        "Refunds for the {name} plan are paid within {days} days.",
        "You get a refund for the {name} plan within {days} days.",
    ),
    (
        "Support for the {name} plan answers within {hours} hours.",
        "With the {name} plan you hear from support within {hours} hours.",
    ),
    ("The {name} plan includes {size} GB of storage.", "The {name} plan comes with {size} GB of storage."),
)
_NAMES = ("Basic", "Pro", "Team", "Family", "Student", "Studio", "Garden", "Harbour")


def right_answer(rng: random.Random, response_id: str) -> Response:
    """Four sentences that say in other words what their document says, so that the verifier reads them."""
    values = {
        "name": rng.choice(_NAMES),
        "price": rng.randint(11, 99),
        "days": rng.randint(11, 60),
        "hours": rng.randint(12, 72),
        "size": rng.randint(100, 900),
    }
    says, said = (" ".join(each.format(**values) for each in texts) for texts in zip(*_FACTS, strict=True))
    context = Context(id="doc", text=says)
    return Response(
        response_id=response_id, question="What does it come with?", contexts=(context,), answer=said
    )


def sentences(rng: random.Random, count: int) -> str:
    """``count`` sentences of about 60 characters, each a claim."""
    return " ".join(
        f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)}." for _ in range(count)
    )


def text_of(chars: int, seed: int = 0) -> str:
    """Prose with headings and lists, exactly ``chars`` code points long."""
    rng = random.Random(seed)
    parts: list[str] = []
    size = 0
    while size < chars:
        items = f"- {sentences(rng, 1)}\n- {sentences(rng, 1)}"
        parts.append(f"## Part {len(parts)}\n\n{sentences(rng, 5)}\n\n{items}\n\n")
        size += len(parts[-1])
    return "".join(parts)[:chars]


def made_up(rng: random.Random, response_id: str, chars: int) -> Response:
    """An answer of about so many characters that nothing in its one context is about."""
    context = Context(id="c1", text=sentences(rng, 10))
    answer = sentences(rng, max(1, chars // 62))
    return Response(response_id=response_id, question="What is covered?", contexts=(context,), answer=answer)


def events_of(response: Response, pieces: Sequence[str] | None = None) -> Iterator[Event]:
    """The response as it streams, in ``pieces`` or in deltas of ``DELTA_CHARS``."""
    text = response.answer
    pieces = pieces or [text[at : at + DELTA_CHARS] for at in range(0, len(text), DELTA_CHARS)]
    yield ResponseStarted.model_validate(response.model_dump(exclude={"type", "answer", "metadata"}))
    for seq, piece in enumerate(pieces):
        yield ResponseDelta(response_id=response.response_id, seq=seq, text=piece)
    yield ResponseCompleted(response_id=response.response_id, seq=len(pieces))


def token_streams(responses: int, *, at_once: int, answer_chars: int = 1_000) -> Iterator[Event]:
    """Responses that stream side by side, ``at_once`` of them at any time, delta by delta in turn."""
    rng = random.Random(0)
    waiting = iter(range(responses))
    live: list[Iterator[Event]] = []
    while True:
        while len(live) < at_once and (number := next(waiting, None)) is not None:
            live.append(events_of(made_up(rng, f"bench-{number}", answer_chars)))
        if not live:
            return
        still = []
        for stream in live:
            event = next(stream, None)
            if event is not None:
                still.append(stream)
                yield event
        live = still
