"""``guardrail serve``: the guard over HTTP, in front of a model."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from guardrail import __version__
from guardrail.cli.options import ConfigOption, Options, naming_places, option
from guardrail.cli.run import (
    Source,
    begin,
    changed_settings,
    end_in_time,
    handle_hangup,
    loop_factory,
    stop_on_signals,
)
from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.engine.engine import Output

EPILOG = """[bold]Examples[/]

guardrail serve --upstream https://api.openai.com/v1

guardrail serve --config guardrail.yaml --host 0.0.0.0

Then change the client's base URL to http://127.0.0.1:8800/v1.

[bold]Signals[/]: SIGTERM or SIGINT once takes no more requests, ends the answers under way, and leaves with
status 0, all within shutdown.budget_ms. A second one leaves at once. SIGHUP reads policies and keys anew, as
a change of their files does."""


def serve_command(
    host: Annotated[
        str | None,
        option(
            "--host ADDRESS", "Where to listen; other machines need keys.", default="serve.host, 127.0.0.1"
        ),
    ] = None,
    port: Annotated[
        int | None, option("--port PORT", "Port to listen on.", default="serve.port, 8800", min=0, max=65_535)
    ] = None,
    upstream: Annotated[
        str | None,
        option(
            "--upstream URL",
            "Base URL of the OpenAI-compatible API that writes the answers.",
            default="serve.upstream, https://api.openai.com/v1",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Guard an OpenAI-compatible API: answers leave claim by claim, as their verdicts come.

    Serves /v1/chat/completions and /v1/responses, whole and streamed, /v1/check, and /v1/guard for answers
    that are written elsewhere; passes on models, embeddings, files and moderations; refuses every other way
    to an answer.
    Health and metrics are on ops.port.
    """
    options: Options = {"serve": {"host": host, "port": port, "upstream": upstream}}
    file, settings = begin(config, options)
    with naming_places(file, options), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, None if file is None else Source.of(file, options)))


async def serve(settings: GuardSettings, source: Source | None = None) -> None:
    """Serve until a signal comes, then drain; policies and keys follow ``source``. Raises ConfigError."""
    import structlog
    from prometheus_client import disable_created_metrics

    from consumers.gateway.settings import NOT_INSTALLED

    try:
        from consumers.gateway import Gateway, serving
    except ImportError:
        raise ConfigError(NOT_INSTALLED) from None
    from consumers.ops import Health, OpsServer
    from consumers.outputs import Outputs
    from consumers.reloading import Reloader
    from guardrail import telemetry
    from guardrail.guard import Guard
    from guardrail.judges.factory import JudgeSet
    from guardrail.judges.streams import beside
    from guardrail.tracing import Traces

    log = structlog.stdlib.get_logger("guardrail.serve")
    stop = asyncio.Event()
    stop_on_signals(stop, partial(end_in_time, settings.shutdown.budget_ms / 1000))
    handle_hangup(lambda: log.warning("config.nothing_to_reload", why="no file is followed"))
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter
    waits_for = "the gateway starts"
    health = Health(waits_for=lambda: waits_for)
    kafka, shutdown = settings.kafka, settings.shutdown
    traces = Traces.from_environment() if settings.ops.traces else None
    outputs = Outputs(kafka.topics, kafka.group_id, kafka.max_request_bytes, traces)
    async with AsyncExitStack() as stack:
        stack.callback(log.info, "guard.stopped")
        if traces is not None:
            stack.push_async_callback(asyncio.to_thread, traces.close)
        publisher: KafkaPublisher | None = None
        if settings.serve.publish:
            from consumers.kafka import KafkaPublisher

            topics = (kafka.topics.verdicts, kafka.topics.flagged)
            publisher = KafkaPublisher(kafka, topics, shutdown.leave_timeout_ms / 1000)
            await stack.enter_async_context(publisher)
            health.note = publisher.note

        def said(what: Sequence[Output]) -> None:
            outputs.note(what)
            if publisher is not None:
                publisher.put(outputs.records(what, deliveries=False))

        router = settings.router()
        judges = await asyncio.to_thread(JudgeSet, settings.judge, router.policies)
        stack.push_async_callback(judges.aclose)
        guard = Guard(
            judges.default, router=router, judges=judges.by_kind, limits=settings.limits, on_outputs=said
        )
        await stack.enter_async_context(guard)
        gateway = await stack.enter_async_context(Gateway(settings.serve, guard, traces))
        reload = None
        if source is not None:
            keys = settings.serve.keys
            followed = None if keys is None or keys.file is None else (keys.file, gateway.reload_keys)
            reloader = Reloader(source.file, source.read, settings, judges, guard.use, beside=followed)
            reload = reloader.reload
            await stack.enter_async_context(reloader.watching())
            handle_hangup(reloader.ask)
        ops = OpsServer(health, reload)
        await stack.enter_async_context(ops.listening(settings.ops.host, settings.ops.port))
        log.info("serve.starting", version=__version__, settings=changed_settings(settings))
        telemetry.serve_state(guard.state)
        telemetry.BUILD.labels(__version__, judges.default.name).set(1)
        stack.callback(outputs.responses.summary)
        await stack.enter_async_context(beside(outputs.responses.summarise()))
        # A full collection holds all streams up, for 0.1 s with what stays for good in it. Answers leave next
        # to nothing for it.
        gc.freeze()
        gc.set_threshold(700, 10, 30)
        _open_more_files()
        async with serving(gateway.app, settings.serve, shutdown.drain_timeout_ms / 1000):
            waits_for, health.started = "", True
            await stop.wait()
            waits_for = "it drains"


def _open_more_files() -> None:
    """A stream has two sockets, and many systems give a process 1,024 files unless it asks for more."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
