"""The simulated model of ``benchmarks.peers``: chat and decisions over a real socket, at a provider's pace.

    python -m benchmarks.peers_endpoint --ttft-ms 350 --token-ms 8

It prints its address as a JSON line and serves until its standard input closes. To a chat completion posted
to ``/LABEL/v1/chat/completions`` it replies whole, after the time to first token and that of all tokens, or
as a stream in which each token comes when it is due; to ``/LABEL/v1/decisions`` it replies after the time to
first token. ``GET /LABEL/usage`` tells what the calls under a label have cost. Prefixes are cached per label.
Needs PyYAML, and counts by a real tokenizer where the peers are installed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks.frame import command_line
from benchmarks.peers_answers import load
from benchmarks.peers_replies import Replies, Reply, text_of
from benchmarks.peers_tokens import CACHE_MINIMUM, CACHE_STEP, PrefixCache, Tokenize, Usage, joined, tokenizer

_END_OF_HEAD: Final = b"\r\n\r\n"
_BORDER_TOKENS: Final = 4
"""What the role and the borders of a message cost, or those of a question."""
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the model answers: tokens come at ``ttft_s``, ``ttft_s + token_s``, …, then the end."""

    ttft_s: float = 0.35
    token_s: float = 0.008

    def due(self, token: int) -> float:
        """Seconds from the request to this token, counted from 0; of as many as there are: to the end."""
        return self.ttft_s + token * self.token_s

    def ready(self, elapsed_s: float, tokens: int) -> int:
        """How many of ``tokens`` are out after this time."""
        if elapsed_s < self.ttft_s or not self.token_s:
            return tokens if elapsed_s >= self.ttft_s else 0
        return min(tokens, int((elapsed_s - self.ttft_s) / self.token_s + 1e-9) + 1)


@dataclass(slots=True)
class Account:
    """What one label's calls have cost, and the prefixes that they left in the cache."""

    cache: PrefixCache
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it came in, and its reply, ready to be paced."""

    body: dict[str, Any]
    reply: Reply
    prompt: list[str]
    cached: int
    tokens: list[str]
    since: float

    def usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": len(self.prompt),
            "completion_tokens": len(self.tokens),
            "total_tokens": len(self.prompt) + len(self.tokens),
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


def prompt_tokens(body: dict[str, Any], tokenize: Tokenize) -> list[str]:
    """All that the model reads, in the order in which providers cache it: schemas, messages, questions."""
    tokens = []
    for part in (body.get("tools"), body.get("response_format")):
        if part:
            tokens += tokenize(json.dumps(part))
    for message in body.get("messages") or body["input"]:
        tokens += [f"<{message['role']}>"] * _BORDER_TOKENS + tokenize(text_of(message))
    for question in body.get("questions") or ():
        texts = [question["instructions"]]
        for option in question["choices"]:
            texts += [option["value"], option.get("description", "")]
        tokens += ["<question>"] * _BORDER_TOKENS + tokenize("\n".join(texts))
    return tokens


class Endpoint:
    """Serves on loopback for as long as it is entered."""

    def __init__(
        self,
        replies: Replies,
        pace: Pace,
        *,
        tokenize: Tokenize,
        cache: Callable[[], PrefixCache] = PrefixCache,
    ) -> None:
        self._replies = replies
        self._pace = pace
        self._tokenize = tokenize
        self._new_cache = cache
        self._accounts: dict[str, Account] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        """The address, without a label."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=_BACKLOG)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()

    def usage(self, label: str) -> Usage:
        """What has been spent under ``label`` so far."""
        return self._account(label).usage

    def _account(self, label: str) -> Account:
        return self._accounts.setdefault(label, Account(self._new_cache()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(_END_OF_HEAD)).decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = head[0].split(" ")
                await self._answer(method, path.strip("/").split("/"), body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or this process ends; Python 3.11 prints a traceback for the latter
        finally:
            writer.close()

    async def _answer(
        self, method: str, path: Sequence[str], body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        label, *rest = path
        if method == "GET" and rest == ["usage"]:
            _write(writer, 200, asdict(self.usage(label)))
        elif method == "POST" and rest in (["v1", "chat", "completions"], ["v1", "decisions"]):
            account = self._account(label)
            try:
                call = self._accept(account, json.loads(body))
            except ValueError as error:
                account.usage.unknown += 1
                _write(writer, 400, {"error": {"message": str(error), "type": "invalid_request_error"}})
            else:
                await self._complete(account, call, writer)
        else:
            _write(writer, 404, {"error": {"message": f"no {method} here", "type": "not_found"}})
        await writer.drain()

    def _accept(self, account: Account, body: dict[str, Any]) -> Call:
        since = asyncio.get_running_loop().time()
        reply = self._replies.to(body)
        prompt = prompt_tokens(body, self._tokenize)
        usage = account.usage
        call = Call(body, reply, prompt, account.cache.cached(prompt), self._tokenize(reply.text), since)
        usage.calls += 1
        usage.prompt_tokens += len(prompt)
        usage.cached_tokens += call.cached
        usage.unknown += reply.unknown
        return call

    async def _complete(self, account: Account, call: Call, writer: asyncio.StreamWriter) -> None:
        clock, count = asyncio.get_running_loop().time, len(call.tokens)

        async def until(token: int) -> None:
            await asyncio.sleep(max(0.0, call.since + self._pace.due(token) - clock()))

        await until(0)
        account.cache.add(call.prompt)  # read by now, so the next one finds it
        if call.reply.answers is not None:
            _write(writer, 200, _decisions(call))
            return
        if not call.body.get("stream"):
            account.usage.output_tokens += count
            await until(count)
            _write(writer, 200, _whole(call))
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        done = 0
        while done < count:
            await until(done)
            ready = self._pace.ready(clock() - call.since, count)  # more than one when late
            account.usage.output_tokens += ready - done
            text = joined(call.tokens[done:ready], self._tokenize).decode("utf-8", "replace")
            _event(writer, _chunk(call, {"role": "assistant", "content": text}))
            await writer.drain()
            done = ready
        await until(count)
        _event(writer, _chunk(call, {}, finish="stop"))
        if (call.body.get("stream_options") or {}).get("include_usage"):
            _event(writer, _chunk(call, None) | {"usage": call.usage()})
        _send_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")


def _write(writer: asyncio.StreamWriter, status: int, value: dict[str, Any]) -> None:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def _event(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    _send_chunk(writer, b"data: " + json.dumps(value).encode() + b"\n\n")


def _send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


def _chunk(call: Call, delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return _envelope(call, "chat.completion.chunk", choices)


def _whole(call: Call) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": call.reply.text, "refusal": None}
    if call.reply.tool is not None:
        function = {"name": call.reply.tool, "arguments": call.reply.text}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        message |= {"content": None, "tool_calls": calls}
    told = None if call.reply.top is None else {"content": [{"top_logprobs": call.reply.top}]}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": told}
    return _envelope(call, "chat.completion", [choice]) | {"usage": call.usage()}


def _decisions(call: Call) -> dict[str, Any]:
    usage = {"input_tokens": len(call.prompt), "input_tokens_details": {"cached_tokens": call.cached}}
    return {"model": call.body["model"], "answers": call.reply.answers, "usage": usage | {"output_tokens": 0}}


def _envelope(call: Call, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    model = call.body.get("model", "simulated")
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model, "choices": choices}


async def _run(pace: Pace, minimum: int, step: int) -> None:
    name, tokenize = tokenizer()
    endpoint = Endpoint(Replies(load()), pace, tokenize=tokenize, cache=lambda: PrefixCache(minimum, step))
    async with endpoint as address:
        print(json.dumps({"address": address, "tokenizer": name}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--ttft-ms", type=float, default=350.0, help="time to first token (default 350)")
    parser.add_argument("--token-ms", type=float, default=8.0, help="time per output token (default 8)")
    parser.add_argument("--cache-minimum", type=int, default=CACHE_MINIMUM, help="shortest prefix cached")
    parser.add_argument("--cache-step", type=int, default=CACHE_STEP, help="tokens a cached prefix grows by")
    args = parser.parse_args()
    asyncio.run(_run(Pace(args.ttft_ms / 1000, args.token_ms / 1000), args.cache_minimum, args.cache_step))


if __name__ == "__main__":
    main()
