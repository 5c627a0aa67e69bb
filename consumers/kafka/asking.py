"""What a user may do, and what release a broker is: asked for by requests that the admin client doesn't have.

They rely on private parts of aiokafka. Its admin client has no requests that show, without leaving a record,
whether a user may read a topic, join a group or write in a transaction; makes topics that it is asked for by
name where the broker does; and asks for no answer that tells the broker's release. Its
``describe_consumer_groups`` fails with two groups or more. None of this is filed.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.errors import BrokerResponseError, NoError, for_code
from aiokafka.protocol.admin import DescribeGroupsRequest_v1
from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

_BEYOND_THE_END: Final = 2**62
_SUPPORTED_FEATURES: Final = 0
_NAME: Final[Any] = ("name", CompactString("utf-8"))
_VERSIONS: Final[Any] = (("min", Int16), ("max", Int16), ("tags", TaggedFields))
_FEATURES: Final[Any] = CompactArray(_NAME, *_VERSIONS)
_TIMEOUT_MS: Final = 1000
ErrorKind = type[BrokerResponseError | NoError]


class _FeaturesResponse(Response):
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        ("api_versions", CompactArray(("api_key", Int16), *_VERSIONS)),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _FeaturesQuestion(RequestStruct):
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _FeaturesResponse
    FLEXIBLE_VERSION = True
    SCHEMA = Schema(_NAME, ("version", CompactString("utf-8")), ("tags", TaggedFields))

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        """Of this answer alone the header has no tags, so that any client can read it."""
        header: ResponseHeader_v0 = ResponseHeader_v0.decode(read_buffer)
        return header


class _FeaturesRequest(Request[_FeaturesQuestion]):
    API_KEY = 18

    def build(self, request_struct_class: type[_FeaturesQuestion]) -> _FeaturesQuestion:
        return request_struct_class("guardrail", "1", {})


class _GroupsRequest(Request[DescribeGroupsRequest_v1]):
    """The library reads answers of version 3 as if they were of version 2, and fails."""

    API_KEY = 15

    def __init__(self, groups: list[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: type[DescribeGroupsRequest_v1]) -> DescribeGroupsRequest_v1:
        return request_struct_class(self._groups)


class Subscription(NamedTuple):
    """What a member of a group has told its coordinator."""

    topics: tuple[str, ...]
    user_data: bytes


async def subscriptions(
    admin: AIOKafkaAdminClient, node: int, groups: list[str]
) -> dict[str, list[Subscription]]:
    """The subscriptions of the members of groups whose coordinator is ``node``: none while a group
    rebalances, and without the groups that this user may not describe. Raises KafkaError.
    """
    answer: Any = await admin._client.send(node, _GroupsRequest(groups))
    found: dict[str, list[Subscription]] = {}
    for code, name, _state, _type, _protocol, members in answer.groups:
        if for_code(code) is NoError:
            found[name] = [
                told
                for _member, _client, _host, metadata, _assignment in members
                if (told := _subscription(metadata)) is not None
            ]
    return found


def _subscription(metadata: bytes) -> Subscription | None:
    try:
        decoded = ConsumerProtocolMemberMetadata.decode(metadata)
    except ValueError:
        return None  # by a client that is no consumer, or not known yet
    return Subscription(tuple(decoded.subscription or ()), decoded.user_data or b"")


class Asker:
    """Asks brokers what the admin client doesn't, and writes to no topic. Its calls raise KafkaError and
    TimeoutError."""

    def __init__(self, options: dict[str, Any]) -> None:
        """``options`` are those of an admin client."""
        self._client = AIOKafkaClient(**options)

    async def start(self) -> None:
        """Connect."""
        await self._client.bootstrap()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def _ask(self, request: Any, node: int | None = None) -> Any:
        return await self._client.send(self._client.get_random_node() if node is None else node, request)

    async def metadata(self, topics: list[str]) -> dict[str, Any]:
        """Brokers, and these topics with their errors; none of them is made by that."""
        answer = await self._ask(MetadataRequest(topics, allow_auto_topic_creation=False))
        told: dict[str, Any] = answer.to_object()
        return told

    async def metadata_version(self) -> int | None:
        """The highest that a broker can hold; None where it doesn't tell, as before Kafka 3.3."""
        try:
            answer = await self._ask(_FeaturesRequest())
        except NotImplementedError:  # before 2.4
            return None
        features: Any = _FEATURES.decode(BytesIO(answer.tags.get(_SUPPORTED_FEATURES, b"\x01")))
        return next((highest for name, _, highest, _ in features if name == "metadata.version"), None)

    async def fetch_nothing(self, topic: str, leader: int | None) -> ErrorKind:
        """What reading from beyond the end of the first partition is answered with: an error in any case."""
        place = [(topic, [(0, _BEYOND_THE_END, 1)])]
        answer = await self._ask(FetchRequest(0, 0, 1, 0, place), leader)
        return _only_error(answer.topics)

    async def group_coordinator(self, group: str) -> int:
        """The node to ask about a group."""
        node: int = await self._client.coordinator_lookup(CoordinationType.GROUP, group)
        return node

    async def transaction_coordinator(self, transactional_id: str) -> int:
        """The node to ask about a transactional id."""
        node: int = await self._client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
        return node

    async def heartbeat_of_nobody(self, group: str, node: int) -> ErrorKind:
        """What a heartbeat of no member is answered with: an error in any case."""
        return for_code((await self._ask(HeartbeatRequest(group, -1, ""), node)).error_code)

    async def write_nothing(self, topic: str) -> ErrorKind:
        """What a write without records is answered with: an error in any case, first that of a right that
        lacks. It leaves no trace in the topic, where an aborted transaction leaves a marker."""
        answer = await self._ask(ProduceRequest(None, -1, _TIMEOUT_MS, [(topic, [(0, b"")])]))
        return _only_error(answer.topics)

    async def producer(self, transactional_id: str, timeout_ms: int, node: int) -> ErrorKind:
        """What a producer of transactions with this id is answered with; it begins none."""
        answer = await self._ask(InitProducerIdRequest(transactional_id, timeout_ms), node)
        return for_code(answer.error_code)


def _only_error(topics: Any) -> ErrorKind:
    [error] = [for_code(partition[1]) for _topic, partitions in topics for partition in partitions]
    return error
