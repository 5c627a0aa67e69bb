"""Judges that show how many are asked at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from guardrail import Judgement, JudgeRequest
from tests.support.judges import WordJudge


class MeetingJudge(WordJudge):
    """Answers once so many requests wait at the same time; of fewer, none is ever answered."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self.together = together
        self.waiting = 0
        self.most = 0
        self.came = threading.Event()
        self.cancelled = threading.Event()
        self._all_there: asyncio.Event | None = None

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        there = self._all_there = self._all_there or asyncio.Event()
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self.together:
            there.set()
        self.came.set()
        try:
            await there.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        self.waiting -= 1
        if not self.waiting:
            self._all_there = None
        async for each in super().judge(request):
            yield each
