"""The Kafka that integration tests share: started once, on first use, and always taken down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka_broker import JavaMissing, KafkaBroker

_SKIPPED = pytest.StashKey[str]()
_KEPT_LOG = pytest.StashKey[Path]()


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


@pytest.fixture
def own_kafka(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """A broker of this test alone, not started yet, to be stopped and started again at will."""
    broker = own_broker(request.config)
    try:
        yield broker
    finally:
        broker.close()


def own_broker(config: pytest.Config) -> KafkaBroker:
    """A broker, not started. Where this machine can't run one the test is skipped, in CI it fails."""
    try:
        return KafkaBroker()
    except JavaMissing as error:
        if os.environ.get("CI"):
            raise
        config.stash[_SKIPPED] = str(error)
        pytest.skip(f"needs a real Kafka: {error}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say at the end what was not tested, where nobody overlooks it."""
    skipped = config.stash.get(_SKIPPED, None)
    if skipped is not None:
        terminalreporter.section("KAFKA TESTS WERE SKIPPED", sep="!", red=True, bold=True)
        terminalreporter.line(skipped)
        terminalreporter.line("or name a running broker: GUARDRAIL_TEST_KAFKA=HOST:PORT")
    kept = config.stash.get(_KEPT_LOG, None)
    if kept is not None:
        terminalreporter.line(f"Kafka's log was kept: {kept}")
