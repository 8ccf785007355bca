"""AsyncSource: `Source` for programs that run on asyncio.

    async with AsyncSource("pi1:7701", "camera") as camera:
        outcome = await camera.send(tray, age_ms=100)
        async for outcomes in camera.send_batches(batches):    # an iterable of batches, or an asynchronous one
            ...

A thread has the Source, so TLS, outages and heartbeats are the same. Calls that wait while a burst is under way leave
together as the next one: many tasks that send a tuple each cost as little as one that sends many, and no call waits for
others to come. Rejected: a second client upon asyncio's streams, which would repeat both transports.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import length_hint
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from node_agent.client.burst import Burst, answerable
from node_agent.client.burst_outcomes import Outcome, Outcomes
from node_agent.client.client import Source
from node_agent.client.connection import NoAnswerError
from node_agent.host.clock import now_ns
from node_agent.operators.codecs import Codec, Codecs
from node_agent.problems import UnusableValueError

MOST_CALLS, MOST_TUPLES = 256, 4096  # that leave as one burst; a single call may have more
AHEAD = 2  # batches of an iterable that are handed over before the first one is answered


class Totals(NamedTuple):
    """Tuples that were handed over and answered, also of calls that were cancelled."""

    admitted: int = 0
    refused: int = 0


class _Call(NamedTuple):
    burst: Burst
    answered: "asyncio.Future[Outcomes]"


class AsyncSource:
    """Puts tuples into a source from tasks of one event loop; use it as `async with`, which connects and ends it.

    All arguments and errors are those of `Source`; what would end a program or a task, raised by the caller's iterable,
    comes as a RuntimeError. A call hands its tuples over at once. Where its task is cancelled,
    they are sent all the same, once, and `totals` counts them. The end of the block waits until all that was handed
    over is answered, also when Ctrl-C ends it, for as long as `timeout` and `outage` allow.
    """

    def __init__(
        self,
        address: str,
        name: str,
        *,
        timeout: float = 5.0,
        outage: float = 0.0,
        on_outage: Callable[[str], object] | None = None,
        codecs: Codecs | None = None,
        drift_ppm: int = 100,
        tls: str | Path | None = None,
    ) -> None:
        self._peer = f"source:{name}"
        self._open = partial(
            Source, address, name, timeout=timeout, outage=outage, on_outage=on_outage, codecs=codecs,
            drift_ppm=drift_ppm, tls=tls,
        )  # fmt: skip
        self._source: Source | None = None
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._unanswered = set[asyncio.Future[Outcomes]]()
        self._loop: asyncio.AbstractEventLoop | None = None  # as the next one: once there is a thread
        self._ended: asyncio.Future[None] | None = None
        self._died: Exception | None = None
        self._closed = False
        self.totals = Totals()

    @property
    def codec(self) -> Codec:
        """Of the stream, as the agent said when it was last connected."""
        return self._connected().codec

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and made again."""
        return self._connected().reconnects

    async def send(self, value: Any, *, age_ms: float | tuple[float, float] = 0.0) -> Outcome:
        """Put one value in, as `Source.send`."""
        return (await self._hand_over(Burst(now_ns(), [value], age_ms)))[0]

    async def send_many(self, values: Any, *, age_ms: Any = 0.0, origin_ns: Any = None) -> Outcomes:
        """Put a burst in, as `Source.send_many`. Do not change its arrays before it is answered."""
        return await self._hand_over(Burst(now_ns(), values, age_ms, origin_ns))

    async def send_batches(
        self, batches: AsyncIterable[Any] | Iterable[Any], *, age_ms: Any = 0.0
    ) -> AsyncGenerator[Outcomes, None]:
        """Each batch as `send_many` takes it, as soon as it comes; yields what became of each, in order.

        The next batch is asked for while at most one other is unanswered, which is the back pressure on the iterable.
        A batch that the iterable has given is sent, also where the iteration ends early.
        """
        given = aiter(batches) if isinstance(batches, AsyncIterable) else _in_turn(batches)
        under_way: deque[asyncio.Future[Outcomes]] = deque()

        async def take() -> bool:
            """Whether there was another one; nothing can cancel this between its coming and its going."""
            try:
                batch = await anext(given)
            except StopAsyncIteration:
                return False
            under_way.append(self._hand_over(Burst(now_ns(), batch, age_ms)))
            return True

        taking: asyncio.Task[bool] | None = None
        more, failed = True, None
        try:
            while more or under_way:
                if more and taking is None and len(under_way) < AHEAD:
                    taking = asyncio.create_task(take())
                oldest = under_way[0] if under_way else None
                awaited = [each for each in (taking, oldest) if each is not None]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if taking is not None and taking.done():
                    failed = taking.exception()
                    more, taking = failed is None and taking.result(), None
                while under_way and under_way[0].done():
                    yield under_way.popleft().result()
        finally:
            if taking is not None:
                taking.cancel()
                await asyncio.wait([taking])
        if failed is not None:
            raise failed

    async def __aenter__(self) -> Self:
        if self._ended is not None:
            raise self._not_open()
        self._loop = loop = asyncio.get_running_loop()
        opened: asyncio.Future[Source] = loop.create_future()
        self._ended = loop.create_future()
        Thread(target=self._run, args=(loop, opened, self._ended), name=self._peer, daemon=True).start()
        try:
            self._source = await opened
        except BaseException:  # Ctrl-C while it connects
            self._calls.put(None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._calls.put(None)
        if self._ended is not None:
            self._check_loop()
            await asyncio.shield(self._ended)

    def _connected(self) -> Source:
        if self._source is None or self._closed:
            raise self._not_open()
        return self._source

    def _not_open(self) -> UnusableValueError:
        return UnusableValueError("closed", f"{self._peer} is used outside of its `async with`", subject=self._peer)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            text = f"{self._peer} is used from another event loop than the one of its `async with`"
            mend = "open an AsyncSource in each event loop"
            raise UnusableValueError("closed", text, mend, subject=self._peer)

    def _hand_over(self, burst: Burst) -> "asyncio.Future[Outcomes]":
        """From here on it is sent."""
        self._connected()
        self._check_loop()
        if self._died is not None:
            text = f"{self._peer} has ended: {self._died}"
            raise UnusableValueError("closed", text, "open another AsyncSource", subject=self._peer) from self._died
        answered: asyncio.Future[Outcomes] = asyncio.get_running_loop().create_future()
        self._unanswered.add(answered)
        self._calls.put(_Call(burst, answered))
        return answered

    def _settle(self, calls: Sequence[_Call], answers: Sequence[Outcomes | Exception]) -> None:
        """In the event loop: what became of these calls."""
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Outcomes):
                admitted = sum(answer.admitted)
                self.totals = Totals(self.totals.admitted + admitted, self.totals.refused + len(answer) - admitted)
            self._unanswered.discard(call.answered)
            if call.answered.done():
                continue  # its task was cancelled
            if isinstance(answer, Outcomes):
                call.answered.set_result(answer)
            else:
                call.answered.set_exception(answer)

    def _end(self, opened: "asyncio.Future[Source]", ended: "asyncio.Future[None]", died: Exception | None) -> None:
        """In the event loop: the thread is over, so nothing that is still unanswered is ever answered."""
        self._died = died
        if died is not None:
            _fail(opened, died)
        for each in self._unanswered:
            text = f"{self._peer} has ended ({died}); it is not known whether the tuples were admitted"
            _fail(each, NoAnswerError(text, [], self._peer))
        self._unanswered.clear()
        _give(ended, None)

    # On the thread.

    def _run(
        self, loop: asyncio.AbstractEventLoop, opened: "asyncio.Future[Source]", ended: "asyncio.Future[None]"
    ) -> None:
        def tell(what: Callable[..., object], *given: object) -> None:
            with suppress(RuntimeError):  # the loop has been closed: nobody awaits it
                loop.call_soon_threadsafe(what, *given)

        died: Exception | None = None
        try:
            with self._open() as source:
                tell(_give, opened, source)
                while calls := self._together():
                    tell(self._settle, calls, _answers(source, calls))
        except BaseException as error:
            died = answerable(error)
        finally:
            tell(self._end, opened, ended, died)

    def _together(self) -> list[_Call]:
        """The next call, once there is one, and all that wait behind it; empty: there will be none."""
        first = self._calls.get()
        if first is None:
            return []
        calls, tuples = [first], _size(first)
        with suppress(Empty):
            while len(calls) < MOST_CALLS and tuples < MOST_TUPLES:
                call = self._calls.get_nowait()
                if call is None:
                    self._calls.put(None)  # the end comes behind these
                    break
                calls.append(call)
                tuples += _size(call)
        return calls


def _size(call: _Call) -> int:
    """About how many tuples a call has. A length that cannot be had says nothing about the values."""
    try:
        return min(length_hint(call.burst.values, 1), MOST_TUPLES)
    except BaseException:  # of the caller's own class, which may raise anything
        return 1


def _answers(source: Source, calls: Sequence[_Call]) -> Sequence[Outcomes | Exception]:
    """Of each call; an agent that cannot be reached costs them all."""
    try:
        return source.send_bursts([call.burst for call in calls])
    except BaseException as error:  # `on_outage` may raise anything
        return [answerable(error)] * len(calls)


async def _in_turn(batches: Iterable[Any]) -> AsyncIterator[Any]:
    """An iterable without awaits, between whose batches other tasks run."""
    for batch in batches:
        yield batch
        await asyncio.sleep(0)


def _give(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
