"""Token streams of many responses at once, made here, the same for the same arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator

from guardrail.events import Context, Event, ResponseCompleted, ResponseDelta, ResponseStarted

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


def token_streams(
    responses: int, *, at_once: int, answer_chars: int = 1_000, delta_chars: int = 4, seed: int = 0
) -> Iterator[Event]:
    """Responses that stream side by side, ``at_once`` of them at any time, delta by delta in turn."""
    rng = random.Random(seed)
    waiting = iter(range(responses))
    live: list[Iterator[Event]] = []
    while True:
        while len(live) < at_once and (number := next(waiting, None)) is not None:
            answer = sentences(rng, max(1, answer_chars // 62))
            live.append(_one(number, answer, sentences(rng, 10), delta_chars))
        if not live:
            return
        still = []
        for stream in live:
            event = next(stream, None)
            if event is not None:
                still.append(stream)
                yield event
        live = still


def _one(number: int, answer: str, context: str, delta_chars: int) -> Iterator[Event]:
    response_id = f"bench-{number}"
    yield ResponseStarted(
        response_id=response_id, question="What is covered?", contexts=(Context(id="c1", text=context),)
    )
    seq = 0
    for start in range(0, len(answer), delta_chars):
        yield ResponseDelta(response_id=response_id, seq=seq, text=answer[start : start + delta_chars])
        seq += 1
    yield ResponseCompleted(response_id=response_id, seq=seq)
