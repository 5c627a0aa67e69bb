"""The Kafka that integration tests share: started once, on first use, and always taken down."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.support.kafka_broker import JavaMissing, KafkaBroker

_SKIPPED = pytest.StashKey[str]()
_NO_BROWSER = pytest.StashKey[str]()
_KEPT_LOG = pytest.StashKey[Path]()


# Hypothesis fails a test whose examples take more than 200 ms, or are slow to make: that says how busy the
# machine is. What takes too long for its input never ends within the limit of the whole test.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_configure() -> None:
    """A script that runs this suite with ``&`` hands on an ignored SIGINT, and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is made here ends before the run does: looking for garbage in it takes a fifth of the time
    that collecting does, and more in each of the tests that do."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def kafka_bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a real Kafka: ``$GUARDRAIL_TEST_KAFKA``, or one of our own for this run."""
    existing = os.environ.get("GUARDRAIL_TEST_KAFKA")
    if existing:
        yield existing
        return
    broker = own_broker(request.config)
    try:
        broker.start()
        yield broker.bootstrap_servers
    finally:
        failed = request.session.testsfailed > 0
        broker.close(keep_log=failed)
        if failed:
            request.config.stash[_KEPT_LOG] = broker.log


@pytest.fixture(scope="module")
def own_kafka(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """A broker of one module, to stop and start at will, with a listener that lets in guard / right-one.

    Not started yet; a test begins by starting it, which does nothing when it runs already.
    """
    broker = own_broker(request.config, sasl_users={"guard": "right-one"})
    try:
        yield broker
    finally:
        broker.close()


def own_broker(config: pytest.Config, **options: Any) -> KafkaBroker:
    """A KafkaBroker, not started. Where this machine can't run one the test is skipped, in CI it fails."""
    try:
        return KafkaBroker(**options, short_lived=True)
    except JavaMissing as error:
        if os.environ.get("CI"):
            raise
        config.stash[_SKIPPED] = str(error)
        pytest.skip(f"needs a real Kafka: {error}")


@pytest.fixture(scope="session")
def browser_path(request: pytest.FixtureRequest) -> str:
    """A Chromium: ``$GUARDRAIL_TEST_BROWSER``, or Debian's. Without one the test skips, in CI it fails."""
    names = (os.environ.get("GUARDRAIL_TEST_BROWSER", ""), "chromium", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium here; install it (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        request.config.stash[_NO_BROWSER] = reason
        pytest.skip(reason)
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist hands on what is said at the end."""
    told: dict[str, str] | None = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["skipped"] = session.config.stash.get(_SKIPPED, "")
        told["no_browser"] = session.config.stash.get(_NO_BROWSER, "")
        told["kept"] = str(session.config.stash.get(_KEPT_LOG, ""))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    told: dict[str, str] = getattr(node, "workeroutput", {})
    if told.get("skipped"):
        node.config.stash[_SKIPPED] = told["skipped"]
    if told.get("no_browser"):
        node.config.stash[_NO_BROWSER] = told["no_browser"]
    if told.get("kept"):
        node.config.stash[_KEPT_LOG] = Path(told["kept"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say at the end what was not tested, where nobody overlooks it."""
    skipped = config.stash.get(_SKIPPED, None)
    if skipped is not None:
        terminalreporter.section("KAFKA TESTS WERE SKIPPED", sep="!", red=True, bold=True)
        terminalreporter.line(skipped)
        terminalreporter.line("or name a running broker: GUARDRAIL_TEST_KAFKA=HOST:PORT")
    no_browser = config.stash.get(_NO_BROWSER, None)
    if no_browser is not None:
        terminalreporter.section("THE BROWSER TEST WAS SKIPPED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{no_browser}, or name one: GUARDRAIL_TEST_BROWSER=/path/to/chrome")
    kept = config.stash.get(_KEPT_LOG, None)
    if kept is not None:
        terminalreporter.line(f"Kafka's log was kept: {kept}")


# aiokafka loses a connection whose opening is cancelled at a bad moment: it is closed when it is collected,
# in whichever test that happens. What is left open is still an error in all other tests.
_LOST_CONNECTION = tuple(
    f"ignore:Exception ignored in. {what}:pytest.PytestUnraisableExceptionWarning"
    for what in (
        "<function AIOKafkaConnection.__del__",
        "<function StreamWriter.__del__",
        "<function _SelectorTransport.__del__",
        "<socket.socket",
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("kafka") is not None or item.get_closest_marker("chaos") is not None:
            for line in _LOST_CONNECTION:
                item.add_marker(pytest.mark.filterwarnings(line))
        if "browser_path" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(autouse=True)
def _lost_connections_are_collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Within the tests that use Kafka, where they are expected, and not in those that follow."""
    yield
    if request.node.get_closest_marker("kafka") is not None:
        gc.collect()


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command that a test runs sets logging up; its stream may be closed when the next test logs."""
    root = logging.getLogger()
    handlers, configured = root.handlers[:], structlog.get_config()
    levels = {logger: logger.level for logger in _loggers()}
    yield
    root.handlers[:] = handlers
    for logger in _loggers():
        if logger.level != levels.get(logger, logging.NOTSET):
            logger.setLevel(levels.get(logger, logging.NOTSET))  # not .level: what loggers admit is cached
    logging.captureWarnings(False)
    structlog.configure(**configured)


def _loggers() -> list[logging.Logger]:
    root = logging.getLogger()
    return [root, *(one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
