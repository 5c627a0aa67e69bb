"""A chat with a guard in front of it.

    pip install '.[examples]'
    python -m examples.chat_service

and open http://127.0.0.1:8000. Without options the guard runs in this process, on a broker in memory, and the
answers were typed in advance, some of them wrong. With a Kafka, 'guardrail run' is the guard:

    python -m examples.chat_service --bootstrap-servers localhost:9092
    python -m examples.chat_service --llm-base-url https://api.openai.com/v1 --llm-model gpt-4.1-mini

With a gateway the answers come from 'guardrail serve', without a broker:

    python -m examples.chat_service --gateway http://127.0.0.1:8800/v1
    guardrail serve --upstream http://127.0.0.1:8000/model/v1
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

import httpx2
import uvicorn

from examples.chat_service.models import CannedModel, EndpointModel, Model
from examples.chat_service.service import completion, service, told
from guardrail.client import GuardClient
from guardrail.config import LoggingSettings
from guardrail.errors import GuardrailError
from guardrail.logs import configure_logging
from guardrail.testing import MemoryGuard


class Server(uvicorn.Server):
    """Does not raise a signal again after it, so that client and guard are closed in order, too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Part of uvicorn.Server."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def main(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C. Raises GuardrailError."""
    async with AsyncExitStack() as stack:
        model: Model = CannedModel()
        if arguments.llm_base_url:
            endpoint = model = EndpointModel(arguments.llm_base_url, arguments.llm_model)
            stack.push_async_callback(endpoint.aclose)
        if arguments.gateway:
            gateway = httpx2.AsyncClient(base_url=arguments.gateway, timeout=None)
            await stack.enter_async_context(gateway)
            app = service(partial(completion, gateway, arguments.llm_model), upstream=model)
        else:
            client = await client_of(arguments, stack)
            app = service(partial(told, client, model))
        where = f"http://127.0.0.1:{arguments.port}"
        print(f"the chat is at {where}; Ctrl-C ends it", flush=True)
        config = uvicorn.Config(
            app,
            host=arguments.host,
            port=arguments.port,
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=5,
        )
        await Server(config).serve()


async def client_of(arguments: argparse.Namespace, stack: AsyncExitStack) -> GuardClient:
    """On the given Kafka, or on a guard in this process. Raises GuardrailError."""
    if arguments.bootstrap_servers:
        client = GuardClient(
            arguments.bootstrap_servers,
            responses_topic=arguments.responses,
            deliveries_topic=arguments.deliveries,
        )
    else:
        guard = await stack.enter_async_context(MemoryGuard())
        client = GuardClient(transport=guard.transport())
    return await stack.enter_async_context(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m examples.chat_service",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 in a container; there is no login")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--bootstrap-servers", help="a Kafka with a guard; without it all is in this process")
    parser.add_argument("--responses", default="rag.responses", help="topic that the guard reads")
    parser.add_argument("--deliveries", default="rag.deliveries", help="topic that the guard writes")
    parser.add_argument("--gateway", help="base URL of guardrail serve, in place of a Kafka and a guard")
    parser.add_argument("--llm-base-url", help="an OpenAI-compatible endpoint that writes the answers")
    parser.add_argument("--llm-model", default="gpt-4.1-mini")
    configure_logging(LoggingSettings(level="warning"))
    # The Kafka client logs every attempt to connect; what matters of it is told once, below.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        asyncio.run(main(parser.parse_args()))
    except GuardrailError as error:
        sys.exit(str(error))
