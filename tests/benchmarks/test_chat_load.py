"""Both ends of the load that benchmarks.gateway puts on what is between."""

from __future__ import annotations

import asyncio

from benchmarks.chat_load import Answer, Model, read_all


async def test_what_is_written_is_read_token_by_token() -> None:
    answers = [Answer.of(number, 5) for number in range(3)]
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Model(answers, 1_000), "127.0.0.1", 0) as server:
        await read_all(server.sockets[0].getsockname()[1], answers, 0)
    assert [len(list(answer.delays_s())) for answer in answers] == [5, 5, 5]


def test_a_segment_counts_from_the_token_that_completes_it() -> None:
    answer = Answer(["It costs", " $49.", " It", " is new."], [], written_at=[0.0, 1.0, 2.0, 3.0, 4.0])
    answer.pieces = [(len("It costs $49. "), 2.5), (len("It costs $49. It is new."), 5.0)]
    assert list(answer.delays_s()) == [0.5, 1.0]
