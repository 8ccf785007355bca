"""HTTP for those who scrape: GET /metrics and GET /health, one answer per connection, nothing else, everything bounded.

On loopback everybody on the machine may read; under TLS whoever has a certificate of the same CA.
"""

import asyncio
import contextlib
import re
import ssl
from pathlib import Path
from typing import NamedTuple, Protocol

from node_agent.metrics.page import CONTENT_TYPE

MOST_CONNECTIONS = 16
MOST_HEAD_BYTES = 8192
MOST_HEADERS = 64
READ_S, ANSWER_S, WRITE_S = 5.0, 10.0, 5.0
PLAIN = "text/plain; charset=utf-8"
REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,1023}) HTTP/1\.[01]")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([ -~\t\x80-\xff]*)")


class Told(Protocol):
    """What there is to tell."""

    async def page(self) -> str:
        """Of /metrics."""

    async def health(self) -> tuple[bool, str]:
        """Of /health: whether all is well, and if not, why."""


class Answer(NamedTuple):
    """One answer."""

    status: str
    body: str
    content_type: str = PLAIN
    more: str = ""


class BadRequestError(Exception):
    """No request that is served here; the text goes back."""


async def serve(host: str, port: int, told: Told, identity: Path | None = None) -> int:
    """Begin to serve; returns the port. Raises OSError where it is taken, ValueError where the identity is none."""
    context: ssl.SSLContext | None = None
    if identity is not None:
        from node_agent.tls.identity import server_context

        context = server_context(identity)
    open_ = [0]

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_[0] += 1
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ssl.SSLError):
                crowded = open_[0] > MOST_CONNECTIONS
                answer = Answer("503 Service Unavailable", "busy\n") if crowded else await _answer(reader, told)
                writer.write(_encoded(answer))
                await asyncio.wait_for(writer.drain(), WRITE_S)
        finally:
            open_[0] -= 1
            with contextlib.suppress(OSError, TimeoutError, ssl.SSLError):
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), WRITE_S)

    server = await asyncio.start_server(
        on_connection, host, port, limit=MOST_HEAD_BYTES, backlog=MOST_CONNECTIONS, ssl=context,
        **({} if context is None else {"ssl_handshake_timeout": READ_S, "ssl_shutdown_timeout": WRITE_S}),
    )  # fmt: skip
    bound: int = server.sockets[0].getsockname()[1]
    return bound


async def _answer(reader: asyncio.StreamReader, told: Told) -> Answer:
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), READ_S)
        method, path = parsed(head)
    except asyncio.LimitOverrunError:
        return Answer("431 Request Header Fields Too Large", "the request is too long\n")
    except BadRequestError as error:
        return Answer("400 Bad Request", f"{error}\n")
    if path not in {"/metrics", "/health"}:
        return Answer("404 Not Found", "there is /metrics and /health\n")
    if method != "GET":
        return Answer("405 Method Not Allowed", "only GET\n", more="Allow: GET\r\n")
    try:
        return await asyncio.wait_for(_metrics(told) if path == "/metrics" else _health(told), ANSWER_S)
    except TimeoutError:
        return Answer("503 Service Unavailable", "no answer in time\n")


async def _metrics(told: Told) -> Answer:
    return Answer("200 OK", await told.page(), CONTENT_TYPE)


async def _health(told: Told) -> Answer:
    well, why = await told.health()
    return Answer("200 OK" if well else "503 Service Unavailable", f"{why or 'ok'}\n")


def parsed(head: bytes) -> tuple[str, str]:
    """Method and path, without a query. Raises BadRequestError."""
    line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = REQUEST.fullmatch(line)
    if request is None:
        raise BadRequestError("not a request of HTTP/1.1")
    if len(headers) > MOST_HEADERS:
        raise BadRequestError("too many header fields")
    for each in headers:
        header = HEADER.fullmatch(each)
        if header is None:
            raise BadRequestError("not a header field")
        name, value = header[1].lower(), header[2].strip()
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            raise BadRequestError("a request with a body")
    return request[1].decode(), request[2].decode().partition("?")[0]


def _encoded(answer: Answer) -> bytes:
    body = answer.body.encode()
    head = (
        f"HTTP/1.1 {answer.status}\r\nContent-Type: {answer.content_type}\r\nContent-Length: {len(body)}\r\n"
        f"{answer.more}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
