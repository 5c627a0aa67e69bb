"""``guardrail flagged``: keeps flagged cases for reviewers, and tells a webhook."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    LogFormatOption,
    LogLevelOption,
    Options,
    StoreOption,
    group_option,
    naming_places,
    once,
    option,
    settings_from,
)

if TYPE_CHECKING:
    from consumers.settings import GuardSettings

EPILOG = """[bold]Examples[/]

guardrail flagged --bootstrap-servers localhost:9092 --store sqlite:///cases.db

GUARDRAIL_FLAGGED__WEBHOOK_SECRET=whsec_… guardrail flagged -c guardrail.yaml --webhook-url https://host/path

[bold]Signals[/]: SIGTERM or SIGINT once ends what was begun, commits, and leaves with status 0. A second one
leaves at once; nothing is lost by it. SIGHUP does nothing."""

_SETTING: Final = "flagged.store"


def flagged_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    group_id: Annotated[
        str | None, group_option("The guards' group; the position is kept in NAME-flagged.")
    ] = None,
    store: StoreOption = None,
    webhook_url: Annotated[
        str | None,
        option(
            "--webhook-url URL",
            "Post every new case there, whole and signed with flagged.webhook_secret.",
            default="flagged.webhook_url, none",
        ),
    ] = None,
    webhook_secret_file: Annotated[
        Path | None,
        option(
            "--webhook-secret-file FILE",
            "Holds whsec_ and base64, one line.",
            default="flagged.webhook_secret",
        ),
    ] = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Store the case of every flagged, redacted or blocked answer, and post it to a webhook.

    Runs until SIGTERM. A case is stored once, however often it is read, and its position is committed only
    then. The webhook gets it at least once, with a key to know repeats by. Several processes share the work.
    Health and metrics are served on ops.port.
    """
    from guardrail.cli.run import ignore_hangup

    ignore_hangup()
    from guardrail.logs import configure_logging

    secret = None if webhook_secret_file is None else {"file": str(webhook_secret_file)}
    options: Options = {
        "kafka": {"bootstrap_servers": bootstrap_servers, "group_id": group_id},
        "flagged": {"store": store, "webhook_url": webhook_url, "webhook_secret": secret},
        "logging": {"format": log_format, "level": log_level},
    }
    file = once(config)
    settings = settings_from(file, options)
    configure_logging(settings.logging)
    with naming_places(file, options):
        asyncio.run(serve(settings))


async def serve(settings: GuardSettings) -> None:
    """Store and post until a signal comes. Raises ConfigError, CaseStoreError and TransportError."""
    import structlog

    from consumers.cases import open_store
    from consumers.flagged import FlaggedSubscriber
    from consumers.ops import Health, OpsServer
    from consumers.webhook import Webhook, signing_key
    from guardrail.cli.run import handle_hangup, stop_on_signals
    from guardrail.errors import ConfigError, only_cause

    flagged = settings.flagged
    if flagged.store is None:
        raise ConfigError(f"{_SETTING}: no store is named; give --store sqlite:///FILE, or {_SETTING}")
    stop = asyncio.Event()
    stop_on_signals(stop, lambda: None)
    log = structlog.stdlib.get_logger("guardrail.flagged")
    handle_hangup(lambda: log.warning("config.nothing_to_reload", why="settings are read at the start only"))
    async with AsyncExitStack() as stack:
        url = flagged.store.read(_SETTING, "store's URL")
        store = await stack.enter_async_context(open_store(url, _SETTING, create=True))
        webhook = None
        if flagged.webhook_url is not None and flagged.webhook_secret is not None:
            key = signing_key(
                flagged.webhook_secret.read("flagged.webhook_secret", "webhook's secret"),
                "flagged.webhook_secret",
            )
            url = flagged.webhook_url.read("flagged.webhook_url", "webhook's URL")
            webhook = Webhook(store, url, key)
            stack.push_async_callback(webhook.aclose)
        subscriber = FlaggedSubscriber(settings.kafka, store, webhook=webhook)
        health = Health(started=True, waits_for=lambda: subscriber.waits_for)
        await stack.enter_async_context(OpsServer(health).listening(settings.ops.host, settings.ops.port))
        try:
            await subscriber.run(stop)
        except BaseExceptionGroup as group:
            raise only_cause(group) from group
