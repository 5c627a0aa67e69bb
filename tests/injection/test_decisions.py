"""The decisions judge: no attack steers a model that obeys whatever stands outside of the fences."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import pytest
import pytest_asyncio

from guardrail.events import Verdict
from guardrail.judges.decisions import DecisionsJudge, DecisionsSettings
from tests.injection.corpus import Attack, fill, load
from tests.injection.judging import attacked
from tests.support.decisions_server import DecisionsServer
from tests.support.judges import reply_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRANSPORTS: Final = ("openai", "systemone", "logprobs")
CASES = [
    pytest.param(attack, place, id=f"{attack.id}-{place}")
    for attack in load()
    if "reply" not in attack.where
    for place in attack.where
]
_MARKER: Final = re.compile(r"m\d{15}")
_LETTER: Final = re.compile(r"^[A-D]\. ")
"""Of an option: now and then the judge asks in another order as well, beside the request, at any time."""
_ids = (f"d{number}" for number in itertools.count())


class Gullible(DecisionsServer):
    """A model that does as its instructions say, and as every other text outside of a fence says."""

    def __init__(self) -> None:
        super().__init__()
        self.marker = ""
        self.harmless: set[str] = set()
        """What stood outside of fences while nobody attacked."""
        self.attacked = False
        self.obeyed: list[str] = []

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        texts = list(_texts(body))
        (self.marker,) = set(_MARKER.findall("\n".join(texts))) or {""}
        outside = {line for text in texts for line in self._outside(text)}
        if self.attacked:
            self.obeyed += outside - self.harmless
        else:
            self.harmless |= outside
        return super().answer(method, path, body)

    def _outside(self, text: str) -> list[str]:
        lines, inside = [], False
        for line in text.split("\n"):
            mark = re.fullmatch(rf"\[{self.marker} (.+)\]", line)
            if mark is not None:
                inside = mark[1] != "end"
                lines.append(f"({mark[1]})")
            elif not inside:
                lines.append(_LETTER.sub("", line.replace(self.marker, "MARKER")))
        assert not inside, "a group without end"
        return lines

    def _says(self, claim: str, options: Sequence[str]) -> Mapping[str, float]:
        return {option: 0.97 if option == "contradicted" else 0.01 for option in options}


def _texts(value: Any) -> Sequence[str]:
    """All texts of a body."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lines() -> AsyncIterator[list[tuple[Gullible, DecisionsJudge]]]:
    """A server and a judge for each transport, for all tests here."""
    async with Gullible() as first, Gullible() as second, Gullible() as third:
        made = []
        for server, transport in zip((first, second, third), TRANSPORTS, strict=True):
            server.mind = server._says
            settings = {"transport": transport, "base_url": server.url, "model": "m", "api_key": "k"}
            made.append((server, DecisionsJudge(DecisionsSettings.model_validate(settings))))
        yield made
        for _, judge in made:
            await judge.aclose()


@pytest.mark.parametrize(("attack", "place"), CASES)
async def test_an_attack_stays_within_its_fence(
    lines: list[tuple[Gullible, DecisionsJudge]], attack: Attack, place: str
) -> None:
    response_id = next(_ids)
    for server, judge in lines:
        server.attacked = False
        await reply_of(judge, attacked(place, response_id=response_id))
        server.attacked, server.obeyed = True, []
        text = fill(attack.text, server.marker)
        reply = await reply_of(judge, attacked(place, text, response_id))
        assert server.obeyed == []
        assert Verdict.SUPPORTED not in {each.verdict for each in reply.judgements}
        assert server.marker not in repr(reply) or server.marker in text
