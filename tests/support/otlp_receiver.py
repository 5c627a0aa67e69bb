"""A receiver of OTLP over HTTP that keeps what it is sent, decoded from protobuf."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


class OtlpReceiver:
    """What came. ``status`` is what it answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.logs: list[Any] = []
        self.spans: list[Any] = []

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.requests.append((path, headers))
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if path == "/v1/logs":
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    self.logs.extend(scope.log_records)
        elif path == "/v1/traces":
            for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                for spans in each.scope_spans:
                    self.spans.extend(spans.spans)
        else:
            raise AssertionError(f"nothing is sent to {path}")


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: _plain(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _plain(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Listens on 127.0.0.1 until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.take(self.path, headers, body)
            self.send_response(receiver.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = OtlpReceiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
