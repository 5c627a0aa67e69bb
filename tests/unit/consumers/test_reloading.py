"""Policies follow the file: every way in which it is replaced, and whatever is wrong with it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from consumers.reloading import Reloader, fingerprint
from consumers.settings import GuardSettings, load_settings
from guardrail.config import SettingsFile
from guardrail.errors import ConfigError
from guardrail.judges.base import Judge
from guardrail.judges.factory import JudgeSet
from guardrail.logs import set_level
from guardrail.routing import PolicyRouter
from guardrail.telemetry import REGISTRY
from tests.support.guards import until

FIRST = "policies: {default: {version: first}}\n"
SECOND = "policies: {default: {version: second}, new: {extends: default}}\n"
BROKEN = "policies: {default: {flag_below: 7}}\n"


class Guarded:
    """A configuration file and what a guard would have been told of it."""

    def __init__(self, path: Path, judges: JudgeSet, settings: GuardSettings, read_s: float) -> None:
        self.path = path
        self.judges = judges
        self.routers: list[PolicyRouter] = [settings.router()]
        self.known: Mapping[str, Judge] = judges.by_kind
        self.reloader = Reloader(
            SettingsFile.read(path), load_settings, settings, judges, self.use, read_s=read_s
        )

    def use(self, router: PolicyRouter, judges: Mapping[str, Judge]) -> None:
        self.routers.append(router)
        self.known = judges

    @property
    def version(self) -> str:
        return self.routers[-1].choose(None, None).version

    def is_at(self, version: str) -> Callable[[], bool]:
        return lambda: self.version == version


@asynccontextmanager
async def guarded(path: Path, read_s: float = 60.0) -> AsyncIterator[Guarded]:
    settings = load_settings(path)
    judges = await asyncio.to_thread(JudgeSet, settings.judge, settings.policies.values())
    try:
        yield Guarded(path, judges, settings, read_s)
    finally:
        await judges.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "guardrail.yaml"
    write(path, FIRST)
    return path


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path, to: str) -> None:
    path.symlink_to(to)


def put_in_place(path: Path, text: str) -> None:
    """As editors do: a new file takes the name of the old one."""
    other = path.with_suffix(".new")
    write(other, text)
    other.replace(path)


class ConfigMap:
    """As Kubernetes mounts one: FILE -> ..data/FILE and ..data -> ..TIME, and ..data is exchanged."""

    def __init__(self, folder: Path, *texts: str) -> None:
        self._folder = folder
        for number, text in enumerate(texts):
            (folder / f"..{number}").mkdir()
            write(folder / f"..{number}" / "guardrail.yaml", text)
        (folder / "..data").symlink_to("..0")
        self.path = folder / "guardrail.yaml"
        self.path.symlink_to("..data/guardrail.yaml")

    def exchange(self, number: int) -> None:
        (self._folder / "..data_tmp").symlink_to(f"..{number}")
        (self._folder / "..data_tmp").replace(self._folder / "..data")


def reloads(outcome: str) -> float:
    return REGISTRY.get_sample_value("guardrail_config_reloads_total", {"outcome": outcome}) or 0.0


def failed() -> float | None:
    return REGISTRY.get_sample_value("guardrail_config_reload_failed")


class TestWatching:
    @pytest.mark.parametrize("change", [write, put_in_place])
    async def test_a_file_that_changes_is_followed(
        self, path: Path, change: Callable[[Path, str], None]
    ) -> None:
        async with guarded(path) as guard, guard.reloader.watching(0.01):
            change(path, SECOND)
            await until(guard.is_at("second"))
            change(path, FIRST)
            await until(guard.is_at("first"))

    async def test_a_config_map_is_followed(self, tmp_path: Path) -> None:
        mounted = ConfigMap(tmp_path, FIRST, SECOND)
        async with guarded(mounted.path) as guard, guard.reloader.watching(0.01):
            mounted.exchange(1)
            await until(guard.is_at("second"))

    async def test_a_file_that_comes_and_goes_is_followed(self, path: Path) -> None:
        async with guarded(path) as guard, guard.reloader.watching(0.01):
            before = reloads("failed")
            remove(path)
            await until(lambda: reloads("failed") > before)
            assert guard.version == "first"
            write(path, SECOND)
            await until(guard.is_at("second"))
            assert failed() == 0

    async def test_content_is_read_only_once_it_holds_still(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half a YAML file is often a valid one: this one would lose its second policy."""
        contents = iter(["half", "more", "more"])
        seen: list[str] = []

        def written(path: Path) -> str:
            seen.append(next(contents, "more"))
            return seen[-1]

        async with guarded(path) as guard:
            write(path, SECOND)
            monkeypatch.setattr("consumers.reloading.fingerprint", written)
            async with guard.reloader.watching(0.01):
                await until(guard.is_at("second"))
        assert seen[:3] == ["half", "more", "more"]

    async def test_a_wrong_content_is_told_once_and_the_next_right_one_counts(self, path: Path) -> None:
        async with guarded(path) as guard, guard.reloader.watching(0.01):
            before = reloads("failed")
            write(path, BROKEN)
            await until(lambda: reloads("failed") > before)
            assert failed() == 1
            write(path, SECOND)
            await until(guard.is_at("second"))
            assert failed() == 0
            assert reloads("failed") == before + 1

    async def test_being_asked_it_does_not_wait(self, path: Path) -> None:
        async with guarded(path) as guard, guard.reloader.watching(3_600.0):
            write(path, SECOND)
            guard.reloader.ask()
            await until(guard.is_at("second"))

    async def test_a_change_between_reading_the_settings_and_watching_is_not_missed(self, path: Path) -> None:
        async with guarded(path) as guard:
            write(path, SECOND)
            async with guard.reloader.watching(0.01):
                await until(guard.is_at("second"))


class TestReloading:
    async def test_it_says_what_changed(self, path: Path) -> None:
        async with guarded(path) as guard:
            write(path, SECOND)
            with capture_logs() as logs:
                assert await guard.reloader.reload() == "reloaded: policies"
                assert await guard.reloader.reload() == "unchanged"
            assert [entry["event"] for entry in logs] == ["config.reloaded"]
            assert logs[0]["policies"].keys() == {"default", "new"}
            assert logs[0]["policies"]["default"] == guard.routers[-1].choose(None, None).ref.digest

    async def test_all_errors_are_told_and_nothing_changes(self, path: Path) -> None:
        async with guarded(path) as guard:
            write(path, "policies:\n  default: {flag_below: 7}\n  a: {extends: b}\n")
            with capture_logs() as logs, pytest.raises(ConfigError, match=r":3: policies\.a\.extends = 'b'"):
                await guard.reloader.reload()
            assert len(guard.routers) == 1
            assert [entry["event"] for entry in logs] == ["config.reload_failed"]
            assert len(logs[0]["errors"]) >= 1

    async def test_a_judge_that_can_not_be_built_is_an_error_and_nothing_changes(self, path: Path) -> None:
        async with guarded(path) as guard:
            text = "policies: {default: {version: second, judge: classifier}}\n"
            write(path, text)
            with pytest.raises(ConfigError, match=r"policies\.default\.judge: classifier"):
                await guard.reloader.reload()
            assert guard.version == "first"

    async def test_a_judge_that_a_policy_names_for_the_first_time_is_built(self, path: Path) -> None:
        async with guarded(path) as guard:
            policies = "policies: {default: {version: second, judge: http}}\n"
            write(path, f"judge: {{http: {{url: 'http://mine/'}}}}\n{policies}")
            assert await guard.reloader.reload() == "reloaded: policies"
            assert guard.known["http"].name == "http:mine"

    async def test_what_needs_a_restart_is_named_and_stays(self, path: Path) -> None:
        async with guarded(path) as guard:
            text = "kafka: {group_id: other, client: {linger_ms: 5}}\nlimits: {max_bytes: 5}\n"
            write(path, f"{text}judge: {{local: {{languages: null}}}}\n{SECOND}")
            with capture_logs() as logs:
                said = await guard.reloader.reload()
            [warning] = [entry for entry in logs if entry["event"] == "config.restart_needed"]
            assert warning["settings"] == [
                "kafka.group_id",
                "kafka.client",
                "limits.max_bytes",
                "judge.local",
            ]
            assert said.splitlines()[0] == "reloaded: policies"
            assert "kafka.group_id" in said
            assert guard.version == "second"
            assert "other" not in str(warning)

    async def test_the_level_of_the_log_changes_only_with_the_file(self, path: Path) -> None:
        async with guarded(path) as guard:
            ours = logging.getLogger("consumers")
            set_level("error")  # as PUT /loglevel does
            write(path, SECOND)
            await guard.reloader.reload()
            assert ours.level == logging.ERROR
            write(path, SECOND + "logging: {level: debug}\n")
            assert await guard.reloader.reload() == "reloaded: logging.level"
            assert ours.level == logging.DEBUG

    async def test_policies_that_did_not_change_are_the_same_objects(self, path: Path) -> None:
        async with guarded(path) as guard:
            write(path, FIRST + "routes: [{route: a, policy: default}]\n")
            assert await guard.reloader.reload() == "reloaded: routes"
            one, other = (router.choose(None, None) for router in guard.routers)
            assert one is other

    async def test_who_stops_waiting_stops_nothing(self, path: Path) -> None:
        async with guarded(path) as guard, guard.reloader.watching(3_600.0):
            write(path, SECOND)
            asking = asyncio.create_task(guard.reloader.reload())
            await asyncio.sleep(0)
            asking.cancel()
            await until(guard.is_at("second"))
            assert asking.cancelled()


class TestWhatWouldReplaceStrictPolicies:
    @pytest.mark.parametrize("text", ["", "# emptied\n", "kafka: {group_id: a}\npolicies:\n"])
    async def test_an_emptied_or_cut_file_is_an_error_and_the_policies_stay(
        self, path: Path, text: str
    ) -> None:
        async with guarded(path) as guard, guard.reloader.watching(0.01):
            before = reloads("failed")
            write(path, text)
            await until(lambda: reloads("failed") > before)
            assert failed() == 1
            assert guard.version == "first"
            write(path, SECOND)
            await until(guard.is_at("second"))

    @pytest.mark.parametrize("text", ["{}", "limits: {}"])
    async def test_policies_that_the_file_lost_are_named(self, path: Path, text: str) -> None:
        write(path, "policies: {default: {version: first}, strict: {}}\n")
        async with guarded(path) as guard:
            write(path, text)
            with capture_logs() as logs:
                await guard.reloader.reload()
            [warning] = [entry for entry in logs if entry["event"] == "config.policies_gone"]
            assert warning["policies"] == ["default", "strict"]
            write(path, SECOND)
            with capture_logs() as logs:
                await guard.reloader.reload()
            assert [entry["event"] for entry in logs] == ["config.reloaded"]


class TestWhatIsNoFile:
    async def test_a_pipe_is_refused_and_a_file_in_its_place_is_followed(self, path: Path) -> None:
        async with guarded(path) as guard, guard.reloader.watching(0.01):
            before = reloads("failed")
            remove(path)
            os.mkfifo(path)
            with pytest.raises(ConfigError, match=r"guardrail\.yaml: the file is not a regular file"):
                await guard.reloader.reload()
            await until(lambda: reloads("failed") > before)
            remove(path)
            write(path, SECOND)
            await until(guard.is_at("second"))

    async def test_an_endless_device_is_refused(self, path: Path) -> None:
        async with guarded(path) as guard:
            remove(path)
            link(path, "/dev/zero")
            with pytest.raises(ConfigError, match="is not a regular file"):
                await guard.reloader.reload()

    async def test_a_file_system_that_does_not_answer_holds_nothing_up(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = threading.Event()
        calls = 0

        def read(path: Path) -> SettingsFile:
            nonlocal calls
            calls += 1
            answers.wait()
            return SettingsFile.read(path)

        async with guarded(path, read_s=0.05) as guard:
            write(path, SECOND)
            with monkeypatch.context() as patched:
                patched.setattr("consumers.reloading._read", read)
                for _ in range(3):
                    with pytest.raises(ConfigError, match="reading takes longer"):
                        await guard.reloader.reload()
                assert calls == 1  # no thread is added for each try
                answers.set()
            await until(lambda: "config-read" not in {thread.name for thread in threading.enumerate()})
            assert guard.version == "first"
            assert await guard.reloader.reload() == "reloaded: policies"


def test_a_file_that_is_not_there_is_another_content(path: Path) -> None:
    before = fingerprint(path)
    path.unlink()
    assert fingerprint(path) != before
