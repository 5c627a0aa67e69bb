"""``guardrail serve``: the guard over HTTP, in front of a model."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

from guardrail import __version__
from guardrail.cli.options import ConfigOption, Options, naming_places, once, option, settings_from
from guardrail.cli.run import end_in_time, handle_hangup, ignore_hangup, loop_factory, stop_on_signals
from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from consumers.settings import GuardSettings

EPILOG = """[bold]Examples[/]

guardrail serve --upstream https://api.openai.com/v1

guardrail serve --config guardrail.yaml --host 0.0.0.0

Then change the client's base URL to http://127.0.0.1:8800/v1.

[bold]Signals[/]: SIGTERM or SIGINT once takes no more requests, ends the answers under way, and leaves with
status 0, all within shutdown.budget_ms. A second one leaves at once. SIGHUP does nothing."""


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

    Serves /v1/chat/completions, whole and streamed, and /v1/check; passes on models, embeddings, files and
    moderations; refuses every other way to an answer. Health and metrics are on ops.port.
    """
    ignore_hangup()
    from guardrail.logs import configure_logging

    options: Options = {"serve": {"host": host, "port": port, "upstream": upstream}}
    file = once(config)
    settings = settings_from(file, options)
    configure_logging(settings.logging)
    with naming_places(file, options), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings))


async def serve(settings: GuardSettings) -> None:
    """Serve until a signal comes, then drain. Raises ConfigError."""
    import structlog
    from prometheus_client import disable_created_metrics

    try:
        from consumers.gateway import Gateway, serving
    except ImportError:
        raise ConfigError(
            "serving needs Starlette and uvicorn, which are not installed; remedy: pip install "
            "'streaming-guardrail[serve]'"
        ) from None
    from consumers.ops import Health, OpsServer
    from guardrail import telemetry
    from guardrail.integrations.background import guard_of_settings

    log = structlog.stdlib.get_logger("guardrail.serve")
    stop = asyncio.Event()
    stop_on_signals(stop, partial(end_in_time, settings.shutdown.budget_ms / 1000))
    handle_hangup(lambda: log.warning("config.nothing_to_reload", why="settings are read at the start only"))
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter
    waits_for = "the judge loads"
    health = Health(waits_for=lambda: waits_for)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(OpsServer(health).listening(settings.ops.host, settings.ops.port))
        guard = await guard_of_settings(settings, stack)
        gateway = await stack.enter_async_context(Gateway(settings.serve, guard))
        drain_s = settings.shutdown.drain_timeout_ms / 1000
        log.info("serve.starting", version=__version__, upstream=settings.serve.upstream)
        telemetry.BUILD.labels(__version__, settings.judge.kind).set(1)
        async with serving(gateway.app, settings.serve, drain_s):
            waits_for, health.started = "", True
            await stop.wait()
            waits_for = "it drains"
