"""The demo as plain lines, one event a line, for files, pipes and simple terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO

from guardrail.demo.board import Board, BoardEvent, Card
from guardrail.demo.style import DECISION_WORDS, Symbols, milliseconds, one_line, score
from guardrail.events import (
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Response,
    ResponseStarted,
    ResponseVerdict,
    Verdict,
)

_TEXT_LIMIT: Final = 160
_FIRST_WORDS: Final = {
    Decision.RELEASE: "released",
    Decision.FLAG: "flagged",
    Decision.REDACT: "redacted",
    Decision.BLOCK: "blocked",
}


class PlainView:
    """Writes lines of the form ``WORD RESPONSE_ID detail…``: no escape sequence, no moving cursor.

    Words: ``started``; ``claim`` with its ``evidence`` and ``reason``; ``released``, ``flagged`` and
    ``redacted`` for a piece of text that was shown, ``blocked`` for the message in its place; ``decided``.
    """

    def __init__(self, out: TextIO, symbols: Symbols) -> None:
        self._out = out
        self._symbols = symbols
        self._id_width = 0

    def open(self, responses: Sequence[Response]) -> None:
        self._id_width = max(len(response.response_id) for response in responses)

    def show(self, event: BoardEvent, card: Card) -> None:
        match event:
            case ResponseStarted():
                self._line("started", card, self._quote(event.question))
            case ClaimVerdict():
                self._claim(event, card)
            case DeliverySegment():
                # Blank segments carry the text's line breaks, and observed text leaves token by token.
                if event.segment is not None and event.text.strip():
                    self._line(_FIRST_WORDS[event.decision], card, self._quote(event.text))
            case DeliveryCompleted():
                if card.observed:
                    self._line("released", card, f"at once: {self._quote(card.delivered)}")
            case DeliveryBlocked():
                shown = f"{event.released_chars} characters were shown before, now replaced by"
                self._line("blocked", card, f"{shown} {self._quote(event.message)}")
            case ResponseVerdict():
                self._decided(event, card)

    def tick(self, board: Board) -> None:
        pass

    def close(self) -> None:
        """Nothing is held back: every line was flushed as it was written."""

    def _claim(self, claim: ClaimVerdict, card: Card) -> None:
        reasons = f" ({', '.join(claim.severity_reasons)})" if claim.severity_reasons else ""
        mark = self._symbols.verdicts[claim.verdict]
        number = f"#{claim.index + 1}"
        judged = f"{number} {mark} {claim.verdict} {claim.severity}{reasons}"
        self._line("claim", card, f"{judged} {self._quote(claim.text)}")
        for evidence in claim.evidence[:1]:
            source = one_line(evidence.context_id, 40)
            self._line("evidence", card, f"{number} {source} {self._quote(evidence.quote)}")
        if claim.verdict is not Verdict.SUPPORTED and claim.reasoning:
            reasoning = one_line(claim.reasoning, _TEXT_LIMIT, self._symbols.ellipsis)
            self._line("reason", card, f"{number} {reasoning}")

    def _decided(self, verdict: ResponseVerdict, card: Card) -> None:
        claims = f"{len(verdict.claims)} claim{'' if len(verdict.claims) == 1 else 's'}"
        parts = [
            DECISION_WORDS[verdict.decision],
            f"policy {one_line(verdict.policy.name, 40)} ({verdict.mode})",
            f"rule: {one_line(verdict.rule, 80)}",
            f"score {score(verdict.score)}",
            claims,
            f"delay p50 {milliseconds(card.delay_p50_ms)}",
        ]
        self._line("decided", card, "; ".join(parts))

    def _quote(self, text: str) -> str:
        opening, closing = self._symbols.quotes
        return opening + one_line(text, _TEXT_LIMIT, self._symbols.ellipsis) + closing

    def _line(self, word: str, card: Card, detail: str) -> None:
        self._out.write(f"{word:<8} {one_line(card.response_id, 64):<{self._id_width}}  {detail}\n")
        self._out.flush()
