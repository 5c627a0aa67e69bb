"""Reloads policies while the guard runs: reads the file again, checks it as a whole, and swaps the policies
at once; and another file beside it, such as the gateway's keys.

Only what decides a response from its beginning can change: policies, routes, the default policy and
challengers; and ``logging.level``. A warning names all other changes, which need a restart. If the file has
any error, the current policies stay in effect.

The reloader only compares the file's content, because no watch on a folder survives all the ways in which
files are replaced (Kubernetes swaps a link two levels up, editors rename). When the content changes, it
checks again before reading, because the file may be half written.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from consumers.settings import GuardSettings
from guardrail import telemetry
from guardrail.config import SettingsError, SettingsFile
from guardrail.errors import ConfigError
from guardrail.judges.base import Judge
from guardrail.judges.factory import JudgeSet, check_time
from guardrail.leaves import leaves
from guardrail.logs import set_level
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

log = structlog.get_logger(__name__)

POLL_S: Final = 2.0
_LIVE: Final = ("policies", "routes", "default_policy", "challengers")
_TRIES: Final = 3
_READ_S: Final = 5.0

_T = TypeVar("_T")


def fingerprint(path: Path) -> str:
    """Identifies a file's content; what can't be read, or is not a regular file, has that as its content."""
    try:
        return _digest(_read(path))
    except SettingsError as error:
        return str(error)


def _read(path: Path) -> SettingsFile:
    return SettingsFile.read(path, pipe_s=0.0)


def _digest(file: SettingsFile) -> str:
    return blake2b(file.data, digest_size=16).hexdigest()


class Reloader:
    """Keeps a running guard in line with its configuration file."""

    def __init__(
        self,
        file: SettingsFile,
        read: Callable[[SettingsFile], GuardSettings],
        running: GuardSettings,
        judges: JudgeSet,
        use: Callable[[PolicyRouter, Mapping[str, Judge]], None],
        *,
        read_s: float = _READ_S,
        beside: tuple[Path, Callable[[], Awaitable[tuple[str, str]]]] | None = None,
    ) -> None:
        """``read`` makes settings of the file as at the start, and raises ConfigError; ``running`` are those
        in effect, which came from ``file``. ``use`` receives the new policies; ``judges`` gets the judges
        that they need. A file that can't be read within ``read_s`` counts as unreadable. ``beside`` is
        another file that is followed, and what puts it to use: it gives the outcome and what changed, or
        raises ConfigError; each of the two holds whatever becomes of the other.
        """
        self._path = file.path
        self._works = [(self._path, self._put_to_use), *([] if beside is None else [beside])]
        self._read = read
        self._running = running  # as started
        self._holds = running  # whose policies are in effect
        self._judges = judges
        self._use = use
        self._seen = [_digest(file), *(fingerprint(path) for path, _ in self._works[1:])]
        self._read_s = read_s
        self._late: Future[Any] | None = None
        self._lock = asyncio.Lock()
        self._asked = asyncio.Event()
        self._closing = False
        self._reloads: set[asyncio.Task[str]] = set()
        telemetry.CONFIG_TIME.set_to_current_time()
        telemetry.RELOAD_FAILED.set(0)

    def ask(self) -> None:
        """Request a reload; for a signal handler."""
        self._asked.set()

    async def reload(self) -> str:
        """Read the file and apply its policies; returns what changed, in words.

        Raises ConfigError, and changes nothing. Once started it runs to completion, even if the caller is
        cancelled.
        """
        task = asyncio.create_task(self._reload(), name="config-reload")
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def watching(self, every_s: float = POLL_S) -> AsyncIterator[None]:
        """Within the block, checks the file every ``every_s`` seconds; at its end waits for a reload."""
        watch = asyncio.create_task(self._watch(every_s), name="config-watch")
        try:
            yield
        finally:
            self._closing = True
            self._asked.set()
            await watch
            if self._reloads:
                await asyncio.wait(self._reloads)

    async def _watch(self, every_s: float) -> None:
        before = list(self._seen)
        while not self._closing:
            try:
                async with asyncio.timeout(every_s):
                    await self._asked.wait()
            except TimeoutError:
                try:
                    now = await self._in_time(lambda: [fingerprint(path) for path, _ in self._works])
                except ConfigError as error:
                    now = [str(error)] * len(self._works)
                still, before = now == before, now
                if now == self._seen or not still:
                    continue
            self._asked.clear()
            if not self._closing:
                try:
                    await self.reload()
                except ConfigError:
                    continue  # logged and counted; tried again when the content changes

    async def _reload(self) -> str:
        async with self._lock:
            outcomes, said, failed = set(), [], []
            for number, (path, put_to_use) in enumerate(self._works):
                try:
                    if number:  # the first is looked at where it is read
                        self._seen[number] = await self._in_time(partial(fingerprint, path))
                    outcome, told = await put_to_use()
                except Exception as error:  # noqa: BLE001 - what is wrong with one must not keep the other
                    failed.append(error)
                    log.error(  # noqa: TRY400 - of errors on purpose the place says nothing
                        "config.reload_failed",
                        path=str(path),
                        errors=_messages(error),
                        remedy="correct the file; until then what it said before applies",
                    )
                else:
                    outcomes.add(outcome)
                    said.append(told)
            telemetry.RELOAD_FAILED.set(bool(failed))
            if failed:
                telemetry.RELOADS.labels("failed").inc()
                if len(failed) == 1 and isinstance(failed[0], ConfigError):
                    raise failed[0]
                raise ConfigError("\n".join(each for error in failed for each in _messages(error)))
            telemetry.RELOADS.labels("ok" if "ok" in outcomes else "unchanged").inc()
            telemetry.CONFIG_TIME.set_to_current_time()
            return "\n".join(said)

    async def _put_to_use(self) -> tuple[str, str]:
        settings = await self._read_still()
        policies = settings.policies.values()
        missing = self._judges.missing(policies, settings.judge)
        if missing:
            log.info("config.building_judges", judges=[each.kind for each in missing])
            await asyncio.to_thread(self._judges.add, missing)
        for short in check_time(self._judges.settings, settings.policies):
            log.warning("judge.second_never_asked", why=short)
        fixed = [*_fixed(self._running, settings), *self._judges.fixed(settings.judge, policies)]
        if fixed:
            log.warning(
                "config.restart_needed", settings=fixed, remedy="restart the guard, or take the changes back"
            )
        former, settings = self._holds, _with_former_policies(settings, self._holds)
        changed = [name for name in _LIVE if getattr(settings, name) != getattr(former, name)]
        if settings.logging.level != former.logging.level:
            changed.append("logging.level")
            set_level(settings.logging.level)
        gone = _gone(former, settings)
        if gone:
            log.warning(
                "config.policies_gone",
                policies=gone,
                remedy="if that was not meant, the file has lost them: write them again",
            )
        if changed:
            self._use(settings.router(), self._judges.by_kind)
            self._holds = settings
            log.info(
                "config.reloaded",
                changed=changed,
                policies={name: policy.ref.digest for name, policy in settings.policies.items()},
                before={name: policy.ref.digest for name, policy in former.policies.items()},
            )
        said = f"reloaded: {', '.join(changed)}" if changed else "unchanged"
        if fixed:
            said += f"\nneed a restart: {', '.join(fixed)}"
        return ("ok" if changed else "unchanged"), said

    async def _read_still(self) -> GuardSettings:
        """The settings of a file that did not change while it was being read."""
        for left in reversed(range(_TRIES)):
            try:
                file = await self._in_time(partial(_read, self._path))
            except ConfigError as error:
                self._seen[0] = str(error)
                raise
            self._seen[0] = _digest(file)
            try:
                settings = await asyncio.to_thread(self._read, file)
            except ConfigError:
                if left and await self._in_time(partial(fingerprint, self._path)) != self._seen[0]:
                    continue
                raise
            if await self._in_time(partial(fingerprint, self._path)) == self._seen[0]:
                break
        return settings

    async def _in_time(self, read: Callable[[], _T]) -> _T:
        """What ``read`` returns or raises. Raises ConfigError if the file system doesn't answer in time.

        In a thread of its own that the end of the process doesn't wait for: a network's file system may never
        answer. While one is late, no other is begun.
        """
        late = f"{self._path}: reading takes longer than {self._read_s:g} s; is its file system there?"
        if self._late is not None and not self._late.done():
            raise ConfigError(late)
        done: Future[_T] = Future()

        def run() -> None:
            try:
                result = read()
            except Exception as error:  # noqa: BLE001 - whoever waits raises it
                done.set_exception(error)
            else:
                done.set_result(result)

        threading.Thread(target=run, name="config-read", daemon=True).start()
        try:
            async with asyncio.timeout(self._read_s):
                return await asyncio.shield(asyncio.wrap_future(done))
        except TimeoutError:
            self._late = done
            raise ConfigError(late) from None


def _gone(former: GuardSettings, settings: GuardSettings) -> list[str]:
    """The policies that the file no longer has; ``default`` too if it is the built-in one again."""
    return [
        name
        for name, policy in former.policies.items()
        if name not in settings.policies or settings.policies[name] == Policy() != policy
    ]


def _messages(error: Exception) -> list[str]:
    if isinstance(error, SettingsError):
        return [str(problem) for problem in error.problems]
    return [str(error)] if isinstance(error, ConfigError) else [f"{type(error).__name__}: {error}"]


def _with_former_policies(settings: GuardSettings, former: GuardSettings) -> GuardSettings:
    """The settings, with the existing objects for policies that have not changed."""
    policies = {
        name: old if (old := former.policies.get(name)) == policy else policy
        for name, policy in settings.policies.items()
    }
    return settings.model_copy(update={"policies": policies})


def _fixed(running: GuardSettings, settings: GuardSettings) -> Iterator[str]:
    """The settings that differ and need a restart, except the judge's."""
    before, after = (
        {leaf.dotted: leaf.value for leaf in leaves(each, whole=True)} for each in (running, settings)
    )
    for path in dict.fromkeys((*before, *after)):
        if before.get(path) != after.get(path):
            section = path.partition(".")[0]
            if section not in {*_LIVE, "judge"} and path != "logging.level":
                yield path
