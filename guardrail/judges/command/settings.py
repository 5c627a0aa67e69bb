"""Settings of a judge of the operator's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    field_validator,
    model_validator,
)

from guardrail.judges.http import check_url
from guardrail.secrets import MASK, check_headers, wants_all

_FLAG: Final = re.compile(r"(--[A-Za-z][A-Za-z0-9_-]*|-[A-Za-z])(=|$)")


def _shown_argv(argv: tuple[str, ...], info: Any) -> list[str]:
    """The program and the names of flags; any other argument, and a flag's value, may be a secret."""
    return list(argv) if wants_all(info) else [*argv[:1], *(_shown_argument(each) for each in argv[1:])]


def _shown_argument(argument: str) -> str:
    flag = _FLAG.match(argument)
    if flag is None:
        return MASK
    return f"{flag[0]}{MASK}" if flag[2] else flag[0]


class CommandJudgeSettings(BaseModel):
    """A program to run (``argv``) or an endpoint to ask (``url``), one of the two."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hang_timeout_ms: ClassVar[int] = 2_000
    """How long after its deadline a process may still be busy with a request before it is killed and started
    anew: models that can't be interrupted get time to come to an end."""
    restart_initial_ms: ClassVar[int] = 100
    """Wait before a process that ended is started again; doubles each time."""
    restart_max_ms: ClassVar[int] = 30_000
    max_queued_requests: ClassVar[int] = 256
    """Requests that may wait for a process; more are refused at once, as few of them would be in time."""
    max_reply_bytes: ClassVar[int] = 1_048_576
    """Longest reply that is read; a longer one is unusable. Verdicts on a request are some kilobytes."""

    name: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="The judge's name in verdicts, after command:; unset: the program's or the host's name.",
    )
    argv: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...], PlainSerializer(_shown_argv, when_used="json")
    ] = Field(
        default=(),
        repr=False,
        description="The program and its arguments as separate items; no shell is involved. It reads "
        "one request per line from stdin and writes one reply per line to stdout.",
    )
    cwd: Path | None = Field(default=None, description="Folder the program runs in; unset: the guard's own.")
    env: dict[str, SecretStr] = Field(
        default_factory=dict, description="Variables to add to the program's environment."
    )
    stderr: Literal["discard", "inherit"] = Field(
        default="discard",
        description="inherit: the program's stderr goes to the guard's own, including any texts of "
        "responses it writes.",
    )

    url: str | None = Field(
        default=None,
        description="Endpoint that receives each request by POST and answers 200 with the reply.",
    )
    headers: dict[str, SecretStr] = Field(default_factory=dict, description="HTTP headers to add.")
    token_file: Path | None = Field(
        default=None, description="File with a token (a mounted secret), sent as Authorization: Bearer."
    )
    cafile: Path | None = Field(
        default=None, description="PEM file of the CAs to trust for https; unset: the system's."
    )

    max_concurrency: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        default=None,
        description="Concurrent requests: processes of the program, each with one request at a time, "
        "or HTTP requests. null: 1 process, 16 HTTP requests.",
    )
    require_quotes: bool = Field(
        default=False,
        description="Whether SUPPORTED without a quote from a context becomes UNVERIFIED.",
    )

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        return None if url is None else check_url(url)

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        check_headers(headers)
        return headers

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.argv and self.url is not None:
            raise ValueError("argv and url are both set; keep the one that is meant")
        return self

    @property
    def concurrency(self) -> int:
        """Requests in flight at once."""
        if self.max_concurrency is not None:
            return self.max_concurrency
        return 1 if self.argv else 16
