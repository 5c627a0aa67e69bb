"""Which release of Kafka a broker is.

No answer of a broker names it. Since 3.3 the answer on API versions has the highest version of the metadata
that it can hold, which tells the release but for its last number. aiokafka asks for older answers.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

_RELEASES: Final = (
    (7, "3.3"),
    (8, "3.4"),
    (11, "3.5"),
    (14, "3.6"),
    (19, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (25, "4.0"),
    (27, "4.1"),
    (29, "4.2"),
    (30, "4.3"),
)
"""The highest metadata.version of each release."""
_SUPPORTED_FEATURES: Final = 0
_NAME: Final = ("name", CompactString("utf-8"))
_FEATURES: Final[Any] = CompactArray(_NAME, ("min", Int16), ("max", Int16), ("tags", TaggedFields))


class _ApiVersionResponse3(Response):
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(("api_key", Int16), ("min", Int16), ("max", Int16), ("tags", TaggedFields)),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _ApiVersionRequest3(RequestStruct):
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _ApiVersionResponse3
    FLEXIBLE_VERSION = True
    SCHEMA = Schema(_NAME, ("version", CompactString("utf-8")), ("tags", TaggedFields))

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        """Of this answer alone the header has no tags, so that any client can read it."""
        header: ResponseHeader_v0 = ResponseHeader_v0.decode(read_buffer)
        return header


class _Features(Request[_ApiVersionRequest3]):
    API_KEY = 18

    def build(self, request_struct_class: type[_ApiVersionRequest3]) -> _ApiVersionRequest3:
        return request_struct_class("guardrail", "1", {})


async def release_of(client: AIOKafkaClient, node: int) -> str | None:
    """The release of a broker, as "4.2"; None where it doesn't tell. Raises KafkaError."""
    try:
        answer: Any = await client.send(node, _Features())
    except NotImplementedError:
        return None  # a broker from before 2.4
    features = answer.tags.get(_SUPPORTED_FEATURES)
    if features is None:
        return None
    found: Any = _FEATURES.decode(BytesIO(features))
    return next((named(highest) for name, _, highest, _ in found if name == "metadata.version"), None)


def named(version: int) -> str | None:
    """The release whose highest metadata.version is at least this."""
    known = next((release for highest, release in _RELEASES if version <= highest), None)
    return known or f"later than {_RELEASES[-1][1]}"
