"""A judge that remembers: it judges the same claim on the same contexts only once.

Two responses that ask the same thing at the same time share one call, but neither depends on the other: the
one that waits makes its own call if the other's fails or is cancelled, and at the latest after half of its
own time.

An entry holds nothing that belongs to a single response. Evidence is stored as the number of its context and
a span, never as text. Reading an entry takes the quotes from the contexts at hand; an entry that does not fit
them is unusable.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Protocol, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic_core import from_json, to_json

from guardrail import __version__
from guardrail.claims.model import Claim
from guardrail.errors import ConfigError, JudgeError
from guardrail.events import Context, Verdict
from guardrail.frozen import Frozen
from guardrail.judges.base import Around, Judge, JudgeRequest
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.streams import checked, closing, defer, merged
from guardrail.leaves import leaves
from guardrail.secrets import WHOLE, Secret
from guardrail.verdicts import Judgement, sound

_VERSION: Final = 3
_MAX_BYTES: Final = 8_192


def request_digest(request: JudgeRequest, fingerprint: str) -> bytes:
    """What all claims of a request have in common: tenant, question, contexts, judge and settings, and
    whether their parts are wanted.

    This passes over all contexts: call it off the event loop if they are long. The order of contexts counts,
    their ids don't. Tenants never share verdicts.
    """
    digest = hashlib.blake2b(digest_size=32)
    for part in (str(_VERSION), fingerprint, request.tenant or "", request.question):
        _feed(digest, part)
    if request.parts:
        _feed(digest, "parts")
    for context in request.evidence.contexts:
        _feed(digest, context.text)
        _feed(digest, context.source or "")
    return digest.digest()


def claim_key(request: bytes, claim: Claim) -> bytes:
    """The key of one claim's verdict: 32 bytes that reveal no text."""
    digest = hashlib.blake2b(request, digest_size=32)
    _feed(digest, claim.prose.text)
    _feed(digest, claim.lead_in)
    _feed(digest, claim.severity.value)
    for citation in claim.citations:  # cited contexts are read first
        _feed(digest, " ".join(citation.context_ids))
    return digest.digest()


def _feed(digest: hashlib.blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "big"))
    digest.update(data)


def pack(judgement: Judgement, contexts: Sequence[Context]) -> bytes | None:
    """The judgement as bytes; None if it must not be cached.

    That is the case if it is UNVERIFIED or degraded, has evidence that is in no context, or is very long.
    """
    if judgement.verdict is Verdict.UNVERIFIED or judgement.support is None or judgement.degraded_from:
        return None
    try:
        packed = replace(judgement, attempts=1, usage=None).pack(contexts)
        if not _by_place(packed):
            return None
        data = to_json({"v": _VERSION, **packed})
    except ValueError:
        return None
    return data if len(data) <= _MAX_BYTES else None


def unpack(data: bytes, claim_id: str, claim: Claim, contexts: Sequence[Context]) -> Judgement | None:
    """The judgement for ``claim_id``; None if the bytes are not what ``pack`` makes for this claim and these
    contexts.
    """
    if len(data) > _MAX_BYTES:
        return None
    try:
        packed = from_json(data)
        if not isinstance(packed, dict) or packed.get("v") != _VERSION or not _by_place(packed):
            return None
        judgement = replace(Judgement.unpack(claim_id, packed, contexts), attempts=0)
    except (ValueError, TypeError):
        return None
    if judgement.verdict is Verdict.UNVERIFIED or judgement.degraded_from or judgement.usage is not None:
        return None
    if not all(evidence.quote for evidence in judgement.evidence):
        return None
    return judgement if sound(judgement, claim.prose.text) == judgement else None


def _by_place(packed: Mapping[str, Any]) -> bool:
    """Whether it has no text of the contexts: whoever can write an entry could make up quotes."""
    places = [*packed.get("evidence", ()), *packed.get("conflicts", ())]
    return not any(isinstance(place, dict | str) for place in places)


_LONG_CHARS: Final = 50_000
_ROUNDS: Final = 2
_LEAST_KEY_CHARS = 16


def check_redis_url(url: str) -> str:
    """The URL. Raises ValueError, which never repeats a password."""
    try:
        parts = urlsplit(url)
        if parts.scheme != "unix":
            parts.port  # noqa: B018 - it raises for what is not a port
    except ValueError:  # its message may repeat a password
        raise ValueError(
            "redis_url has no usable host and port; write it as redis://HOST:PORT/0, PORT from 1 to 65535"
        ) from None
    if parts.scheme not in {"redis", "rediss", "unix"}:
        raise ValueError("redis_url is not a Redis URL; write it as redis://[USER:PASSWORD@]HOST:PORT/0")
    return url


class CacheSettings(Frozen):
    """How long verdicts are cached, and where guards share them."""

    max_entries: ClassVar[int] = 20_000
    """Verdicts kept in memory, 1 to 8 KB each; the one unused longest goes first."""

    ttl_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=3_600.0, description="How long a verdict is reused. 0: never, nothing is cached."
    )
    redis_url: Secret | None = Field(
        default=None,
        description="A Redis server through which guards share verdicts, as "
        "redis://[USER:PASSWORD@]HOST:PORT/0, rediss:// (TLS) or unix://. If it contains "
        "a password, better as {file: PATH} (a mounted secret), read at start. null: no "
        "sharing.",
    )
    signing_key: Secret | None = Field(
        default=None,
        description="Secret that all guards share, better as {file: PATH}. Guards sign entries in "
        "Redis with it (HMAC-SHA256) and ignore others. Without a key, anyone who can "
        "write to the server can forge verdicts. A new key invalidates all stored "
        "entries.",
    )

    @field_validator("redis_url")
    @classmethod
    def _is_redis_url(cls, value: Secret | None) -> Secret | None:
        if value is not None and value.text is not None:
            check_redis_url(value.text.get_secret_value())
        return value

    @model_validator(mode="after")
    def _signs_something(self) -> Self:
        if self.signing_key is not None and self.redis_url is None:
            raise ValueError("signing_key has no effect without redis_url; give redis_url, or take it out")
        return self

    @property
    def enabled(self) -> bool:
        """Whether verdicts are reused."""
        return self.ttl_seconds > 0

    def resolve_redis_url(self) -> str:
        """The server's URL. Raises ConfigError, without the password, if it is unreadable or not a Redis
        URL.
        """
        if self.redis_url is None:
            raise ConfigError("judge.cache.redis_url is not set; name the server as redis://HOST:PORT/0")
        url = self.redis_url.read("judge.cache.redis_url", "URL")
        try:
            return check_redis_url(url)
        except ValueError as error:
            raise ConfigError(f"judge.cache.redis_url: {error}") from None

    def resolve_signing_key(self) -> bytes | None:
        """The signing key, or None. Raises ConfigError if it is too short or unreadable."""
        if self.signing_key is None:
            return None
        key = self.signing_key.read("judge.cache.signing_key", "key")
        if len(key) < _LEAST_KEY_CHARS:
            raise ConfigError(
                f"judge.cache.signing_key: {len(key)} characters are too few to be secret; give "
                f"{_LEAST_KEY_CHARS} or more, as `openssl rand -hex 32` makes them"
            )
        return key.encode()


class SharedCache(Protocol):
    """A cache that several guards share. If it fails, it finds nothing; it never raises and never takes
    long.
    """

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def put(self, entries: dict[bytes, bytes], ttl_seconds: float) -> None: ...

    async def aclose(self) -> None: ...


class CachedJudge(Around):
    """A Judge around any other. Cached judgements have ``attempts`` 0 and no usage.

    UNVERIFIED and degraded judgements are never cached: they describe a moment, not the claim.
    """

    def __init__(
        self,
        judge: Judge,
        fingerprint: str,
        settings: CacheSettings | None = None,
        *,
        max_wait_s: float = 0.0,
        shared: SharedCache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes over ``judge`` and ``shared``, and closes them.

        ``fingerprint`` identifies everything else that a verdict depends on: model, prompt, settings.
        ``max_wait_s``: how long claims that are not cached may wait for others, to share a call.
        ``clock`` is that of deadlines.
        """
        super().__init__(judge, max_wait_s)
        self._fingerprint = fingerprint
        self._settings = settings or CacheSettings()
        self._shared = shared
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Future[bytes | None]] = {}

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields cached judgements at once, and new ones as the judge gives them. Raises what the judge
        raises, after all known judgements.
        """
        if sum(len(context.text) for context in request.evidence.contexts) > _LONG_CHARS:
            digest = await asyncio.to_thread(request_digest, request, self._fingerprint)
        else:
            digest = request_digest(request, self._fingerprint)
        now = self._clock()
        work = _OpenRequest(
            request,
            {claim_id: claim_key(digest, claim) for claim_id, claim in request.claims.items()},
            patient_until=now + (request.deadline - now) / 2,
        )
        for judgement in await self._looked_up(work):
            yield judgement
        if work.open and self.max_wait_s:
            if defer(request, work.open, self.name):
                return
            request = work.request = replace(request, gathering=None)  # it has been asked
        for round_ in range(_ROUNDS + 1):
            if not work.open:
                break
            async with closing(self._round(work, wait=round_ < _ROUNDS)) as judgements:
                async for judgement in judgements:
                    yield judgement
        if work.error is not None:
            raise work.error

    async def aclose(self) -> None:
        """Close the judge, and the shared cache."""
        try:
            await super().aclose()
        finally:
            if self._shared is not None:
                await self._shared.aclose()

    async def _looked_up(self, work: _OpenRequest) -> list[Judgement]:
        found: list[Judgement] = []
        for claim_id in list(work.open):
            data = self._get(work.keys[claim_id])
            if data is not None:
                found += work.known(data, claim_id)
        unknown = [work.keys[claim_id] for claim_id in work.open]
        unknown = [key for key in dict.fromkeys(unknown) if key not in self._under_way]
        if self._shared is None or not unknown:
            return found
        for key, data in zip(unknown, await self._shared.get(unknown), strict=True):
            used = [] if data is None else work.known(data, *work.claims_of(key))
            if data is not None and used:
                self._keep(key, data)
            found += used
        return found

    def _round(self, work: _OpenRequest, *, wait: bool) -> AsyncIterator[Judgement]:
        """Ask for claims that no other request is asking for; wait for the others, which stay open if that
        call fails.
        """
        mine: dict[bytes, str] = {}
        theirs: dict[bytes, asyncio.Future[bytes | None]] = {}
        for claim_id in work.open:
            key = work.keys[claim_id]
            if key in mine or key in theirs:
                continue  # occurs twice in one response: asked once
            if wait and key in self._under_way and self._clock() < work.patient_until:
                theirs[key] = self._under_way[key]
            else:
                mine[key] = claim_id
        leading, following = self._lead(work, mine), self._follow(work, theirs)
        if mine and theirs:
            return merged(leading, following)
        return leading if mine else following

    async def _lead(self, work: _OpenRequest, mine: dict[bytes, str]) -> AsyncIterator[Judgement]:
        """Ask the judge, and publish each judgement to other requests waiting for the same claim."""
        request = work.request
        loop = asyncio.get_running_loop()
        led = {key: loop.create_future() for key in mine if key not in self._under_way}
        self._under_way.update(led)
        asked = replace(request, claims={claim_id: request.claims[claim_id] for claim_id in mine.values()})
        found: dict[bytes, bytes] = {}
        try:
            async with closing(checked(self._judge, asked)) as judgements:
                async for judgement in judgements:
                    key = work.keys[judgement.claim_id]
                    data = pack(judgement, request.evidence.contexts)
                    if data is not None:
                        found[key] = data
                        self._keep(key, data)
                        if key in led:
                            led[key].set_result(data)
                    for each in work.settled(judgement, data):
                        yield each
        except JudgeError as error:
            work.error = error
        finally:
            for key, future in led.items():
                if self._under_way.get(key) is future:
                    del self._under_way[key]
                if not future.done():
                    future.set_result(None)
        work.give_up(mine)
        if self._shared is not None and found:
            await self._shared.put(found, self._settings.ttl_seconds)

    async def _follow(
        self, work: _OpenRequest, theirs: dict[bytes, asyncio.Future[bytes | None]]
    ) -> AsyncIterator[Judgement]:
        waiting = dict(theirs)
        while waiting:
            # ``wait`` leaves the futures alone when it is cancelled: they belong to another response.
            done, _ = await asyncio.wait(
                waiting.values(),
                timeout=work.patient_until - self._clock(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                return
            for key in [key for key, future in waiting.items() if future in done]:
                data = waiting.pop(key).result()
                used = [] if data is None else work.known(data, *work.claims_of(key))
                for judgement in used:
                    yield judgement

    def _get(self, key: bytes) -> bytes | None:
        entry = self._kept.get(key)
        if entry is None:
            return None
        if self._clock() >= entry[0]:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return entry[1]

    def _keep(self, key: bytes, data: bytes) -> None:
        self._kept[key] = (self._clock() + self._settings.ttl_seconds, data)
        self._kept.move_to_end(key)
        if len(self._kept) > self._settings.max_entries:
            self._kept.popitem(last=False)


class _OpenRequest:
    """One request under way: its open claims, and the error that ended a call for some of them."""

    def __init__(self, request: JudgeRequest, keys: dict[str, bytes], patient_until: float) -> None:
        self.request = request
        self.keys = keys
        self.patient_until = patient_until
        self.open: dict[str, None] = dict.fromkeys(request.claims)
        self.error: JudgeError | None = None

    def claims_of(self, key: bytes) -> list[str]:
        """The open claims with that key."""
        return [claim_id for claim_id in self.open if self.keys[claim_id] == key]

    def known(self, data: bytes, *claim_ids: str) -> list[Judgement]:
        """The judgements that a packed one gives for these claims, if it fits; they are no longer open."""
        claims, contexts = self.request.claims, self.request.evidence.contexts
        unpacked = (unpack(data, claim_id, claims[claim_id], contexts) for claim_id in claim_ids)
        found = [judgement for judgement in unpacked if judgement is not None]
        for judgement in found:
            del self.open[judgement.claim_id]
        return found

    def settled(self, judgement: Judgement, data: bytes | None) -> list[Judgement]:
        """The judgement of a claim, and the same for identical claims of the response."""
        key = self.keys[judgement.claim_id]
        self.open.pop(judgement.claim_id, None)
        found = [] if data is None else self.known(data, *self.claims_of(key))
        again = [replace(judgement, claim_id=twin, attempts=0, usage=None) for twin in self.claims_of(key)]
        self.give_up([key])
        return [judgement, *found, *again]

    def give_up(self, keys: Collection[bytes]) -> None:
        """The judge is done with these claims."""
        for claim_id in [claim_id for claim_id in self.open if self.keys[claim_id] in keys]:
            del self.open[claim_id]


# ------------------------------------------------- what verdicts depend on besides the claim and its contexts

_MOST_FILES: Final = 2_000  # more than any model or program has


def stamps(path: Path) -> list[str]:
    """One line for each file at or below ``path``: its relative name, size and modification time.

    Empty if nothing can be inspected: whoever needs the file reports that. ``path`` may be any text.
    """
    found = []
    with suppress(OSError, ValueError):  # missing, not accessible, or not a valid name
        for file in sorted(islice(path.rglob("*"), _MOST_FILES)) if path.is_dir() else [path]:
            if file.is_file():
                told = file.stat()
                found.append(f"{file.relative_to(path)} {told.st_size} {told.st_mtime_ns}")
    return found


_PACKAGED: Final = {
    "local": ("rarity.json", "verifier_model/manifest.json", "verifier_model/parameters.json"),
    "llm": ("prompts",),
    "decisions": ("questions.yaml",),
}
"""What a judge reads of the package; the manifest has the checksums of the local one's model."""


def fingerprint(kind: str, settings: BaseModel | str) -> str:
    """64 hexadecimal digits; equal for equal settings, files named in them, prompts and releases.

    ``settings`` of a judge of kind custom are its factory. Models in folders, and the module or package of a
    factory, count by their current size and modification time: a replacement while the judge runs takes
    effect at its next start.

    Raises ConfigError for a factory whose files can't be found, as those of the program itself.

    Secrets go in masked; bodies, which only may contain one, go in whole. The fingerprint
    includes more than necessary (time limits, say): asking again for a verdict does no harm, but mistaking
    one for another does.
    """
    digest = hashlib.sha256()
    values = settings if isinstance(settings, str) else settings.model_dump(mode="json", context=WHOLE)
    told = json.dumps(values, sort_keys=True, ensure_ascii=True)
    for part in (kind, __version__, told, *_contents(settings), *_programs(settings)):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    for name in _PACKAGED.get(kind, ()):
        entry = files(f"guardrail.judges.{kind}").joinpath(name)
        for file in sorted(entry.iterdir(), key=lambda e: e.name) if entry.is_dir() else [entry]:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _programs(settings: BaseModel | str) -> list[str]:
    """The state of the models and modules on this machine that a judge runs."""
    if isinstance(settings, ClassifierSettings):
        return stamps(Path(settings.model)) if settings.model is not None else []
    if isinstance(settings, str):
        name = settings.partition(":")[0].partition(".")[0]
        places = _places(name)
        if not places:
            raise ConfigError(
                f"judge.factory: the files of {name} can't be found, by which cached verdicts of {settings} "
                "are told from those of other releases; put it into a module of its own, or set "
                "judge.cache.ttl_seconds to 0"
            )
        return [stamp for place in places for stamp in stamps(place)]
    return []


def _places(name: str) -> list[Path]:
    """The file of a module, or the folder of a package, or those of one without __init__.py, which may be in
    several; empty if nothing tells.
    """
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a program is the module __main__, which nobody has searched for
        return []
    if spec is None:
        return []
    found = spec.submodule_search_locations or [spec.origin or ""]
    return [Path(each) for each in found if each]


def _contents(settings: object) -> Iterator[str]:
    """The texts of the files that the settings name, such as custom prompts."""
    for leaf in leaves(settings):
        value, name = leaf.value, next((part for part in reversed(leaf.path) if isinstance(part, str)), "")
        if isinstance(value, Path):
            if value.is_dir():
                yield from stamps(value)
            with suppress(OSError):  # whoever needs the file reports it when it is loaded
                yield f"{name} {hashlib.sha256(value.read_bytes()).hexdigest()}"
