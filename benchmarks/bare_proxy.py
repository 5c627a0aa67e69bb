"""What anybody would write with Starlette and httpx in place of the gateway, its yardstick: it relays bytes.

    python -m benchmarks.bare_proxy http://127.0.0.1:9000/v1

It says on which port it listens as the gateway does.
"""

from __future__ import annotations

import json
import socket
import sys

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


def relaying(upstream: str) -> Starlette:
    """The application."""
    client = httpx2.AsyncClient(timeout=None, limits=httpx2.Limits(max_connections=None))

    async def relay(request: Request) -> StreamingResponse:
        url = upstream + request.url.path.removeprefix("/v1")
        kind = {"content-type": request.headers["content-type"]}
        asked = client.build_request(request.method, url, content=await request.body(), headers=kind)
        response = await client.send(asked, stream=True)
        headers = {"content-type": response.headers["content-type"]}
        closes = BackgroundTask(response.aclose)
        return StreamingResponse(response.aiter_raw(), response.status_code, headers, background=closes)

    return Starlette(routes=[Route("/{path:path}", relay, methods=["POST"])])


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(json.dumps({"event": "serve.listening", "port": listening.getsockname()[1]}), flush=True)
    config = uvicorn.Config(relaying(sys.argv[1]), log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])
