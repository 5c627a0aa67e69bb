"""``guardrail topics create``: what it asks for and what it prints; the broker is a double here."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from consumers.settings import KafkaSettings
from consumers.topics import TopicReport
from guardrail.cli import app
from guardrail.errors import ConfigError


def test_it_passes_on_what_was_asked_and_tells_every_topic(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int, int]] = []

    async def create(settings: KafkaSettings, partitions: int, replication_factor: int) -> list[TopicReport]:
        asked.append((settings.bootstrap_servers, partitions, replication_factor))
        return [
            TopicReport("rag.responses", "created", "12 partitions, 3 replicas, kept 7 days"),
            TopicReport("rag.flagged", "exists", "12 partitions, as asked"),
            TopicReport("rag.verdicts", "differs", "retention.ms=1 instead of 2, " * 6),
        ]

    monkeypatch.setattr("consumers.topics.create_topics", create)
    result = runner.invoke(app, ["topics", "create", "-b", "kafka:9092", "-p", "12", "-r", "3"])
    assert result.exit_code == 0
    assert asked == [("kafka:9092", 12, 3)]
    heading, *lines = result.stdout.splitlines()
    assert heading.split() == ["topic", "state", "detail"]
    assert [line.split()[:2] for line in lines] == [
        ["rag.responses", "created"],
        ["rag.flagged", "exists"],
        ["rag.verdicts", "differs"],
    ]
    assert "left as it is" in result.stderr


def test_what_can_not_be_is_wrong_usage(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(_settings: KafkaSettings, _partitions: int, _replicas: int) -> list[TopicReport]:
        raise ConfigError("only 1 broker; lower --replication-factor")

    monkeypatch.setattr("consumers.topics.create_topics", create)
    result = runner.invoke(app, ["topics", "create", "-r", "3"])
    assert result.exit_code == 2
    assert result.stderr == "error: only 1 broker; lower --replication-factor\n"


@pytest.mark.parametrize("arguments", [["-p", "0"], ["-r", "0"], ["-p", "many"]])
def test_numbers_have_bounds(runner: CliRunner, arguments: list[str]) -> None:
    assert runner.invoke(app, ["topics", "create", *arguments]).exit_code == 2
