"""HTTP for those who scrape: GET /metrics and GET /health, one answer per connection, nothing else, everything bounded.

On loopback everybody on the machine may read; under TLS every holder of a certificate of the same CA.
"""

import asyncio
import contextlib
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from node_agent.control.metrics.exposition import CONTENT_TYPE

if TYPE_CHECKING:
    import ssl

MOST_CONNECTIONS = 16
MOST_HEAD_BYTES = 8192
MOST_HEADERS = 64
READ_S, ANSWER_S, WRITE_S = 5.0, 10.0, 5.0
AGAIN_S = 1.0
PLAIN = "text/plain; charset=utf-8"
REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,1023}) HTTP/1\.[01]")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([ -~\t\x80-\xff]*)")
_serving: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


class MetricsSource(Protocol):
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


async def serve(host: str, port: int, source: MetricsSource, identity: Path | None = None) -> int:
    """Begin to serve; returns the port. Raises OSError where it is taken, ValueError where the identity is none."""
    context: ssl.SSLContext | None = None
    if identity is not None:
        from node_agent.tls.identity import server_context

        context = server_context(identity)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
    listener.setblocking(False)
    task = asyncio.create_task(_Listener(listener, source, context).run())
    _serving.add(task)
    task.add_done_callback(_serving.discard)
    bound: int = listener.getsockname()[1]
    return bound


class _Listener:
    """Accepts. A connection counts before its handshake, which takes a quarter of a megabyte here: of too
    many the oldest goes that has not asked yet."""

    def __init__(self, listener: socket.socket, source: MetricsSource, context: "ssl.SSLContext | None") -> None:
        self._listener, self._source, self._context = listener, source, context
        self._silent: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._open: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                end, _ = await loop.sock_accept(self._listener)
            except OSError:  # no descriptor is left
                await asyncio.sleep(AGAIN_S)
                continue
            if len(self._open) < MOST_CONNECTIONS or await self._make_room():
                task = asyncio.create_task(self._serve(end))
                self._open.add(task)
                self._silent[task] = None
                task.add_done_callback(self._forget)
            else:
                end.close()
            await asyncio.sleep(0)  # an accept that succeeds at once lets nobody else run

    async def _make_room(self) -> bool:
        oldest = next(iter(self._silent), None)
        if oldest is None:
            return False
        oldest.cancel()
        await asyncio.wait({oldest})  # its descriptor goes before the next connection comes
        return True

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._open.discard(task)
        self._silent.pop(task, None)

    async def _serve(self, end: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.wait_for(self._opened(end), READ_S)
            try:
                asked = await _asked(reader)
                self._silent.pop(task, None)
                writer.write(_encoded(asked if isinstance(asked, Answer) else await _answer(asked, self._source)))
                await asyncio.wait_for(writer.drain(), WRITE_S)
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), WRITE_S)
            finally:
                writer.transport.abort()  # what is not read by then stays unread

    async def _opened(self, end: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MOST_HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        times = {} if self._context is None else {"ssl_handshake_timeout": READ_S, "ssl_shutdown_timeout": WRITE_S}
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, end, ssl=self._context, **times)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _asked(reader: asyncio.StreamReader) -> str | Answer:
    """The path of a request that is served here, or what to say of another."""
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
    return path


async def _answer(path: str, source: MetricsSource) -> Answer:
    try:
        return await asyncio.wait_for(_metrics(source) if path == "/metrics" else _health(source), ANSWER_S)
    except TimeoutError:
        return Answer("503 Service Unavailable", "no answer in time\n")


async def _metrics(source: MetricsSource) -> Answer:
    return Answer("200 OK", await source.page(), CONTENT_TYPE)


async def _health(source: MetricsSource) -> Answer:
    well, why = await source.health()
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
