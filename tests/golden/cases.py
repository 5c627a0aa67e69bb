"""The inputs: groups of cases, each with its settings, its model server and its steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from tests import chat_answers
from tests.verifier_cases import cases as written

FOLDER: Final = Path(__file__).parent
_DEMO: Final = files("guardrail") / "demo"
_EVERY_NTH_SOURCE: Final = 7
EXPECTED: Final = FOLDER / "expected"
STREAMED_CHARS: Final = 7

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """What is done to one guard, which has a broker of its own.

    ``id`` is the id of the response that its steps are about, where they name no other. ``head`` are the
    fields that its start has. ``settings`` are those of a guardrail.yaml; the text ``SERVER`` in them becomes
    the address of a model server that does what ``server`` says. A step is a mapping with one of these:

    - ``started``, ``whole``, ``delta``, ``completed``, ``aborted``: fields of such an event; for ``whole``
      and ``delta`` the text alone will do, and ``seq`` counts by itself;
    - ``text``: a text to stream in deltas of ``step`` characters (7);
    - ``raw``: a value as it is, as text or, in ``hex``, as bytes;
    - ``wait_ms``; ``restart`` (``crash``, or ``stop`` for an orderly one); ``reread``: all records so far are
      written once more.

    Beside it may stand ``id``, ``key`` and ``headers`` of the record, and ``pause_ms`` (20) to wait after it.
    """

    id: str
    steps: tuple[Step, ...]
    head: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    server: tuple[Mapping[str, Any], ...] = ()
    guard: Mapping[str, Any] = field(default_factory=dict)
    through: str = "broker"


def group_names() -> list[str]:
    """All groups: those that are made of other corpora, and a file each."""
    return [*_MADE, *sorted(path.stem for path in (FOLDER / "cases").glob("*.yaml"))]


def load(group: str, *, whole: bool = False) -> list[Case]:
    """The cases of a group. Raises KeyError and OSError when there is none of this name.

    Of a group that samples another corpus those that are recorded; ``whole``: all that could be.
    """
    found = list(_MADE[group]() if group in _MADE else _read(FOLDER / "cases" / f"{group}.yaml"))
    ids = [case.id for case in found]
    if len(set(ids)) < len(ids):
        raise ValueError(f"{group}: two cases have the same id")
    if whole or group not in SAMPLES:
        return found
    lines = (EXPECTED / f"{group}.jsonl").read_text(encoding="utf-8").splitlines()
    recorded = {json.loads(line).get("case") for line in lines}
    return [case for case in found if case.id in recorded]


def _read(path: Path) -> Iterator[Case]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    for each in content["cases"]:
        yield Case(
            id=each["id"],
            steps=tuple(each["steps"]),
            head={**content.get("head", {}), **each.get("head", {})},
            settings=_merged(content.get("settings", {}), each.get("settings", {})),
            server=tuple(each.get("server", content.get("server", ()))),
            guard={**content.get("guard", {}), **each.get("guard", {})},
            through=each.get("through", content.get("through", "broker")),
        )


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {**below, **above}
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping):
            both[name] = _merged(below[name], value)
    return both


def _demo() -> Iterator[Case]:
    """The demo's answers under its policies: streamed, and in turn through the broker and the Python API."""
    settings = yaml.safe_load((_DEMO / "guardrail.yaml").read_text(encoding="utf-8"))
    for number, line in enumerate((_DEMO / "answers.jsonl").read_text(encoding="utf-8").splitlines()):
        fields = json.loads(line)
        head = {name: fields[name] for name in ("question", "contexts", "route", "tenant", "generator_model")}
        steps: tuple[Step, ...] = ({"started": {}}, {"text": fields["answer"]}, {"completed": {}})
        through = "python" if number % 3 == 2 else "broker"
        yield Case(fields["response_id"], steps, head=head, settings=settings, through=through)


# Everything is judged: a block ends the judging.
_WATCHING: Final = {"policies": {"default": {"mode": "observe"}}}


def _chat() -> Iterator[Case]:
    """Answers as chat models write them: of four pairs the right one of the first, under the default policy,
    and the wrong one of the second, all of it judged. More would only take more room."""
    for number, case in enumerate(chat_answers.load("development")):
        contexts = [context.model_dump(mode="json", exclude_defaults=True) for context in case.contexts]
        head = {"question": case.question, "contexts": contexts}
        if number % 4 == 0:
            yield Case(f"{case.id}-right", ({"whole": case.answer.right},), head=head)
        elif number % 4 == 1:
            yield Case(f"{case.id}-wrong", ({"whole": case.answer.wrong},), head=head, settings=_WATCHING)


def _written() -> Iterator[Case]:
    """Written cases: of every so many sources, all claims on it as one answer."""
    sources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for located in written.load():
        sources.setdefault((located.domain, located.contexts), []).append(located.case.claim)
    for number, ((domain, contexts), claims) in enumerate(sources.items()):
        if number % _EVERY_NTH_SOURCE == 0:
            head = {"contexts": [{"id": f"c{n}", "text": text} for n, text in enumerate(contexts, start=1)]}
            answer = "\n".join(f"- {claim}" for claim in claims)
            yield Case(f"{domain}-{number}", ({"whole": answer},), head=head, settings=_WATCHING)


SAMPLES: Final = {"chat": 50, "written": 12}
"""Groups of which only those cases are recorded whose verdicts stand clear of every line, and at least how
many these are."""
_MADE: Final = {"demo": _demo, "chat": _chat, "written": _written}
