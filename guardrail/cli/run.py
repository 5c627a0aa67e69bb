"""``guardrail run``, the guard as a process; ``guardrail flagged``, which keeps cases for reviewers and
tells a webhook."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from guardrail import __version__
from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    JudgeOption,
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
from guardrail.errors import ConfigError, only_cause

if TYPE_CHECKING:
    from consumers.settings import GuardSettings, KafkaSettings
    from guardrail.config import SettingsFile

EPILOG = """[bold]Examples[/]

guardrail run --bootstrap-servers localhost:9092 --group-id guardrail

guardrail run --config guardrail.yaml --log-format json

GUARDRAIL_JUDGE__LLM__API_KEY=… guardrail run -c guardrail.yaml --judge llm

[bold]Signals[/]: SIGTERM or SIGINT once stops reading, waits for the verdicts under way, commits, and leaves
with status 0, all within shutdown.budget_ms; the next guard goes on with the responses in flight. A second
one leaves at once. SIGHUP reads the policies anew from the file of --config, as a change of the file does;
without --config it does nothing."""


def run_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    group_id: Annotated[
        str | None, group_option("Consumer group. Guards with the same one share the partitions.")
    ] = None,
    judge: JudgeOption = None,
    shutdown_budget_ms: Annotated[
        int | None,
        option(
            "--shutdown-budget-ms MS",
            "Longest time from a signal to the end of the process; keep it under the grace period.",
            default="shutdown.budget_ms, 25000",
            min=500,
        ),
    ] = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Guard the answers on Kafka: read them as they stream, judge every claim, release what is backed.

    Runs until SIGTERM. Without --config everything is at its default: the local judge, the default topics.
    The topics must exist: 'guardrail topics create' makes them.
    """
    options: Options = {
        "kafka": {"bootstrap_servers": bootstrap_servers, "group_id": group_id},
        "judge": {"kind": judge},
        "shutdown": {"budget_ms": shutdown_budget_ms},
        "logging": {"format": log_format, "level": log_level},
    }
    file, settings = begin(config, options)
    source = None if file is None else Source.of(file, options)
    with naming_places(file, options), asyncio.Runner(loop_factory=loop_factory()) as runner:
        in_time = partial(end_in_time, settings.shutdown.budget_ms / 1000)
        runner.run(serve(settings, on_stop=in_time, source=source))


def begin(config: Path | None, options: Options) -> tuple[SettingsFile | None, GuardSettings]:
    """The file and the settings of a process that runs until a signal, whose logs go as these say."""
    # Until the event loop handles SIGHUP: it would end the process without draining.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from guardrail.logs import configure_logging

    file = once(config)
    settings = settings_from(file, options)
    configure_logging(settings.logging)
    return file, settings


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed; None is asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@dataclass(frozen=True, slots=True)
class Source:
    """The file that settings were read from, and how its content at another time is read."""

    file: SettingsFile
    read: Callable[[SettingsFile], GuardSettings]

    @classmethod
    def of(cls, file: SettingsFile, options: Options) -> Self | None:
        """``options`` go over the file. None, with a warning, if it has no other content to read later."""
        import structlog

        if not file.regular:
            log = structlog.stdlib.get_logger("guardrail.run")
            log.warning(
                "config.not_followed",
                path=str(file.path),
                why="it is a pipe, which can be read only once",
                remedy="name a file if policies are to change while the guard runs",
            )
            return None
        return cls(file, partial(_checked, options))


def _checked(options: Options, file: SettingsFile) -> GuardSettings:
    """The settings, checked as 'guardrail config check' does."""
    from guardrail.judges.factory import check_files, check_judge, check_time

    settings = settings_from(file, options)
    with naming_places(file, options):
        check_judge(settings.judge, settings.policies.values())
        check_files(settings.judge, settings.policies.values())
        check_time(settings.judge, settings.policies)
    return settings


async def serve(
    settings: GuardSettings, on_stop: Callable[[], None] = lambda: None, source: Source | None = None
) -> None:
    """Guard until a signal comes, then drain. ``on_stop`` is called with the first signal.

    With ``source`` the policies follow what the file says. Raises ConfigError and TransportError.
    """
    import structlog

    from guardrail.judges.factory import JudgeSet, check_time

    log = structlog.stdlib.get_logger("guardrail.run")
    stop = asyncio.Event()
    stop_on_signals(stop, on_stop)
    if source is None:
        handle_hangup(lambda: log.warning("config.nothing_to_reload", why="no file is followed"))
    else:
        handle_hangup(lambda: None)  # until somebody can be asked; what the file says by then is read anyway
    for short in check_time(settings.judge, settings.policies):
        log.warning("judge.second_never_asked", why=short)
    router = settings.router()
    # A model takes as long to load as the rest of the guard to import.
    judges, _ = await asyncio.gather(
        asyncio.to_thread(JudgeSet, settings.judge, router.policies),
        asyncio.to_thread(import_module, "consumers.kafka.transport"),
    )
    from prometheus_client import disable_created_metrics

    from consumers.guarantee import GuardOptions
    from consumers.guard import GuardConsumer
    from consumers.kafka.transport import KafkaTransport
    from consumers.ops import Health, OpsServer
    from consumers.reloading import Reloader
    from guardrail import telemetry
    from guardrail.tracing import Traces

    traces: Traces | None = None
    try:
        traces = Traces.from_environment() if settings.ops.traces else None
        guard = GuardConsumer(
            KafkaTransport(settings.kafka),
            judges.default,
            router,
            GuardOptions.of(settings),
            judges=judges.by_kind,
            traces=traces,
            waiting_hint=_waiting_hint(settings.kafka),
        )
        name = judges.default.name
        log.info("guard.starting", version=__version__, judge=name, settings=changed_settings(settings))
        telemetry.BUILD.labels(__version__, name).set(1)
        telemetry.serve_state(guard.state)
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody queries
        health = Health(started=True, waits_for=guard.waits_for, note=guard.note)
        async with AsyncExitStack() as stack:
            reload = None
            if source is not None:
                reloader = Reloader(source.file, source.read, settings, judges, guard.use)
                reload = reloader.reload
                await stack.enter_async_context(reloader.watching())
                handle_hangup(reloader.ask)
            ops = OpsServer(health, reload)
            await stack.enter_async_context(ops.listening(settings.ops.host, settings.ops.port))
            await guard.run(stop)
    finally:
        await judges.aclose()
        if traces is not None:
            await asyncio.to_thread(traces.close)


def _waiting_hint(kafka: KafkaSettings) -> str:
    """Why partitions may not come at once, and what avoids it."""
    timeout_ms = kafka.client["session_timeout_ms"]
    timeout = f"a former member counts as dead after kafka.client.session_timeout_ms, {timeout_ms} ms"
    if kafka.group_instance_id is not None:
        return timeout
    return f"{timeout}; with kafka.group_instance_id a guard that comes back gets its partitions at once"


def changed_settings(settings: GuardSettings) -> dict[str, Any]:
    """What the log says of the settings: those that differ from the defaults, secrets masked.

    Every policy is compared with the default one, from which all begin; rules are told by their names.
    """
    from consumers.settings import GuardSettings

    values, defaults = settings.masked(), GuardSettings().masked()
    policies, begun_from = values.pop("policies"), defaults.pop("policies")["default"]
    different = _difference(values, defaults)
    for name, policy in policies.items():
        changes = _difference(policy, {**begun_from, "name": name})
        if "rules" in changes:
            changes["rules"] = [rule.name for rule in settings.policies[name].rules]
        if changes or name != "default":
            different.setdefault("policies", {})[name] = changes
    return different


def _difference(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    different: dict[str, Any] = {}
    for key, value in values.items():
        default = defaults.get(key)
        if value == default:
            continue
        different[key] = (
            _difference(value, default) if isinstance(value, dict) and isinstance(default, dict) else value
        )
    return different


def end_in_time(budget_s: float) -> None:
    """End the process after ``budget_s``, whatever it still waits for, with status 1.

    Every phase of leaving has its own limit. This is for what has none: threads that the interpreter joins.
    """
    import structlog

    log = structlog.stdlib.get_logger("guardrail.run")

    def end() -> None:
        log.error("guard.shutdown_budget_spent", budget_s=budget_s)
        os._exit(1)

    timer = threading.Timer(budget_s, end)
    timer.daemon = True
    timer.start()


def handle_hangup(then: Callable[[], object]) -> None:
    """Call ``then`` on SIGHUP, which ends nothing: a reload, or a terminal that was closed."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, then)


def stop_on_signals(stop: asyncio.Event, on_stop: Callable[[], None]) -> None:
    """SIGTERM or SIGINT sets ``stop``; the next one ends the process, with 128 + its number as status."""
    import structlog

    log = structlog.stdlib.get_logger("guardrail.run")
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            log.warning("guard.leaving_at_once", signal=number.name)
            os._exit(128 + number)
        log.info("guard.stopping", signal=number.name)
        stop.set()
        on_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


# ------------------------------------------------------------------------------- guardrail flagged

FLAGGED_EPILOG = """[bold]Examples[/]

guardrail flagged --bootstrap-servers localhost:9092 --store sqlite:///cases.db

GUARDRAIL_FLAGGED__WEBHOOK_SECRET=whsec_… guardrail flagged -c guardrail.yaml --webhook-url https://host/path

[bold]Signals[/]: SIGTERM or SIGINT once ends what was begun, commits, and leaves with status 0. A second one
leaves at once; nothing is lost by it. SIGHUP does nothing."""

_STORE: Final = "flagged.store"


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
    secret = None if webhook_secret_file is None else {"file": str(webhook_secret_file)}
    options: Options = {
        "kafka": {"bootstrap_servers": bootstrap_servers, "group_id": group_id},
        "flagged": {"store": store, "webhook_url": webhook_url, "webhook_secret": secret},
        "logging": {"format": log_format, "level": log_level},
    }
    file, settings = begin(config, options)
    with naming_places(file, options):
        asyncio.run(serve_flagged(settings))


async def serve_flagged(settings: GuardSettings) -> None:
    """Store and post until a signal comes. Raises ConfigError, CaseStoreError and TransportError."""
    import structlog

    from consumers.cases import open_store
    from consumers.flagged import FlaggedSubscriber, Webhook, signing_key
    from consumers.ops import Health, OpsServer

    flagged = settings.flagged
    if flagged.store is None:
        raise ConfigError(f"{_STORE}: no store is named; give --store sqlite:///FILE, or {_STORE}")
    stop = asyncio.Event()
    stop_on_signals(stop, lambda: None)
    log = structlog.stdlib.get_logger("guardrail.flagged")
    handle_hangup(lambda: log.warning("config.nothing_to_reload", why="settings are read at the start only"))
    async with AsyncExitStack() as stack:
        url = flagged.store.read(_STORE, "store's URL")
        store = await stack.enter_async_context(open_store(url, _STORE, create=True))
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
