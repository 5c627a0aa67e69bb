"""What a machine can't install is named by the error that makes tests skip: the tests did not fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environments import EnvironmentMissing, environment
from tests.support.kafka_broker import JavaMissing, ensure_jars


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, with a java in it that is new enough."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("GUARDRAIL_KAFKA_CACHE", str(tmp_path / "kafka"))
    program(folder / "java", "echo 'openjdk version \"17.0.1\" 2021-10-19'")
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def no_folder(tmp_path: Path) -> Path:
    """Where no folder can be made, not even by root."""
    file = tmp_path / "file"
    file.touch()
    return file / "cache"


def test_an_environment_whose_folder_cannot_be_made(no_folder: Path) -> None:
    with pytest.raises(EnvironmentMissing, match=r"some-package can't be installed: .*Not a directory"):
        environment(no_folder, ["some-package"])


def test_a_folder_for_kafkas_jars_that_cannot_be_made(
    no_folder: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARDRAIL_KAFKA_CACHE", str(no_folder))
    with pytest.raises(JavaMissing, match=r"Not a directory.*GUARDRAIL_KAFKA_CACHE"):
        ensure_jars()


def test_java_without_maven(programs: Path) -> None:
    with pytest.raises(JavaMissing, match="no mvn to fetch them"):
        ensure_jars()


def test_a_maven_that_reaches_nothing(programs: Path) -> None:
    program(programs / "mvn", "echo 'Unknown host'; exit 1")
    with pytest.raises(JavaMissing, match=r"Maven could not fetch Kafka [^\n]*\nUnknown host"):
        ensure_jars()
